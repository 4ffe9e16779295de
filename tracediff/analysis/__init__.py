"""analysis: one set in depth, with the accounts that a comparison has of both: `TraceSet` → `Analysis`."""
