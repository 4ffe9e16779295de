"""gate: a comparison against limits, for CI (docs/ci.md).

`limits` defines a limit and reads it from text, `config` reads `tracediff.toml`, `figures` finds a limit's numbers in a
comparison, `judge` decides, `waivers` permits exceeded limits until a date, `sample_size` computes how many runs would
decide.
"""
