"""Bars of changes, drawn with block characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from rich.text import Text

FASTER, SLOWER = "cyan", "yellow"
BAR = 15
"""Columns of the bars beside counts."""
ZERO = "│"
EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Bars:
    """Bars on both sides of a line at zero: faster to its left, slower to its right.

    Attributes:
        scale: change of one column. left, right: columns of the longest bar on either side.
    """

    scale: float
    left: int
    right: int

    def draw(self, change: float) -> Text:
        """The bar of ``change`` beside the line, in columns of a terminal."""
        drawn = self.blocks(change)
        if change < 0:
            return Text.assemble(" " * (self.left - len(drawn)), (drawn, FASTER), ZERO)
        return Text.assemble(" " * self.left, ZERO, (drawn, SLOWER))

    def blocks(self, change: float) -> str:
        """The bar alone; to the left, blocks grow from the line in halves of a column."""
        eighths = round(8 * abs(change) / self.scale) if self.scale else 0
        whole, rest = divmod(eighths, 8)
        if change < 0:
            return ("▐" if rest >= 4 else "") + "█" * whole
        return "█" * whole + EIGHTHS[rest].strip()


def bars(changes: Iterable[float], width: int, least: float = 0.0) -> Bars:
    """Bars for ``changes`` in ``width`` columns, the line among them.

    Args:
        least: change that at least makes the longest bar: small changes have small bars.
    """
    values = list(changes)
    lowest, highest = -min(*values, 0.0, 0.0), max(*values, 0.0, 0.0)
    scale = max(lowest + highest, least) / (width - 2)  # a column for the line, one for rounding
    left, right = (ceil(x / scale) if scale else 0 for x in (lowest, highest))
    return Bars(scale, left, right)
