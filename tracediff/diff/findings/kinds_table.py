"""The table of findings in docs/findings.md; ``python -m tracediff.diff.findings.kinds_table`` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from tracediff.diff.findings.kinds import KINDS

BEGIN, END = "<!-- findings: generated from tracediff/diff/findings/kinds.py -->", "<!-- end of findings -->"
PAGE = Path("docs/findings.md")


def table() -> str:
    """A line of Markdown for each kind."""
    rows = ((f"`{kind.code}`", kind.meaning, kind.computed_from, kind.advice) for kind in KINDS)
    head = ("code", "raised when", "computed from", "what to do"), ("---",) * 4
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*head, *rows))


def with_table(page: str) -> str:
    """The text of ``page`` with today's table between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(with_table(page.read_text("utf-8")), "utf-8")
