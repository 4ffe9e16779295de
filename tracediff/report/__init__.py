"""report: `Comparison` → text for people and programs: terminal, Markdown, JSON, CSV.

Each ``to_*`` writes one format of a comparison; `analysis`, `check`, `collection`, `history`, `matrix` and `memory` all
formats of what they are named after. `page` is the HTML report.
"""
