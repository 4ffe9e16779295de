"""`PageContext`: the input of every page."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff_dashboards.state.view import View


@dataclass(frozen=True)
class PageContext:
    """What a page shows: a comparison, its filtered part, and the state of the page.

    Attributes:
        comparison: the work that the filters select. whole: the comparison without filters.
        sets: control and test, with the selected steps and ranks.
        view: the state in the URL. theme: light or dark.
    """

    comparison: Comparison
    whole: Comparison
    sets: tuple[TraceSet, TraceSet]
    view: View
    theme: str

    @property
    def is_filtered(self) -> bool:
        """Whether filters leave out some work."""
        return not self.view.filters.part.is_all
