"""Patterns over names from traces, which are untrusted: none takes more than linear time, whatever the name.

A search begins anew at each character, so ``first.*second`` reads the rest of the name once for every ``first``.
`followed` is the linear form; ``tests/test_patterns.py`` holds all patterns to it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, AnyStr, cast

from tracediff import bounds

NAMES_KEPT = 1 << 18
"""Names whose answers a function keeps: more than a pair of traces has, or each table would search them anew."""


class Late:
    """A pattern that is compiled when one of its methods is first called; see `late`."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self.given_flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self.given_flags), name)
        setattr(self, name, value)  # found at once from now on
        return value


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern that is compiled when it is first used: a comparison needs few of them, and all take as long as it does
    to read a small trace.
    """
    return cast("re.Pattern[AnyStr]", Late(pattern, flags))


def followed(first: str, second: str, gap: str = r"\w") -> str:
    r"""A pattern found exactly where ``first``, any number of ``gap`` and ``second`` follow each other, but found from
    the last ``first`` on: no character between two of them is read for both.
    """
    return rf"(?:{first})(?:(?!{first}){gap})*?(?:{second})"


BREAK_AT = late(r"in user code at (?P<file>(?:(?!in user code at ).)+?):(?P<line>\d{1,9})")


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
