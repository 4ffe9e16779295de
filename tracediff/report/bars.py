"""Bars of changes in a terminal."""

from __future__ import annotations

FASTER, SLOWER = "cyan", "yellow"
BAR = 14
"""Characters of the largest bar beside counts."""
EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: float, largest: float, width: int) -> str:
    """``value`` as a bar, of ``width`` characters for ``largest``."""
    eighths = round(8 * width * abs(value) / largest) if largest else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def colour_of(change: float) -> str:
    """The colour of a change."""
    return FASTER if change < 0 else SLOWER
