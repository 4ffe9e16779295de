"""What a view shows: its sets compared, and the chosen part of that; kept, since one page asks for it several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracediff.aggregate.assemble import narrowed
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.compare import compare_sets
from tracediff.diff.comparison import Comparison
from tracediff.diff.subset import only
from tracediff.diff.verdict import Judging
from tracediff.ingest.discover import labels_for
from tracediff_dashboards.filters import View
from tracediff_dashboards.loading import Load, Loader
from tracediff_dashboards.lru_cache import Recent


class Comparisons:
    """Comparisons of the pairs used last.

    Attributes:
        loader: what reads their sets. judging: how strictly differences are judged. force: compare all that the
            preflight refuses, not only where the address asks for it.
    """

    def __init__(self, loader: Loader, judging: Judging | None = None, force: bool = False) -> None:
        self.loader = loader
        self.judging = judging
        self.force = force
        self._whole: Recent[tuple[Comparison, tuple[TraceSet, TraceSet]]] = Recent(8)
        self._parts: Recent[Comparison] = Recent(24)

    def whole(self, view: View) -> tuple[Comparison, tuple[TraceSet, TraceSet]] | Load:
        """The comparison of the view's sets, steps and ranks, and the sets; or the load that has to end first.

        Raises:
            TracediffError: no such set, steps or ranks.
        """
        of = view.filters
        key = view.control, view.test, of.steps, of.ranks, view.forced
        known = self._whole.get(key)
        if known is not None:
            return known
        pair = self.loader.pair(view.control, view.test)
        if isinstance(pair, Load):
            return pair
        sets = _told_apart(pair, (view.control, view.test))
        return self._whole.made(key, lambda: self._compared(sets, view))

    def _compared(self, sets: tuple[TraceSet, TraceSet], view: View) -> tuple[Comparison, tuple[TraceSet, TraceSet]]:
        of = view.filters
        if of.steps or of.ranks:
            control, test = (
                narrowed(traces, of.selection or traces.selection, frozenset(of.ranks) or None) for traces in sets
            )
            sets = control, test
        return compare_sets(*sets, view.forced or self.force, self.judging), sets

    def ranks(self, view: View) -> list[int]:
        """The ranks that both sets of the view have, chosen or not; none where they are no longer kept."""
        pair = self.loader.pair(view.control, view.test)
        return [] if isinstance(pair, Load) else sorted(set(pair[0].ranks) & set(pair[1].ranks))

    def part(self, view: View) -> Comparison | Load:
        """The chosen part of the work in it.

        Raises:
            TracediffError: as for `whole`.
        """
        found = self.whole(view)
        if isinstance(found, Load):
            return found
        return self._parts.made(
            (view.control, view.test, view.filters, view.forced), lambda: only(found[0], view.filters.part)
        )


def _told_apart(pair: tuple[TraceSet, TraceSet], names: Sequence[str]) -> tuple[TraceSet, TraceSet]:
    """Sets of the same label under longer ones, out of their names."""
    if pair[0].label != pair[1].label:
        return pair
    a, b = (replace(traces, label=label) for traces, label in zip(pair, labels_for(names), strict=True))
    return a, b
