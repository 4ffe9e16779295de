"""`StepInspector`: details of single steps, for which the events are read again; those of recent files are cached."""

import threading
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from math import isfinite
from operator import attrgetter
from typing import Any

import numpy as np
from cachetools import LRUCache, cachedmethod

from tracediff import bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.aggregate.call_tree import CallTree, Key, work_keys
from tracediff.aggregate.samples import StepOfRank
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Int64
from tracediff.charts.figures.timeline import StepSpans
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.build import work_keys_of
from tracediff.profile.events.context import Context
from tracediff.profile.kernels.families import Families
from tracediff.profile.kernels.match_names import table_name
from tracediff.profile.model.profile import Profile
from tracediff.profile.timeline import NO_EVENTS, Linked, build_timeline, follow
from tracediff.structs import FrozenStruct
from tracediff_dashboards.reading.events import Events
from tracediff_dashboards.state.view import LATEST, Window

SEPARATOR = "|"


class StepPlace(StepOfRank):
    """Where a step is: the profile of its file, and its position in that file."""

    profile: Profile
    position: int

    @property
    def key(self) -> str:
        """Its identifier in the URL."""
        return f"{self.run}{SEPARATOR}{self.rank}{SEPARATOR}{self.step}"

    @property
    def period(self) -> int:
        """The period of the step in ns."""
        return int(self.profile.periods[self.position])


def places(traces: TraceSet) -> list[StepPlace]:
    """All steps in the traces of a set; none in snapshots, which have no events."""
    return [
        StepPlace(run.name, rank, int(number), profile, k)
        for run in traces.runs
        for rank, files in run.ranks.items()
        for profile in files
        if profile.timeline is not None
        for k, number in enumerate(profile.step_numbers.tolist())
    ]


def is_used(traces: TraceSet, typical: TypicalStep) -> bool:
    """Whether the typical step, whose events are kept, is a used step of the set."""
    return any(
        place.profile.origin.file == typical.file and place.step == typical.timeline.step for place in _used(traces)
    )


class StepChoice(FrozenStruct):
    """The step of one side that the timeline shows.

    Attributes:
        key: of `StepPlace`, empty for the typical step if that is used, else for the used step closest to the median.
        typical: the typical step of the set, None of a snapshot, which has no events.
    """

    traces: TraceSet
    key: str
    typical: TypicalStep | None

    @property
    def is_kept(self) -> bool:
        """Whether it can be shown without reading: it is the typical step, or there is none."""
        return self.typical is None or (not self.key and is_used(self.traces, self.typical))


def _used(traces: TraceSet) -> list[StepPlace]:
    used = {id(profile): traces.selection.used(profile) for profile in traces.profiles}
    return [place for place in places(traces) if used[id(place.profile)][place.position]]


def _place(choice: StepChoice) -> StepPlace:
    """The step that is chosen.

    Raises:
        TracediffError: no such step.
    """
    every = places(choice.traces)
    if choice.key:
        matches = [place for place in every if place.key == choice.key]
        if not matches:
            subject = choice.key.replace(SEPARATOR, ", ")
            raise TracediffError(subject, "no such step in this set", "choose another step above the timeline")
        return matches[0]
    used = _used(choice.traces) or every
    median = np.median([place.period for place in used])
    typical = choice.typical and (choice.typical.file, choice.typical.timeline.step)

    def distance(place: StepPlace) -> tuple[bool, float]:
        return (place.profile.origin.file, place.step) != typical, abs(place.period - median)

    return min(used, key=distance)


Select = Callable[[Context, StepPlace], Int64]
"""Selects events of a step: their rows of the trace."""


def events_named(category: str, name: str, *, of_every_step: bool) -> Select:
    """Selects the events of a category that tables call ``name``, of every step of the file or of the step: GPU events
    of the one that launched them.
    """

    def select(context: Context, place: StepPlace) -> Int64:
        trace, gpu = context.trace, context.gpu
        is_named = (trace.dur >= 0) & trace.name_matches(lambda raw: table_name(raw) == name)
        is_named &= np.array([c == category for c in trace.categories], bool)[trace.category]
        rows = np.flatnonzero(is_named)
        if of_every_step:
            return rows
        step, on_gpu = context.steps.positions_at(trace.ts[rows]), np.isin(rows, gpu.rows)
        step[on_gpu] = gpu.step[np.searchsorted(gpu.rows, rows[on_gpu])]
        events: Int64 = rows[step == place.position]
        return events

    return select


def events_of_work(traces: TraceSet, work: Set[Key], tree: CallTree) -> Select:
    """Selects the events of ``work``: keys of GPU events or, without a GPU, of operators, in ``tree`` of the set."""

    def select(context: Context, place: StepPlace) -> Int64:
        keys, gpu, ops = work_keys_of(context), context.gpu, context.ops
        rows, step = (gpu.rows, gpu.step) if len(gpu.rows) else (ops.rows, context.steps.positions_at(ops.start))
        inside = np.flatnonzero(step == place.position)
        nodes = next(
            nodes for profile, nodes in zip(traces.profiles, tree.places, strict=True) if profile is place.profile
        )
        keys_of_rows = work_keys(place.profile, nodes, [column[inside] for column in keys.values()])
        events: Int64 = rows[inside[np.array([k in work for k in keys_of_rows], bool)]]
        return events

    return select


class StepInspector:
    """Reads the events of single steps for the timeline; ``step_marker`` is that of the sets."""

    def __init__(self, step_marker: str | None = None) -> None:
        self._marker = step_marker
        self._contexts: LRUCache[TraceFile, Context] = LRUCache(bounds.TRACES_KEPT)
        self._condition = threading.Condition()
        self._events = Events()
        self._preparing = threading.BoundedSemaphore(bounds.STEPS_PREPARED)

    def close(self) -> None:
        """Stop reading."""
        self._events.close()

    def prepare(self, choice: StepChoice) -> None:
        """Start to read the events of a step in the background, because they will probably be needed."""
        if choice.typical is None or not self._preparing.acquire(blocking=False):
            return

        def read() -> None:
            try:
                with suppress(TracediffError):  # the error is reported when the events are needed
                    self._read(choice)
            finally:
                self._preparing.release()

        threading.Thread(target=read, daemon=True).start()

    def length_us(self, choice: StepChoice) -> float | None:
        """The period of the step in µs, None if the set has no events.

        Raises:
            TracediffError: no such step.
        """
        return _place(choice).period / 1000 if choice.typical else None

    def step(self, choice: StepChoice, window: Window | None, apart: Int64 = NO_EVENTS) -> TypicalStep | None:
        """The step that is chosen.

        Args:
            window: only the events in it, at full resolution. apart: see `build_timeline`.

        Raises:
            TracediffError: no such step, or its file can no longer be read.
        """
        if choice.typical is None or (window is None and not len(apart) and choice.is_kept):
            return choice.typical
        place, context = self._read(choice)
        start, end = (int(completion) for completion in context.completions[place.position : place.position + 2])
        low, high = window or (0, end - start)
        span = start + low, start + max(high, low + 1)
        timeline = build_timeline(context, place.position, span, apart)
        marks = timeline.marks.replace(start=timeline.marks.start + low, end=timeline.marks.end + low)
        memory = tuple(m.replace(time=m.time + low) for m in timeline.memory)
        return TypicalStep(
            place.run,
            place.rank,
            place.profile.origin.file,
            timeline.replace(start=start, end=end, marks=marks, memory=memory),
        )

    def spans(self, choice: StepChoice, select: Select) -> StepSpans | None:
        """When the events that ``select`` selects ran in the step that `step` shows; None for a set without events.

        Raises:
            TracediffError: as for `step`.
        """
        if choice.typical is None:
            return None
        place, context = self._read(choice)
        rows, zero = select(context, place), int(context.completions[place.position])
        start, end = (times - zero for times in context.trace.spans(rows))
        where = f"step {place.step} of {place.run}, rank {place.rank}"
        return StepSpans(start, end, where=where, period_ns=place.period, event=rows)

    def follow(self, choice: StepChoice, event: int) -> list[Linked]:
        """An event of the step, its launch and the calls around it.

        Raises:
            TracediffError: as for `step`.
        """
        if choice.typical is None:
            return []
        _, context = self._read(choice)
        return follow(context, event) if 0 <= event < len(context.trace) and context.trace.dur[event] >= 0 else []

    def _read(self, choice: StepChoice) -> tuple[StepPlace, Context]:
        """The step that is chosen, and the events of its file."""
        place = _place(choice)
        profile, file = place.profile, place.profile.origin.file
        context = self._context(file, choice.traces.families)
        if not (
            np.array_equal(context.completions, profile.completions)
            and np.array_equal(context.steps.numbers, profile.step_numbers)
        ):
            raise TracediffError(file, "has changed since it was compared", "restart the dashboard")
        return place, context

    @cachedmethod(attrgetter("_contexts"), key=lambda _self, file, _families: file, condition=attrgetter("_condition"))
    def _context(self, file: TraceFile, families: Families) -> Context:
        return self._events.read(file, self._marker, families)


def window_of(relayout: Mapping[str, Any] | None, unit_us: float, before: Window | None) -> Window | None:
    """The window in plotly's ``relayoutData``, whose axis has units of ``unit_us`` µs.

    None is the whole step; ``before`` is returned if ``relayoutData`` contains no range.
    """
    axes = time_axes(relayout)
    for axis in ("xaxis", "xaxis2"):
        ends = axes.get(f"{axis}.range") or [axes.get(f"{axis}.range[{k}]") for k in (0, 1)]
        if (
            isinstance(ends, list)
            and len(ends) == 2
            and all(isinstance(end, int | float) and isfinite(end) for end in ends)
        ):
            low, high = sorted(int(min(max(end * unit_us * 1000, 0), LATEST - 1)) for end in ends)
            return low, max(high, low + 1)
    return None if axes else before


def time_axes(relayout: Mapping[str, Any] | None) -> dict[str, Any]:
    """What ``relayoutData`` says of the time axes; nothing where it is only a new size of the page."""
    return {key: value for key, value in (relayout or {}).items() if key.startswith("xaxis")}
