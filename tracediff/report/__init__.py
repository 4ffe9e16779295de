"""report: `Comparison` → text for people and programs: terminal, Markdown, JSON, CSV.

`text` writes sentences about sides and evidence; `sections` the rows of tables; each ``to_*`` one output format.
"""
