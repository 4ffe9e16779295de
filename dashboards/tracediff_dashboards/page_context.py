"""What a page is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff_dashboards.filters import View


@dataclass(frozen=True)
class Shown:
    """One view of one comparison.

    Attributes:
        comparison: its chosen part. whole: all of it.
        sets: control and test, of the chosen steps and ranks.
        view: what the address says. theme: light or dark.
    """

    comparison: Comparison
    whole: Comparison
    sets: tuple[TraceSet, TraceSet]
    view: View
    theme: str

    @property
    def is_part(self) -> bool:
        """Whether some work is left out."""
        return not self.view.filters.part.is_all
