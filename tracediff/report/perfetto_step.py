"""The events of one step → Chrome trace events: on rows where they nest, cut at the step's ends, with arrows from
launches to GPU events.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import msgspec
import numpy as np
from msgspec import field

from tracediff import bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.arrays import MISSING, Int64, Spans, last_equal, mapped, stacked, tuples
from tracediff.errors import TracediffError, printable
from tracediff.ingest.json.arguments import FLOW_ID
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace, is_present
from tracediff.ingest.read import read_trace
from tracediff.profile.placement.gpu_events import gpu_events
from tracediff.profile.placement.nesting import lane_of
from tracediff.profile.placement.steps import whole_file
from tracediff.structs import FrozenStruct

FOLDERS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^/\\\s\"',;:()]+[/\\])+")
"""Of paths in arguments, such as the compiler's cache of a user."""
ON_GPU = (*cat.GPU, cat.GPU_ANNOTATION)
LEFT_OUT = (cat.SPAN, cat.METADATA, cat.COUNTER)

Event = dict[str, Any]
Key = tuple[bool, int, int]
"""A row of a thread or stream: whether it is a GPU's, its thread as `Trace.thread`, its level."""
encoded = msgspec.json.Encoder().encode


class Ids(FrozenStruct):
    """Numbers of processes, threads and arrows that are new in the file: Perfetto takes equal thread ids of two
    processes for one thread.
    """

    process: Iterator[int] = field(default_factory=lambda: count(1))
    thread: Iterator[int] = field(default_factory=lambda: count(100_001))
    arrow: Iterator[int] = field(default_factory=lambda: count(1))


class StepEvents(FrozenStruct):
    """The events of one side.

    Attributes:
        lines: Chrome trace events as JSON.
        count: how many events of the trace they show.
        left_out: how many Python functions they do not.
    """

    lines: list[bytes]
    count: int
    left_out: int


class PlacedEvents(Spans, kw_only=True):
    """Where n events of a trace are shown.

    Attributes:
        rows: int64[n] of the trace. level: int64[n] which of the rows of their thread or stream.
        start, end: int64[n] in ns after the step's start, within the step.
    """

    rows: Int64
    level: Int64


def bounded_text(text: str) -> str:
    """``text`` on one line and of bounded length."""
    return printable(text if len(text) <= bounds.PERFETTO_TEXT else text[: bounds.PERFETTO_TEXT - 1] + "…")


def us(ns: int) -> msgspec.Raw:
    """Nanoseconds as microseconds in decimal text, exactly."""
    whole, rest = divmod(abs(ns), 1000)
    return msgspec.Raw(f"{'-' if ns < 0 else ''}{whole}.{rest:03d}".encode())


SPAN, MARK, AMOUNT = {"ph": "X"}, {"ph": "i", "s": "t"}, {"ph": "C"}
"""Kinds of events, as they begin."""


def placed_event(kind: Event, name: str, category: str, place: dict[str, int], start: int, **more: object) -> Event:
    """An event of ``kind`` at ``start``, in ns, in the row ``place``; its name is bounded already."""
    return {**kind, "name": name, "cat": category, **place, "ts": us(start), **more}


def process_events(pid: int, name: str, labels: str = "") -> Iterator[Event]:
    """The name of a process, and its sort position, which is its number."""
    place = {"pid": pid, "tid": pid}
    yield {"ph": "M", "name": "process_name", **place, "args": {"name": bounded_text(name)}}
    if labels:
        yield {"ph": "M", "name": "process_labels", **place, "args": {"labels": bounded_text(labels)}}
    yield {"ph": "M", "name": "process_sort_index", **place, "args": {"sort_index": pid}}


def thread_events(pid: int, tid: int, name: str) -> Iterator[Event]:
    """The name of a thread, and its sort position."""
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": bounded_text(name)}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def step_events(step: TypicalStep, title: str, ids: Ids) -> StepEvents:
    """The events that overlap the period of ``step``, of all its threads and streams; ``title`` begins the names of its
    processes.

    Raises:
        TracediffError: the file cannot be read any more, or the step has too many events besides its Python
            functions.
    """
    trace = read_trace(step.file)
    window = step.timeline.start, step.timeline.end
    rows, left_out = _select_rows(trace, window)
    placed = _place_events(trace, rows, window)
    labels = f"step {step.timeline.step}, rank {step.rank}, {step.file.name}"
    lines = [encoded(event) for event in _events(trace, placed, window[0], title, labels, ids)]
    return StepEvents(lines, len(rows), left_out)


def _select_rows(trace: Trace, window: tuple[int, int]) -> tuple[Int64, int]:
    """Rows of the complete events and instants in ``window``, and how many Python functions were left out."""
    start, end = window
    complete = (trace.dur >= 0) & (trace.ts < end) & (trace.ts + trace.dur.clip(0) > start)
    marks = [code for code, phase in enumerate(trace.phases) if phase in ("i", "I")]
    instant = (np.isin(trace.phase, marks) | (trace.dur == 0)) & (trace.ts >= start) & (trace.ts < end)
    rows = np.flatnonzero((complete | instant) & ~trace.is_of(LEFT_OUT))
    if len(rows) <= bounds.PERFETTO_EVENTS:
        return rows, 0
    without_python = rows[trace.category[rows] != cat.PYTHON]
    if len(without_python) > bounds.PERFETTO_EVENTS:
        limit = f"the limit of a merged trace ({bounds.PERFETTO_EVENTS:,})"
        reason = f"its step has {len(without_python):,} events, more than {limit}"
        raise TracediffError(trace.file, reason, "choose a shorter step with --step, or record fewer kinds of events")
    return without_python, len(rows) - len(without_python)


def _place_events(trace: Trace, rows: Int64, window: tuple[int, int]) -> PlacedEvents:
    """``rows`` on rows of threads and streams: host first, outer before inner. Viewers drop events that overlap another
    without nesting.
    """
    parts = []
    gpu = trace.is_of(ON_GPU)
    complete = trace.dur[rows] >= 0
    for remaining in (rows[complete & ~gpu[rows]], rows[complete & gpu[rows]]):
        for row in range(bounds.PERFETTO_ROWS):
            lane = lane_of(trace, remaining, Notes())
            fits = (lane.end == trace.ts[lane.rows] + trace.dur[lane.rows]) | (row == bounds.PERFETTO_ROWS - 1)
            parts.append((lane.rows[fits], lane.end[fits], row))
            remaining = lane.rows[~fits]
            if not len(remaining):
                break
    parts.append((rows[~complete], trace.ts[rows[~complete]], 0))
    all_rows, ends, level = stacked(*parts)
    start, end = (np.clip(times, *window) - window[0] for times in (trace.ts[all_rows], ends))
    return PlacedEvents(start, end, rows=all_rows, level=level)


def _threads(trace: Trace, rows: Int64) -> Int64:
    """As `Trace.thread`; instants join the thread whose id is spelled alike: torch 1.8 and 1.9 write it as a number
    there, as text elsewhere.
    """
    threads = trace.thread(rows)
    complete = trace.dur[rows] >= 0

    def spelled(code: int) -> tuple[int | str | None, str]:
        process, thread = trace.ids_of(code)
        return process, str(thread)

    spans = {spelled(code): code for code in np.unique(threads[complete]).tolist()}
    threads[~complete] = mapped(threads[~complete], lambda code: spans.get(spelled(code), code))
    return threads


def _events(trace: Trace, placed: PlacedEvents, zero: int, title: str, labels: str, ids: Ids) -> Iterator[Event]:
    keys: list[Key] = list(tuples(trace.is_of(ON_GPU, placed.rows), _threads(trace, placed.rows), placed.level))
    tracks, name_events = _tracks(trace, keys, title, labels, ids)
    yield from name_events
    begins, ends = _arrows(trace, placed, ids)
    names = {code: bounded_text(trace.names[code]) for code in np.unique(trace.name[placed.rows]).tolist()}
    categories = [*map(bounded_text, trace.categories)]
    recorded = (column[placed.rows] for column in (trace.name, trace.category, trace.ts, trace.dur))
    columns = tuples(placed.rows, placed.start, placed.end, *recorded)
    arguments = _arguments(trace, placed.rows)
    for key, args, (row, start, end, name, category, ts, dur) in zip(keys, arguments, columns, strict=True):
        pid, tid = tracks[key]
        place = {"pid": pid, "tid": tid}
        what = names[name], categories[category], place, start
        if dur == MISSING:
            yield placed_event(MARK, *what, args=args)
            continue
        if (start, end - start) != (ts - zero, dur):
            args |= {"recorded start (µs)": us(ts - zero), "recorded duration (µs)": us(dur)}
        yield placed_event(SPAN, *what, dur=us(end - start), args=args)
        # right behind the event that an arrow begins at, or a child of the same start gets it
        arrows = [{"ph": "s", "id": number} for number in begins.get(row, ())]
        arrows += [{"ph": "f", "bp": "e", "id": ends[row]}] if row in ends else []
        for arrow in arrows:
            yield placed_event(arrow, "launch", "launch", place, start)


def _tracks(
    trace: Trace, keys: list[Key], title: str, labels: str, ids: Ids
) -> tuple[dict[Key, tuple[int, int]], list[Event]]:
    """The (pid, tid) of each key, and the events that name them."""
    processes = {}
    tracks = {}
    events: list[Event] = []
    for gpu, code, level in sorted(set(keys), key=lambda key: (key[0], *map(_order, trace.ids_of(key[1])), key[2])):
        process, thread = trace.ids_of(code)
        half = gpu, process
        if half not in processes:
            processes[half] = next(ids.process)
            events += process_events(processes[half], f"{title}, {'GPU' if gpu else 'process'} {process}", labels)
        pid, tid = tracks[gpu, code, level] = processes[half], next(ids.thread)
        is_name = isinstance(thread, str) and not thread.isdigit()
        name = thread if is_name else f"{'stream' if gpu else 'thread'} {thread}"
        events += thread_events(pid, tid, f"{name}, overlapping {level}" if level else f"{name}")
    return tracks, events


def _order(number: int | str | None) -> tuple[bool, int, str]:
    """By number where it is one, texts behind."""
    return (False, number, "") if isinstance(number, int) else (True, 0, str(number))


def _arrows(trace: Trace, placed: PlacedEvents, ids: Ids) -> tuple[dict[int, list[int]], dict[int, int]]:
    """(row of a launch → the arrows that begin there, row of a GPU event → the arrow that ends there), where both are
    shown in this order.
    """
    starts: dict[int, int] = dict(tuples(placed.rows, placed.start))
    begins: defaultdict[int, list[int]] = defaultdict(list)
    ends = {}
    gpu = gpu_events(trace, whole_file(trace), Notes())
    for row, launch in tuples(gpu.rows, gpu.launch):
        if row in starts and launch in starts and starts[launch] <= starts[row]:
            ends[row] = next(ids.arrow)
            begins[launch].append(ends[row])
    return begins, ends


def _arguments(trace: Trace, rows: Int64) -> list[Event]:
    """The arguments of each of ``rows`` by name; texts without folders."""
    out: list[Event] = [{} for _ in range(len(rows))]

    @cache
    def text(code: int) -> str:
        return bounded_text(FOLDERS.sub("", trace.texts[code]))

    for category in np.unique(trace.category[rows]).tolist():
        arguments = trace.arguments.get(category)
        if arguments is None:
            continue
        targets = np.flatnonzero(trace.category[rows] == category)
        position = last_equal(arguments.rows, rows[targets])
        targets, position = targets[position >= 0], position[position >= 0]
        numbers = arguments.of_type(np.int64) | arguments.of_type(np.float64)
        for name, column in (numbers | arguments.of_type(np.int32)).items():
            values = column[position]
            present = is_present(values) & np.isfinite(values) & (name not in numbers or name != FLOW_ID)
            for i, value in tuples(targets[present], values[present]):
                out[i][bounded_text(name)] = value if name in numbers else text(value)
    return out
