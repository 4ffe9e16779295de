"""Compares the sets of a view and filters the result; both are cached, because a page needs them several times."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import replace
from operator import attrgetter

from cachetools import LRUCache, cachedmethod

from tracediff.aggregate.assemble import narrowed
from tracediff.aggregate.number_ranges import ranges
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.subset import only
from tracediff.diff.verdict import Judging
from tracediff.explain.compare import compare_sets
from tracediff.ingest.discover import labels_for
from tracediff_dashboards.reading.loading import Load, Loader
from tracediff_dashboards.reading.page_context import PageContext
from tracediff_dashboards.state.view import View

MOST_PAIRS, MOST_PARTS = 8, 24
"""Maximum numbers of cached comparisons: without and with filters."""


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
        self._whole: LRUCache[Hashable, tuple[Comparison, tuple[TraceSet, TraceSet]]] = LRUCache(MOST_PAIRS)
        self._parts: LRUCache[Hashable, Comparison] = LRUCache(MOST_PARTS)
        self._condition = threading.Condition()

    def whole(self, view: View) -> tuple[Comparison, tuple[TraceSet, TraceSet]] | Load:
        """The comparison of the view's sets, steps and ranks, and the sets; or the load in progress.

        Raises:
            TracediffError: the set, the steps or the ranks do not exist.
        """
        with self._condition:
            known = self._whole.get(_pair_key(view))
        if known is not None:  # even if its sets are no longer loaded
            return known
        pair = self.loader.pair(view.control, view.test)
        return pair if isinstance(pair, Load) else self._compared(view, pair)

    def ranks(self, view: View) -> tuple[Sequence[int], Sequence[int]]:
        """The ranks of both sets of the view; none if the sets are not loaded."""
        pair = self.loader.pair(view.control, view.test)
        return ((), ()) if isinstance(pair, Load) else (pair[0].ranks, pair[1].ranks)

    def part(self, view: View) -> Comparison | Load:
        """The comparison of the work that the filters select; or the load in progress.

        Raises:
            TracediffError: as for `whole`.
        """
        found = self.whole(view)
        return found if isinstance(found, Load) else self._part(view, found[0])

    def context(self, view: View, theme: str | None) -> PageContext | None:
        """What a page shows for a view; None while its sets are being read, or if none are chosen.

        Raises:
            TracediffError: as for `whole`.
        """
        found = self.whole(view) if view.control and view.test else None
        if found is None or isinstance(found, Load):
            return None
        known = theme if theme in ("light", "dark") else "light"  # the browser may send anything
        return PageContext(self._part(view, found[0]), *found, view, known)

    @cachedmethod(
        attrgetter("_whole"), key=lambda _self, view, _pair: _pair_key(view), condition=attrgetter("_condition")
    )
    def _compared(self, view: View, pair: tuple[TraceSet, TraceSet]) -> tuple[Comparison, tuple[TraceSet, TraceSet]]:
        sets, filters = _with_distinct_labels(pair, (view.control, view.test)), view.filters
        if filters.steps or filters.rank or filters.test_rank:
            ranks = filters.rank, filters.test_rank or filters.rank
            control, test = (
                narrowed(traces, filters.selection or traces.selection, frozenset(of) or None)
                for traces, of in zip(sets, ranks, strict=True)
            )
            sets = control, test
        if filters.test_rank:
            control, test = (replace(traces, label=f"{traces.label} rank {ranges(traces.ranks)}") for traces in sets)
            sets = control, test
        return compare_sets(*sets, view.forced or self.force, self.judging), sets

    @cachedmethod(
        attrgetter("_parts"), key=lambda _self, view, _whole: _part_key(view), condition=attrgetter("_condition")
    )
    def _part(self, view: View, whole: Comparison) -> Comparison:
        return only(whole, view.filters.part)


def _with_distinct_labels(pair: tuple[TraceSet, TraceSet], names: Sequence[str]) -> tuple[TraceSet, TraceSet]:
    """The sets; if their labels are equal, with longer labels from their names."""
    if pair[0].label != pair[1].label:
        return pair
    a, b = (replace(traces, label=label) for traces, label in zip(pair, labels_for(names), strict=True))
    return a, b


def _pair_key(view: View) -> Hashable:
    return view.control, view.test, view.filters.steps, view.filters.rank, view.filters.test_rank, view.forced


def _part_key(view: View) -> Hashable:
    return view.control, view.test, view.filters, view.forced
