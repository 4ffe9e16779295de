"""analysis: one set in depth, with the accounts of a comparison: `TraceSet` → `Analysis`."""
