"""Steps: their host windows, which events belong to them, their completions and periods (docs/concepts.md)."""

from collections import Counter

import numpy as np

from tracediff.arrays import MISSING, Int64, Spans, int64_of, last_up_to, marked, sorted_by, zeros
from tracediff.errors import NotATrace, TracediffError, quoted
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.model.unread import shortened, unread_devices
from tracediff.patterns import late
from tracediff.profile.model.columns import rows_of

PROFILER_STEP = late(r"ProfilerStep\s*#\s*(?:(\d{1,18})(?!\d)|\d)")
"""Its group is the step's number, None for one that needs more than 64 bits."""
NO_STEP = -1
"""Step position of an event outside every step."""


class Steps(Spans):
    """The step windows of one file in order of time.

    Attributes:
        numbers: int64[s], N of ``ProfilerStep#N``; the ordinal where a marker or the whole file makes the steps.
        start, end: int64[s] host window [start, end) in ns.
        rows: int64[s] of the trace, of the events that are the steps; none of a file without steps, all of which counts
            as one.
    """

    numbers: Int64
    rows: Int64

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def whole_file(self) -> bool:
        """Whether the file has no steps, so that all of it counts as one."""
        return not len(self.rows)

    @property
    def own_start(self) -> Int64:
        """int64[s] ns: the start of each step, or the end of earlier steps that overlap it."""
        latest = np.maximum.accumulate(self.end)
        start: Int64 = np.maximum(self.start, np.concatenate((self.start[:1], latest[:-1])))
        return start

    def positions_at(self, times: Int64) -> Int64:
        """int64[m] position of the step in whose window each time lies, NO_STEP for none; if two steps
        overlap, the earlier.
        """
        position = last_up_to(self.own_start, times)
        return np.where(times < np.append(self.end, MISSING)[position], position, NO_STEP)

    def ranges(self, times: Int64) -> tuple[Int64, Int64]:
        """int64[s] positions in ``times`` (ns, ascending): of the first in each step, and behind the last."""
        low = np.searchsorted(times, self.own_start)
        return low, np.maximum(np.searchsorted(times, self.end), low)

    def completions(self, gpu_start: Int64, gpu_end: Int64, gpu_step: Int64) -> Int64:
        """int64[s + 1]: completion of what came before the first step, then completion(s) of each (ns).

        completion(s) = max(host end of s, end of every GPU event launched in s, completion(s − 1)). What came before
        completes when the first step starts on the host and the GPU has drained what it ran before that step's events.
        """
        completion = self.end.copy()
        launched = gpu_step >= 0
        np.maximum.at(completion, gpu_step[launched], gpu_end[launched])
        before = self.start[:1].copy()
        own = gpu_start[gpu_step == 0]
        if not self.whole_file and len(own):
            first = own.min()
            earlier = gpu_end[(gpu_step < 0) & (gpu_start < first)]
            before = np.maximum(before, np.minimum(earlier.max(initial=before[0]), first))
        return np.maximum.accumulate(np.concatenate((before, completion)))


def find_steps(trace: Trace, marker: str | None, notes: Notes) -> Steps:
    """The steps of ``trace``: ``ProfilerStep#N`` on the host, or the annotations whose name matches ``marker``.

    Raises:
        TracediffError: the marker is not a regular expression, or matches no annotation.
    """
    steps = _marked(trace, marker) if marker is not None else _profiler_steps(trace, notes)
    if not len(steps):
        return whole_file(trace)
    return _without_empty_last(trace, steps, notes)


def _profiler_steps(trace: Trace, notes: Notes) -> Steps:
    number_of_name = {code: m[1] for code, name in enumerate(trace.names) if (m := PROFILER_STEP.match(name))}
    host = [cat.ANNOTATION, cat.CPU_OP] + [trace.categories.index(c) for c in ("unknown",) if c in trace.categories]
    is_step = marked(list(number_of_name), len(trace.names))[trace.name]
    rows = np.flatnonzero(is_step & trace.is_of(host) & (trace.dur >= 0))
    rows = sorted_by(rows, trace.dur, trace.ts)
    number = int64_of([int(number_of_name[c] or NO_STEP) for c in trace.name[rows].tolist()])
    notes.add("odd-step", "steps with a number of more than 18 digits count as no steps", np.count_nonzero(number < 0))
    rows, number = rows[number >= 0], number[number >= 0]
    _, first = np.unique(number, return_index=True)
    first.sort()
    return Steps(*trace.spans(rows[first]), number[first], rows[first])


def _marked(trace: Trace, marker: str) -> Steps:
    from tracediff.process.user_patterns import check_pattern, first_found  # only for a user's pattern

    check_pattern(marker, "--step-marker", "give a name or pattern, such as 'execute_model.*'")
    annotations = trace.complete((cat.ANNOTATION,))
    rows = trace.rows_named(lambda name: first_found((marker,), name, "--step-marker") is not None, annotations)
    if not len(rows):
        names = [trace.names[name] for name, _ in Counter(trace.name[annotations].tolist()).most_common()]
        remedy = f"the annotations are {shortened(names)}" if names else "it has no annotations"
        raise TracediffError(trace.file, f"no annotation matches the step marker {quoted(marker)}", remedy)
    rows = sorted_by(rows, trace.dur, trace.ts)
    return Steps(*trace.spans(rows), np.arange(len(rows)), rows)


def whole_file(trace: Trace) -> Steps:
    """One step from the earliest start to the latest end of host and GPU events.

    Raises:
        NotATrace: there are none.
    """
    rows = trace.complete((*cat.HOST, *cat.GPU))
    if not len(rows):
        if unread := unread_devices(trace.notes):
            problem = f"contains only events of devices that are not supported yet ({shortened(unread)})"
            raise NotATrace(trace.file, problem, "record the host's side, too, with ProfilerActivity.CPU")
        remedy = "record it with ProfilerActivity.CPU, and with CUDA if there is a GPU"
        raise NotATrace(trace.file, "contains no operator, call, annotation or GPU event", remedy)
    starts, ends = trace.spans(rows)
    start, end = starts.min(), ends.max()
    return Steps(np.array([start]), np.array([end + (end == start)]), zeros(1), rows[:0])


def _without_empty_last(trace: Trace, steps: Steps, notes: Notes) -> Steps:
    """Only the last step can be empty: the profiler opened it and the loop had ended."""
    start, end = int(steps.start[-1]), int(steps.end[-1])
    inside = (trace.ts >= start) & (trace.ts < end) & (trace.dur >= 0) & trace.is_of(cat.HOST)
    inside[steps.rows[-1]] = False
    if len(steps) == 1 or not trace.name_matches(PROFILER_STEP.match, np.flatnonzero(inside)).all():
        return steps
    notes.add("empty-step", f"the last step (#{steps.numbers[-1]}) is empty and was dropped")
    return rows_of(steps, np.arange(len(steps) - 1))
