"""Tables of memory: how much is allocated, by whom at the peak; and counters, values over time that tools add to a
trace.
"""

import math
import re
from collections.abc import Iterator

import numpy as np

from tracediff.arrays import (
    MISSING,
    Floats,
    Int64,
    Rows,
    combined,
    cut,
    int64_of,
    last_up_to,
    mapped,
    stacked,
    tuples,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Arguments, Trace, is_present
from tracediff.profile.analyses.allocations import Allocations, allocations, blocks, devices
from tracediff.profile.events.context import Context
from tracediff.profile.model.profile import TableRows
from tracediff.profile.placement.calls import MODULE, module_labels
from tracediff.profile.placement.scopes import PHASES
from tracediff.profile.tables.schema import TableSchema, read_columns, read_rates, summed

MEMORY = TableSchema(
    "memory",
    "Memory",
    "Per step and device: peak allocated and peak reserved memory, the memory still allocated at the end of the step, "
    "and the bytes allocated and freed. Churn: bytes allocated in the step divided by the peak. Needs "
    "profile_memory=True. Reserved memory is not recorded for the host, nor by torch before 1.11 (shown as 0).",
    keys=("device",),
    columns=read_columns("""
        peak         bytes  peak allocated
        reserved     bytes  peak reserved
        end          bytes  allocated at the end
        allocated    bytes  allocated
        freed        bytes  freed
        allocations  count  allocations
        frees        count  frees
        failed       count  out-of-memory events
    """),
    rates=read_rates("churn  allocated / peak  1  churn"),
    arguments=("Total Reserved",),
)


def memory_rows(context: Context) -> TableRows:
    """Rows by device; a step without allocations and frees keeps the memory of the steps before it."""
    steps, devices_of_file = context.steps, allocations(context.trace)
    parts: list[Rows] = [(zeros(0),) * (2 + len(MEMORY.columns))]
    for k, device in enumerate(devices_of_file):
        low, high = steps.ranges(device.time)
        reserved = np.array([device.reserved[a : b + 1].max() for a, b in tuples(low, high)])
        peak, change = device.allocated[device.peaks(steps)], device.change
        parts.append((np.arange(len(steps)), k, peak, reserved, device.allocated[high], 0, 0, 0, 0, 0))
        born, died = np.maximum(change, 0), np.maximum(-change, 0)
        parts.append((steps.positions_at(device.time), k, 0, 0, 0, born, died, change > 0, change < 0, 0))
        parts.append((steps.positions_at(device.failed), k, 0, 0, 0, 0, 0, 0, 0, 1))
    step, key, *columns = stacked(*parts)
    return summed(step, [(key, devices(devices_of_file))], columns)


MEMORY_HOLDERS = TableSchema(
    "memory_holders",
    "Memory by holder",
    "Bytes and blocks in use at the device's peak within the step, by the operator that allocated them, its phase and "
    "its module. The operator is the innermost one that does more than allocate (not aten::empty). The bytes add up to "
    "the peak. Allocated: all bytes allocated in the step, in use at the peak or not.",
    keys=("device", "phase", "operator", "module"),
    columns=read_columns("""
        held         bytes  at the peak
        blocks       count  blocks at the peak
        allocated    bytes  allocated
        allocations  count  allocations
    """),
    arguments=("Addr",),
)  # fmt: skip

Place = tuple[str, str, str]
"""Phase, operator and module."""
BEFORE, NOWHERE = "(before the capture)", "(no operator)"
NO_EVENT = "(no event)"
"""Changes of the recorded total without an allocation event; negative where more was freed than is recorded."""
NO_ADDRESS = "(unknown: no addresses recorded)"
ALLOCATES = re.compile(r"^aten::(?:new_)?(?:empty\w*|resize_)$")
"""Operators that only allocate memory, for the operator around them."""


def memory_holders_rows(context: Context) -> TableRows:
    """Rows by device and place of the allocation."""
    devices_of_file = allocations(context.trace)
    places: list[tuple[str, ...]] = []
    parts: list[Rows] = [(zeros(0),) * 6]
    for name, device in zip(devices(devices_of_file), devices_of_file, strict=True):
        place, own_places = _places(context, device)
        place += len(places)
        places += ((name, *own) for own in own_places)
        parts += _at_peaks(device, device.peaks(context.steps), place, len(places))
        places += ((name, "", text, "") for text in (BEFORE, NO_EVENT, NO_ADDRESS))
        born = np.flatnonzero(device.change > 0)
        step = context.steps.positions_at(device.time[born])
        parts.append((step, place[born], 0, 0, device.change[born], 1))
    step, key, *columns = stacked(*parts)
    return summed(step, [(key, [place[k] for place in places]) for k in range(len(MEMORY_HOLDERS.keys))], columns)


def _at_peaks(device: Allocations, peaks: Int64, place: Int64, before: int) -> Iterator[Rows]:
    """Step, place and columns of what is in use at the peak of each step: the blocks by the place of their event, and
    from ``before`` on the places of what was allocated before the capture, of what no event explains, and of all where
    addresses are missing.
    """
    has_addresses = device.has_totals and (device.address != MISSING).all()
    event, last, size = blocks(device)
    for step, peak in enumerate(peaks.tolist()):
        amounts = np.array([0, 0, device.allocated[peak]])
        if has_addresses:
            alive = np.flatnonzero((event >= 0) & (event < peak) & (last >= peak))
            yield np.full(len(alive), step), place[event[alive]], size[alive], 1, 0, 0
            old = max(device.allocated[0] - size[(event < 0) & (last < peak)].sum(), 0)
            amounts = np.array([old, device.allocated[peak] - old - size[alive].sum(), 0])
        some = np.flatnonzero(amounts)
        yield np.full(len(some), step), before + some, amounts[some], 0, 0, 0


def _places(context: Context, device: Allocations) -> tuple[Int64, list[Place]]:
    """(int64[m] place of each event, the places' phase, operator and module)."""
    position, names = _operators(context, device), context.trace.names
    node = values_at(context.calls.node, position)
    name = values_at(context.ops.name, position)
    code, first = combined(node, name)
    scopes = _scopes(context)
    number: dict[Place, int] = {}
    of_code = []
    for scope_node, name_code in tuples(node[first], name[first]):
        phase, module = scopes[scope_node]
        of_code.append(number.setdefault((phase, names[name_code] if name_code >= 0 else NOWHERE, module), len(number)))
    return int64_of(of_code)[code], list(number)


def _operators(context: Context, device: Allocations) -> Int64:
    """int64[m] position in the ops lane of the operator that each allocation is attributed to, −1 for none: the
    innermost operator that does more than allocate, else the innermost.
    """
    ops = context.ops
    innermost = ops.enclosing(_threads(context, device), device.time)
    is_caller = context.calls.operator & ~ops.matches(ALLOCATES.match)
    position = values_at(ops.nearest(is_caller), innermost)
    is_operator = np.append(ops.category == cat.CPU_OP, False)[innermost]
    return np.where(position >= 0, position, np.where(is_operator, innermost, -1))


def _threads(context: Context, device: Allocations) -> Int64:
    """int64[m] thread code of each event in the ops lane's numbering: old profilers write the id of one thread both as
    text and as a number.
    """
    trace, ops = context.trace, context.ops

    def text(code: int) -> tuple[str, ...]:
        return tuple(map(str, trace.ids_of(code)))

    thread_of_text = {text(code): code for code in np.unique(ops.thread).tolist()}
    return mapped(trace.thread(device.rows), lambda code: thread_of_text.get(text(code), -1))


def _scopes(context: Context) -> list[tuple[str, str]]:
    """(phase, path of modules) of each node, and at last of none."""
    calls, names = context.calls.table, context.trace.names
    modules = np.flatnonzero(calls.kind == MODULE).tolist()
    labels = module_labels((k, int(calls.parent[k]), names[calls.name[k]]) for k in modules)
    scopes: list[tuple[str, str]] = []
    for node, (parent, name) in enumerate(tuples(calls.parent, calls.name)):
        phase, path = scopes[parent] if parent >= 0 else (PHASES[name], "")
        scopes.append((phase, "/".join(filter(None, (path, labels.get(node))))))
    return [*scopes, (PHASES[-1], "")]


LARGEST = 2.0**61
"""Limit of a value times the length of the file in ns; larger values count as unknown, so that sums fit int64."""

COUNTERS = TableSchema(
    "counters",
    "Counters",
    "Counter values over the period of each step. A sample applies until the next sample of its series. The mean is "
    "taken over the time for which a value is known.",
    keys=("counter", "series"),
    columns=read_columns("""
        known     ns     time with a value
        integral  count  value × ns
        samples   count  samples
    """),
    rates=read_rates("mean  integral / known  1  mean"),
)


def counters_rows(context: Context) -> TableRows:
    """Rows by counter and series; empty if the trace has no counters. The value is unknown before the first sample and
    after the last.
    """
    trace, borders = context.trace, context.completions
    rows, series, value, names = _samples(trace)
    order = np.lexsort((rows, trace.ts[rows], series, trace.pid[rows], trace.name[rows]))
    rows, series, value = rows[order], series[order], value[order]
    track, _ = combined(trace.name[rows], trace.pid[rows], series)
    follows = np.flatnonzero(track[1:] == track[:-1])
    start, end = trace.ts[rows[follows]], trace.ts[rows[follows + 1]]
    fits = np.abs(value[follows]) < LARGEST / max(int(borders[-1] - borders[0]), 1)
    which, period, low, high = cut(start[fits], end[fits], borders)
    lasting = follows[fits][which]
    integral = np.rint(value[lasting] * (high - low)).astype(np.int64)
    own_period = np.where(trace.ts[rows] < borders[-1], last_up_to(borders, trace.ts[rows]), -1)
    step, sample, *columns = stacked(
        (period, lasting, high - low, integral, 0), (own_period, np.arange(len(rows)), 0, 0, 1)
    )
    return summed(step, [(trace.name[rows[sample]], trace.names), (series[sample], names)], columns)


def _samples(trace: Trace) -> tuple[Int64, Int64, Floats, list[str]]:
    """(row, series code and value (or NaN) of each sample, series names)."""
    counters = trace.arguments.get(cat.COUNTER, Arguments(zeros(0)))
    numbers = np.array([*map(_number, trace.texts), math.nan])
    columns = {name: np.where(is_present(column), column, math.nan) for name, column in counters.columns.items()}
    columns |= {name: numbers[column] for name, column in counters.of_type(np.int32).items()}
    names = sorted(columns)
    values = np.array([columns[name] for name in names]).reshape(len(names), len(counters.rows))
    series, place = np.nonzero(~np.isnan(values))
    return counters.rows[place], series, values[series, place], names


def _number(text: str) -> float:
    try:
        return float(text.replace("_", "?"))  # Python would take 1_0 for 10
    except ValueError:
        return math.nan
