"""`PageContext`: the input of every page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tracediff.aggregate.representative_step import TypicalStep
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Member
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
    def shown_steps(self) -> list[tuple[TraceSet, str, TypicalStep | None]]:
        """The step of each side that the timeline shows, as `StepInspector` takes it."""
        keys, sides = (self.view.at_control, self.view.at_test), (self.whole.control, self.whole.test)
        return [(traces, key, side.typical) for traces, key, side in zip(self.sets, keys, sides, strict=True)]

    @property
    def members(self) -> list[Member]:
        """The matched work of both sides, whatever the filters."""
        return [member for group in self.whole.work.groups for side in group.sides for member in side]

    @property
    def module_paths(self) -> set[str]:
        """The paths of all modules with matched work, and of those that contain them."""
        modules = {member.module for member in self.members if member.module}
        return {"/".join(path.split("/")[:k]) for path in modules for k in range(1, path.count("/") + 2)}

    def address(self, page: str, **changes: Any) -> str:
        """The address of a page, with ``changes`` of the view."""
        return f"/{page}{replace(self.view, **changes).query()}"

    @property
    def is_filtered(self) -> bool:
        """Whether filters leave out some work."""
        return not self.view.filters.part.is_all
