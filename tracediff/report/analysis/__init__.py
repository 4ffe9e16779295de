"""Reports of one set: `tables` says what is shown in which order; the other modules write it."""
