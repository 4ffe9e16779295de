"""Graph breaks as torch.compile reports them in text: to its loggers and in its logs."""

from __future__ import annotations

import re
from pathlib import Path

BREAK_AT = re.compile(r"in user code at (?P<file>(?:(?!in user code at ).)+?):(?P<line>\d{1,9})")
LONGEST_REASON = 300
"""Characters that are kept of it."""


def graph_break(text: str) -> tuple[str, int, str] | None:
    """(file name, line, the construct that is not supported) of a message on a graph break; None for other texts."""
    place = BREAK_AT.search(text)
    return (Path(place["file"]).name, int(place["line"]), _construct(text)) if place else None


def _construct(text: str) -> str:
    """The first line of a graph-break message that names the unsupported construct."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    reasons = [line.removeprefix("Graph Break Reason:").strip() for line in lines]
    specific = [line for line in reasons if line and not line.startswith("Encountered graph break when attempting")]
    return (specific or reasons or [""])[0][:LONGEST_REASON]
