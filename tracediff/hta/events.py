"""`Trace` → the columns that HTA's analyses work on, as its parser would make them of the same file."""

import re
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from tracediff.arrays import MISSING, Bools, Int64, all_none, int64_of, last_up_to, rows_with, stable_order
from tracediff.ingest.files.documents import NOT_JSON
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.times import number
from tracediff.ingest.model.trace import Codes, Trace, is_present
from tracediff.runtimes import COUNTER_CATEGORIES, UNSTREAMED_WAITS

HOST = (*cat.HOST, cat.GPU_ANNOTATION)
"""Categories that are on no stream, whatever stream they name: the host op of a Triton kernel names stream 0, and HTA
would take it for a kernel.
"""

STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})$")
OUTSIDE = -1


class Argument(NamedTuple):
    """The column ``name`` holds the argument ``raw`` as int, float or object, and ``default`` where an event has
    none.
    """

    name: str
    raw: str
    kind: type
    default: Any


class HtaEvents(Struct, kw_only=True):
    """The complete events of one rank in columns of equal length n, in the file's order.

    Attributes:
        names, categories: what the codes mean.
        index: int64[n] position in the file.
        ts, dur: int64[n] ns on the file's own clock.
        name, category: int32[n] codes.
        iteration: int64[n] number of the ProfilerStep, OUTSIDE where in none: of host events that in which they start,
            of GPU events that of their launch.
        on_gpu: bool[n] kernels, copies, memsets and waits on the GPU's side.
        pid, tid: int64[n].
        partner: int64[n] row of a GPU event's launch, or of what a call launched (the last of several), −1 where there
            is none.
        columns: the arguments, and ``index_correlation``: the index of the partner, 0 where that is not in the file, −1
            for events without correlation.
    """

    names: list[str]
    categories: list[str]
    index: Int64
    ts: Int64
    dur: Int64
    name: Codes
    category: Codes
    iteration: Int64
    on_gpu: Bools
    pid: Int64
    tid: Int64
    partner: Int64
    columns: dict[str, Any]

    @property
    def steps(self) -> tuple[Int64, Int64]:
        """(rows of the host's ProfilerSteps by start, their numbers), int64[s] each."""
        matches = (STEP.match(name) for name in self.names)
        number = int64_of([int(step[1]) if step else OUTSIDE for step in matches])[self.name]
        rows = np.flatnonzero((self.category == cat.ANNOTATION) & (number != OUTSIDE))
        rows = rows[stable_order(self.ts[rows])]
        return rows, number[rows]


def events_of(trace: Trace, arguments: list[Argument]) -> HtaEvents:
    """The events of ``trace`` that have a duration, less the profiler's own span.

    Args:
        arguments: which arguments become columns; among them are ``stream`` and ``correlation``.
    """
    rows = np.flatnonzero((trace.dur != MISSING) & (trace.category != cat.SPAN))
    name, category = trace.name[rows], trace.category[rows]
    columns = {a.name: _argument(trace, a)[rows] for a in (*arguments, *_counters(trace))}
    columns["stream"][np.isin(category, HOST)] = -1
    on_gpu = (columns["stream"] >= 0) & (columns["correlation"] >= 0) | trace.name_matches(
        UNSTREAMED_WAITS.__contains__
    )[rows]
    partner = _partners(columns["correlation"], on_gpu)
    columns["index_correlation"] = np.where(partner >= 0, rows[partner], np.minimum(columns["correlation"], 0))
    pid, tid = (_ids(trace, codes[rows]) for codes in (trace.pid, trace.tid))
    tid = np.where(on_gpu & (columns["stream"] >= 0), columns["stream"], tid)  # old profilers write "stream 7"
    events = HtaEvents(
        names=trace.names,
        categories=trace.categories,
        index=rows,
        ts=trace.ts[rows],
        dur=trace.dur[rows],
        name=name,
        category=category,
        iteration=all_none(len(rows)),
        on_gpu=on_gpu,
        pid=pid,
        tid=tid,
        partner=partner,
        columns=columns,
    )
    _number(events)
    return events


def rows_for_hta(events: HtaEvents, last_step: bool) -> Int64:
    """Rows of ``events`` in the order of HTA's frames: GPU events, then the host's, each as in the file; GPU
    annotations are last.

    Args:
        last_step: keep the last step, too. Without it, only what starts on the host before that step, and what was
            launched there, is kept.
    """
    start = _host_start(events)
    keep = np.ones(len(start), bool)
    steps, _ = events.steps
    if len(steps) > 1:
        last = steps[-1]
        keep = start <= events.ts[last] + events.dur[last] if last_step else start < events.ts[last]
    group = np.where(events.category == cat.GPU_ANNOTATION, 2, np.where(events.on_gpu, 0, 1))
    order = stable_order(group)
    return order[keep[order]]


def _host_start(events: HtaEvents) -> Int64:
    """int64[n]: when each event started on the host; of GPU events the start of their launch, beyond any time where
    that is not in the file.
    """
    launched = np.where(events.partner >= 0, events.ts[events.partner], np.iinfo(np.int64).max)
    start = np.where(events.on_gpu, launched, events.ts)
    ids = events.columns.get("external_id")
    if ids is not None:
        host, gpu = (np.flatnonzero((events.category == c) & (ids >= 0)) for c in (cat.ANNOTATION, cat.GPU_ANNOTATION))
        launch = rows_with(ids[host], host, ids[gpu])
        start[gpu[launch >= 0]] = events.ts[launch[launch >= 0]]
    return start


def _number(events: HtaEvents) -> None:
    """Fill in the iterations."""
    steps, numbers = events.steps
    if not len(steps):
        return
    position = last_up_to(events.ts[steps], events.ts)
    inside = (position >= 0) & (events.ts < (events.ts + events.dur)[steps][position])
    events.iteration = np.where(inside, numbers[position], OUTSIDE)
    launched = np.flatnonzero(events.columns["stream"] >= 0)
    launch = events.partner[launched]
    events.iteration[launched] = np.where(launch >= 0, events.iteration[launch], OUTSIDE)


def _partners(correlation: Int64, on_gpu: Bools) -> Int64:
    """int64[n]: row of the event on the other side with the same correlation, the last of several; −1 where there is
    none.
    """
    out = all_none(len(correlation))
    host, gpu = (np.flatnonzero((on_gpu == side) & (correlation != -1)) for side in (False, True))
    for mine, theirs in ((host, gpu), (gpu, host)):
        out[mine] = rows_with(correlation[theirs], theirs, correlation[mine])
    return out


def _ids(trace: Trace, codes: Codes) -> Int64:
    """int64[n]: the process or thread ids behind ``codes``, as HTA's call stacks need them; texts that are not numbers
    get negative ones of their own.
    """
    ids = [number(i.encode()) if isinstance(i, str) else i for i in trace.ids]
    return int64_of([i if isinstance(i, int) and abs(i) < 2**63 else -2 - k for k, i in enumerate(ids)])[codes]


def _counters(trace: Trace) -> list[Argument]:
    """The hardware counters of the file, each a column under its own name."""
    counters = [trace.arguments.get(trace.categories.index(c)) for c in COUNTER_CATEGORIES if c in trace.categories]
    names = {name for arguments in counters if arguments for name in arguments.columns}
    return [Argument(name, name, int, -1) for name in sorted(names)]


def _argument(trace: Trace, argument: Argument) -> Any:
    """The values of one argument for all events of the file."""
    column: Any = np.full(len(trace), argument.default, np.int64 if argument.kind is int else argument.kind)
    for arguments in trace.arguments.values():
        if (values := arguments.columns.get(argument.raw)) is not None:
            present = is_present(values)
            values = _values(trace.texts, values, argument) if values.dtype == np.int32 else values
            column[arguments.rows[present]] = values[present]
    return column


def _values(texts: list[str], codes: Codes, argument: Argument) -> Any:
    """The texts as values of the wanted kind; equal texts share one object."""
    used, inverse = np.unique(codes, return_inverse=True)
    values: Any = np.empty(len(used), object)
    for i, code in enumerate(used.tolist()):  # one by one: numpy would take lists of equal length for a table
        values[i] = argument.default if code < 0 else _value(texts[code], argument)
    return values[inverse]


def _value(text: str, argument: Argument) -> Any:
    if argument.kind is object:
        try:
            return msgspec.json.decode(text) if text.startswith("[") else text
        except NOT_JSON:
            return text
    value = number(text.encode())
    if value is None or (argument.kind is int and not abs(value) < 2**63):  # a pointer, where HTA expects a number
        return argument.default
    return argument.kind(value)
