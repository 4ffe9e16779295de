"""Reports of one set: `tables` defines contents and order; the other modules write one format each."""
