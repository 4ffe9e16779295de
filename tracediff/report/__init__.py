"""report: `Comparison` → text for people and programs: terminal, Markdown, JSON, CSV.

`text` says how numbers, names and states are worded; `sections` what a reader is shown in which order; each ``to_*``
writes one format.
"""
