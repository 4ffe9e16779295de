"""Compares the sets of a view and filters the result; both are cached, because a page needs them several times.
`PageContext` is the input of every page.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from operator import attrgetter
from typing import Any

from cachetools import LRUCache, cachedmethod
from msgspec.structs import replace

from tracediff import bounds
from tracediff.aggregate.assemble import narrowed
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison, only
from tracediff.diff.matching.items import Item
from tracediff.diff.verdict import Judging
from tracediff.explain.compare import compare_sets, of_common_ranks
from tracediff.formatting import ranges
from tracediff.ingest.discover import labels_for
from tracediff.structs import FrozenStruct, Pair
from tracediff_dashboards.reading.loading import Load, Loader
from tracediff_dashboards.reading.step_inspector import StepChoice
from tracediff_dashboards.state.view import View


class Comparisons:
    """Caches comparisons. Requests run in threads; concurrent requests for the same comparison compute it once.

    Attributes:
        loader: reads the sets. judging: options of the statistics. force: always compare what the preflight refuses,
            not only if the URL says so.
    """

    def __init__(self, loader: Loader, judging: Judging | None = None, force: bool = False) -> None:
        self.loader = loader
        self.judging = judging
        self.force = force
        self._whole: LRUCache[Hashable, tuple[Comparison, Pair[TraceSet]]] = LRUCache(bounds.COMPARISONS_KEPT)
        self._parts: LRUCache[Hashable, Comparison] = LRUCache(bounds.FILTERED_KEPT)
        self._condition = threading.Condition()

    def whole(self, view: View) -> tuple[Comparison, Pair[TraceSet]] | Load:
        """The comparison of the view's sets, steps and ranks, and the sets; or the load in progress.

        Raises:
            TracediffError: the set, the steps or the ranks do not exist.
        """
        with self._condition:
            cached = self._whole.get(_pair_key(view))
        if cached is not None:  # even if its sets are no longer loaded
            return cached
        pair = self.loader.pair(view.control, view.test)
        return pair if isinstance(pair, Load) else self._compared(view, pair)

    def ranks(self, view: View) -> tuple[Sequence[int], Sequence[int]]:
        """The ranks of both sets of the view; none if the sets are not loaded."""
        pair = self.loader.pair(view.control, view.test)
        return ((), ()) if isinstance(pair, Load) else (pair[0].ranks, pair[1].ranks)

    def context(self, view: View, theme: str | None) -> PageContext | None:
        """What a page shows for a view; None while its sets are being read, or if none are chosen.

        Raises:
            TracediffError: as for `whole`.
        """
        comparison = self.whole(view) if view.control and view.test else None
        if comparison is None or isinstance(comparison, Load):
            return None
        valid_theme = theme if theme in ("light", "dark") else "light"  # the browser may send anything
        return PageContext(self._part(view, comparison[0]), *comparison, view, valid_theme)

    @cachedmethod(
        attrgetter("_whole"), key=lambda _self, view, _pair: _pair_key(view), condition=attrgetter("_condition")
    )
    def _compared(self, view: View, pair: Pair[TraceSet]) -> tuple[Comparison, Pair[TraceSet]]:
        sets, filters = _with_distinct_labels(pair, (view.control, view.test)), view.filters
        if filters.steps or filters.rank or filters.test_rank:
            ranks = filters.rank, filters.test_rank or filters.rank
            selected = [
                narrowed(traces, filters.selection or traces.selection, frozenset(selected_ranks) or None)
                for traces, selected_ranks in zip(sets, ranks, strict=True)
            ]
            sets = Pair(*selected)
        if filters.test_rank:
            sets = sets.map(lambda traces: replace(traces, label=f"{traces.label} rank {ranges(traces.ranks)}"))
        return compare_sets(*sets, view.forced or self.force, self.judging), Pair(*of_common_ranks(*sets))

    @cachedmethod(
        attrgetter("_parts"),
        key=lambda _self, view, _whole: (view.control, view.test, view.filters, view.forced),
        condition=attrgetter("_condition"),
    )
    def _part(self, view: View, whole: Comparison) -> Comparison:
        return only(whole, view.filters.part)


def _with_distinct_labels(pair: Pair[TraceSet], names: Sequence[str]) -> Pair[TraceSet]:
    """The sets; if their labels are equal, with longer labels from their names."""
    if pair[0].label != pair[1].label:
        return pair
    return Pair(*(replace(traces, label=label) for traces, label in zip(pair, labels_for(names), strict=True)))


def _pair_key(view: View) -> Hashable:
    return view.control, view.test, view.filters.steps, view.filters.rank, view.filters.test_rank, view.forced


class PageContext(FrozenStruct):
    """What a page shows: a comparison, its filtered part, and the state of the page.

    Attributes:
        comparison: the work that the filters select. whole: the comparison without filters.
        sets: control and test, with the selected steps and the ranks that are compared.
        view: the state in the URL. theme: light or dark.
    """

    comparison: Comparison
    whole: Comparison
    sets: Pair[TraceSet]
    view: View
    theme: str

    @property
    def shown_steps(self) -> list[StepChoice]:
        """The step of each side that the timeline shows."""
        keys, sides = (self.view.at_control, self.view.at_test), self.whole.sides
        return [StepChoice(traces, key, side.typical) for traces, key, side in zip(self.sets, keys, sides, strict=True)]

    @property
    def members(self) -> list[Item]:
        """The matched work of both sides, whatever the filters."""
        return [member for group in self.whole.work.groups for side in group.members for member in side]

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
