"""gate: a comparison against limits, for CI (docs/ci.md).

`limits` says what is limited and by how much, `config` reads `tracediff.toml`, `figures` finds a limit's numbers in a
comparison, `judge` decides,
`waivers` lets known breaches pass for a time, `settle` says how many runs would decide.
"""
