"""The table of findings in docs/findings.md; ``python -m tracediff.diff.findings.kinds_table`` writes it anew."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tracediff.diff.findings.kinds import KINDS

BEGIN, END = "<!-- findings: generated from tracediff/diff/findings/kinds.py -->", "<!-- end of findings -->"
PAGE = Path("docs/findings.md")
THRESHOLD = re.compile(r"\{(?P<module>\w+)\.(?P<name>\w+)(?::(?P<unit>points|MiB))?\}")
"""A constant of a module in one of `FOLDERS`, in the text of a kind."""
FOLDERS = ("tracediff.diff.findings", "tracediff.diff", "tracediff.analysis")


def table() -> str:
    """A line of Markdown for each kind."""
    rows = ((f"`{kind.code}`", THRESHOLD.sub(_value, kind.meaning), kind.computed_from, kind.advice) for kind in KINDS)
    head = ("code", "raised when", "computed from", "what to do"), ("---",) * 4
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*head, *rows))


def _value(threshold: re.Match[str]) -> str:
    """``10 %``, ``10 points``, ``1 MiB``, ``5``."""
    names = (f"{folder}.{threshold['module']}" for folder in FOLDERS)
    value = getattr(import_module(next(filter(find_spec, names))), threshold["name"])
    if threshold["unit"] == "MiB":
        return f"{value >> 20} MiB"
    share = isinstance(value, float) and value < 1
    return f"{100 * value:g} {threshold['unit'] or '%'}" if share else f"{value:g}"


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
