"""Looking closer at steps: their events are read again when they are asked for, and those of the files used last are
kept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from cachetools import LRUCache, cachedmethod

from tracediff.aggregate.representative_step import TypicalStep
from tracediff.aggregate.traceset import TraceSet
from tracediff.errors import TracediffError
from tracediff.ingest.source import TraceFile
from tracediff.profile.analyses.launch_chain import Linked, follow
from tracediff.profile.context import Context
from tracediff.profile.kernels.families import Families
from tracediff.profile.model import Profile
from tracediff.profile.timeline import build_timeline
from tracediff_dashboards.events import Events
from tracediff_dashboards.filters import LATEST, Window

FILES = 6
"""Traces whose events are kept: one a side, of some tabs."""
SEPARATOR = "|"


@dataclass(frozen=True)
class Place:
    """One step of one rank in one run. Attributes: profile: of its file. position: of the step in it."""

    run: str
    rank: int
    step: int
    profile: Profile
    position: int

    @property
    def key(self) -> str:
        """As an address says it."""
        return f"{self.run}{SEPARATOR}{self.rank}{SEPARATOR}{self.step}"

    @property
    def period(self) -> int:
        """In ns."""
        return int(self.profile.periods[self.position])


def places(traces: TraceSet) -> list[Place]:
    """Every step that a set's traces hold; none of snapshots, which have no events."""
    return [
        Place(run.name, rank, int(number), profile, k)
        for run in traces.runs
        for rank, files in run.ranks.items()
        for profile in files
        if profile.timeline is not None
        for k, number in enumerate(profile.step_numbers.tolist())
    ]


def is_used(traces: TraceSet, typical: TypicalStep) -> bool:
    """Whether the step whose events were kept is one of those that the set uses."""
    return any(
        place.profile.origin.file == typical.file and place.step == typical.timeline.step for place in _used(traces)
    )


def is_kept(traces: TraceSet, key: str, typical: TypicalStep | None) -> bool:
    """Whether the step called ``key`` needs no reading: it is the ``typical`` one, or there is none."""
    return typical is None or (not key and is_used(traces, typical))


def _used(traces: TraceSet) -> list[Place]:
    used = {id(profile): traces.selection.used(profile) for profile in traces.profiles}
    return [place for place in places(traces) if used[id(place.profile)][place.position]]


def _place(traces: TraceSet, key: str, typical: TypicalStep) -> Place:
    """The step called ``key``, else ``typical`` where it is used, else the used one that is nearest to the median.

    Raises:
        TracediffError: no such step.
    """
    if key:
        found = [place for place in places(traces) if place.key == key]
        if not found:
            raise TracediffError(
                key.replace(SEPARATOR, ", "), "is no step of this set", "choose another above the timeline"
            )
        return found[0]
    used = _used(traces) or places(traces)
    median = np.median([place.period for place in used])

    def far(place: Place) -> tuple[bool, float]:
        return (place.profile.origin.file, place.step) != (typical.file, typical.timeline.step), abs(
            place.period - median
        )

    return min(used, key=far)


class Looking:
    """What reads events again, of steps as ``step_marker`` marks them."""

    def __init__(self, step_marker: str | None = None) -> None:
        self._marker = step_marker
        self._contexts: LRUCache[TraceFile, Context] = LRUCache(FILES)
        self._condition = threading.Condition()
        self._events = Events()

    def close(self) -> None:
        """Stop what is being read."""
        self._events.close()

    def prepare(self, traces: TraceSet, key: str, typical: TypicalStep | None) -> None:
        """Begin to read the events of that step, which will probably be asked for."""
        if typical is None:
            return

        def read() -> None:
            with suppress(TracediffError):  # whoever asks for them is told
                self._read(traces, _place(traces, key, typical).profile)

        threading.Thread(target=read, daemon=True).start()

    def length_us(self, traces: TraceSet, key: str, typical: TypicalStep | None) -> float | None:
        """The period of the step called ``key``, None where there is none.

        Raises:
            TracediffError: no such step.
        """
        if typical is None:
            return None
        return _place(traces, key, typical).period / 1000

    def step(
        self, traces: TraceSet, key: str, typical: TypicalStep | None, window: Window | None
    ) -> TypicalStep | None:
        """The step called ``key``; where it is empty ``typical``, or if that is none of the set's used steps the most
        typical of those. Of a ``window`` of it
        what can be told closer.

        Raises:
            TracediffError: no such step, or its file can no longer be read.
        """
        if typical is None or (window is None and is_kept(traces, key, typical)):
            return typical
        place = _place(traces, key, typical)
        context = self._read(traces, place.profile)
        start, end = (int(at) for at in context.completions[place.position : place.position + 2])
        low, high = window or (0, end - start)
        shown = build_timeline(context, place.position, (start + low, start + max(high, low + 1)))
        marks = replace(shown.marks, start=shown.marks.start + low, end=shown.marks.end + low)
        memory = tuple(replace(m, at=m.at + low) for m in shown.memory)
        return TypicalStep(
            place.run,
            place.rank,
            place.profile.origin.file,
            replace(shown, start=start, end=end, marks=marks, memory=memory),
        )

    def follow(self, traces: TraceSet, key: str, typical: TypicalStep | None, event: int) -> list[Linked]:
        """What hangs together with an event of that step.

        Raises:
            TracediffError: as for `step`.
        """
        if typical is None:
            return []
        context = self._read(traces, _place(traces, key, typical).profile)
        return follow(context, event) if 0 <= event < len(context.trace) and context.trace.dur[event] >= 0 else []

    def _read(self, traces: TraceSet, profile: Profile) -> Context:
        file = profile.origin.file
        context = self._context(file, traces.families)
        if not (
            np.array_equal(context.completions, profile.completions)
            and np.array_equal(context.steps.numbers, profile.step_numbers)
        ):
            raise TracediffError(str(file), "has changed since it was compared", "start the dashboard again")
        return context

    @cachedmethod(attrgetter("_contexts"), key=lambda _self, file, _families: file, condition=attrgetter("_condition"))
    def _context(self, file: TraceFile, families: Families) -> Context:
        return self._events.read(file, self._marker, families)


def window_of(moved: Mapping[str, Any] | None, unit_us: float, before: Window | None) -> Window | None:
    """The window that plotly's ``relayoutData`` says, whose axis is in units of ``unit_us`` µs; None for all of the
    step, ``before`` where it says nothing.
    """
    found = _axes(moved)
    for axis in ("xaxis", "xaxis2"):
        ends = found.get(f"{axis}.range") or [found.get(f"{axis}.range[{k}]") for k in (0, 1)]
        if (
            isinstance(ends, list)
            and len(ends) == 2
            and all(isinstance(end, int | float) and np.isfinite(end) for end in ends)
        ):
            low, high = sorted(int(min(max(end * unit_us * 1000, 0), LATEST - 1)) for end in ends)
            return low, max(high, low + 1)
    return None if found else before


def is_moved(moved: Mapping[str, Any] | None) -> bool:
    """Whether ``relayoutData`` tells of another window at all, and not only that the page's size has changed."""
    return bool(_axes(moved))


def _axes(moved: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (moved or {}).items() if key.startswith("xaxis")}
