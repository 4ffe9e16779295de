"""Patterns over names from traces, which are untrusted: none takes more than linear time, whatever the name.

A search begins anew at each character, so ``first.*second`` reads the rest of the name once for every ``first``.
`followed` is the linear form; ``tests/test_patterns.py`` holds all patterns to it.
"""

from __future__ import annotations

import re
from pathlib import Path

from tracediff import bounds

NAMES_KEPT = 1 << 18
"""Names whose answers a function keeps: more than a pair of traces has, or each table would search them anew."""


def followed(first: str, second: str, gap: str = r"\w") -> str:
    r"""A pattern found exactly where ``first``, any number of ``gap`` and ``second`` follow each other, but found from
    the last ``first`` on: no character between two of them is read for both.
    """
    return rf"(?:{first})(?:(?!{first}){gap})*?(?:{second})"


BREAK_AT = re.compile(r"in user code at (?P<file>(?:(?!in user code at ).)+?):(?P<line>\d{1,9})")


def graph_break(text: str) -> tuple[str, int, str] | None:
    """(file name, line, the construct that is not supported) of a message on a graph break; None for other texts."""
    place = BREAK_AT.search(text)
    return (Path(place["file"]).name, int(place["line"]), _construct(text)) if place else None


def _construct(text: str) -> str:
    """The first line of a graph-break message that names the unsupported construct."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    reasons = [line.removeprefix("Graph Break Reason:").strip() for line in lines]
    specific = [line for line in reasons if line and not line.startswith("Encountered graph break when attempting")]
    return (specific or reasons or [""])[0][: bounds.LONG_REASON]
