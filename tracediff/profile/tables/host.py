"""Tables of the host: what it does while no GPU works, data loading, synchronisations, Python functions, modules."""

import re
from collections.abc import Callable

import numpy as np

from tracediff import bounds
from tracediff.arrays import (
    Bools,
    Int64,
    Intervals,
    all_none,
    combined,
    cut,
    grouped,
    int64_of,
    sorted_by,
    stacked,
    tuples,
    with_ancestors,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.profile.events.context import Context
from tracediff.profile.events.step_states import GPU_STATES, STATES, state_label, thread_order
from tracediff.profile.kernels.match_names import match_name, matched
from tracediff.profile.model.profile import TableRows
from tracediff.profile.placement.calls import OP, Calls, ModulePaths, module_labels, modules_of
from tracediff.profile.placement.nesting import NOTHING, Lane, Painting, overlaid
from tracediff.profile.placement.scopes import is_loading, module_lane, outside_torch, paths_of
from tracediff.profile.placement.steps import PROFILER_STEP
from tracediff.profile.tables.schema import Key, TableSchema, read_columns, read_rates, summed
from tracediff.runtimes import is_synchronising

IDLE_KINDS = ("operator", "Python", "annotation", "runtime call", "nothing recorded")

IDLE = TableSchema(
    "idle",
    "Host while no GPU works",
    "What the host does in the states of the step in which no GPU works (without GPU events: in all states): the "
    "innermost operator or runtime call, on the thread of the steps first; where none is open, the innermost Python "
    "function of that thread, or else its innermost annotation. The caller is the innermost "
    "function around it that is in a Python file outside of torch, on the same thread. The rows of a state add up to "
    "it.",
    keys=("state", "host", "kind", "caller"),
    columns=read_columns("time  ns  time"),
    labels={"state": state_label},
)


def idle_rows(context: Context) -> TableRows:
    """Rows by state and what the host does. Time counts in the period in which it lies."""
    account = context.account
    idle = np.flatnonzero(account.painting.rows >= len(GPU_STATES))
    start, end, state = account.painting.times[idle], account.painting.times[idle + 1], account.painting.rows[idle]
    host, python, own = _host(context)
    interval, row, low, high = host.cut(start, end)
    step = np.searchsorted(context.completions, start, side="right")[interval] - 1
    caller = np.where(
        _on_thread(context, own)[row],
        outside_torch(context.lanes.python)[python.rows_at(low)],
        -1,
    )
    caller[caller == row] = -1
    name, text = np.append(context.trace.name, -1), matched(context.trace.names)
    keys: list[Key] = [
        (state[interval], account.names),
        (name[row], text),
        (_idle_kind(context, row), IDLE_KINDS),
        (name[caller], text),
    ]
    return summed(step, keys, [high - low])


def _on_thread(context: Context, thread: int) -> Bools:
    """bool[rows of the trace + 1]: whether Python or an operator or call of ``thread``; the last is of no row."""
    is_on_thread = np.zeros(len(context.trace) + 1, bool)
    for lane in (context.ops, context.lanes.python):
        is_on_thread[lane.rows[lane.thread == thread]] = True
    return is_on_thread


def _host(context: Context) -> tuple[Painting, Painting, int]:
    """The row that says best what the host does at each instant, the Python function on the thread of the steps, and
    that thread.
    """
    ops, annotations, python = context.lanes
    threads = thread_order(context)
    own = int([*context.trace.thread(context.steps.rows), *threads, -1][0])
    host = NOTHING
    for thread in list(dict.fromkeys((own, *threads)))[: 1 + bounds.IDLE_THREADS]:
        host = overlaid(host, ops.innermost(ops.thread == thread))
    functions = python.innermost(python.thread == own)
    is_annotation = (annotations.thread == own) & ~np.isin(annotations.rows, context.steps.rows)
    return overlaid(overlaid(host, functions), annotations.innermost(is_annotation)), functions, own


def _idle_kind(context: Context, row: Int64) -> Int64:
    kinds = np.full(len(context.trace) + 1, IDLE_KINDS.index("nothing recorded"), np.int64)  # the last is of no row
    for kind, lane in zip(("operator", "annotation", "Python"), context.lanes, strict=True):
        kinds[lane.rows] = IDLE_KINDS.index(kind)
    kinds[:-1][context.trace.is_of(cat.CALLS)] = IDLE_KINDS.index("runtime call")
    return kinds[row]


LOADING = TableSchema(
    "loading",
    "Data loading",
    "DataLoader annotations: how long they are open, and for how much of that time the step's state is data_loading. "
    "Exposed: the GPU runs nothing and has no launched work.",
    keys=("annotation",),
    columns=read_columns("""
        exposed  ns     exposed
        time     ns     time
        calls    count  calls
    """),
    rates=read_rates("mean_us  time / calls  1e-3  mean µs"),
)


def loading_rows(context: Context) -> TableRows:
    """Rows by annotation. Time and calls count in the step in which the annotation begins, exposed time in the period
    in which it lies; where several annotations are open, it counts for the first.
    """
    trace, lane, account = context.trace, context.lanes.annotations, context.account
    loaders = np.flatnonzero(lane.matches(is_loading))
    rows = lane.rows[sorted_by(loaders, lane.start)]
    start, end = trace.spans(rows)
    previous_end = np.concatenate((start[:1], np.maximum.accumulate(end)))[: len(rows)]
    loading = np.flatnonzero(account.painting.rows == STATES.index("data_loading"))
    waiting = Intervals(account.painting.times[loading], account.painting.times[loading + 1])
    which, period, low, high = cut(np.maximum(start, previous_end), end, context.completions)
    step, row, *columns = stacked(
        (context.steps.positions_at(start), rows, 0, trace.dur[rows], 1),
        (period, rows[which], waiting.length_before(high) - waiting.length_before(low), 0, 0),
    )
    return summed(step, [(trace.name[row], matched(trace.names))], columns)


SOURCE_LINE = re.compile(r"\(\d+\): ")
"""Matches Python functions with a file; built-in functions and modules have none."""
AROUND = " > "

SYNCHRONISATIONS = TableSchema(
    "synchronisations",
    "Synchronisations",
    "Calls in which the host waits for the GPU, by call site: the operators around the call, outermost first; the "
    "three innermost Python functions with a source line; and the innermost annotation. A field is empty if nothing of "
    "its kind is around the call or was recorded.",
    keys=("call", "operators", "python", "annotation"),
    columns=read_columns("""
        time   ns     time
        calls  count  calls
    """),
    rates=read_rates("mean_us  time / calls  1e-3  mean µs"),
)


def synchronisations_rows(context: Context) -> TableRows:
    """Rows by call and call site; if one such call is inside another, only the outer counts."""
    trace, ops = context.trace, context.ops
    waits = (ops.category != cat.CPU_OP) & ops.matches(is_synchronising)
    waiting = np.flatnonzero(waits & ~((ops.parent >= 0) & waits[ops.parent]))
    step = context.steps.positions_at(ops.start[waiting])
    keys: list[Key] = [
        (ops.name[waiting], trace.names),
        (np.where(step >= 0, context.calls.node[waiting], -1), lambda node: _path(trace, context.calls, node)),
        _innermost_of(context, waiting, context.lanes.python, SOURCE_LINE.search, bounds.PYTHON_FRAMES),
        _innermost_of(context, waiting, context.lanes.annotations, lambda name: not PROFILER_STEP.match(name), 1),
    ]
    return summed(step, keys, [trace.dur[ops.rows[waiting]], 1])


def _innermost_of(
    context: Context, positions: Int64, lane: Lane, matches: Callable[[str], object], most: int
) -> tuple[Int64, list[str]]:
    """(code of the innermost ``most`` scopes of ``lane`` around each of the ops at ``positions`` whose names match
    ``matches``, the texts that the codes index).
    """
    trace, ops = context.trace, context.ops
    name = np.append(lane.name, -1)
    outer = np.append(lane.parent, -1)
    matching = np.append(lane.nearest(lane.matches(matches)), -1)
    innermost = [matching[lane.enclosing(ops.thread[positions], ops.start[positions])]]
    while len(innermost) < most:
        innermost.append(matching[outer[innermost[-1]]])
    code, first = combined(*(name[f] for f in innermost))
    chains = zip(*(name[f][first].tolist() for f in innermost), strict=True)
    return code, [AROUND.join(match_name(trace.names[n]) for n in reversed(chain) if n >= 0) for chain in chains]


def _path(trace: Trace, calls: Calls, node: int) -> str:
    """The operators at and around ``node`` of the calls, outermost first."""
    names: list[str] = []
    while node >= 0 and calls.table.kind[node] == OP:
        names.append(match_name(trace.names[calls.table.name[node]]))
        node = int(calls.table.parent[node])
    return AROUND.join(reversed(names))


PYTHON = TableSchema(
    "python",
    "Python functions",
    "Time in Python functions on all threads. Self excludes the Python functions called; total counts every level of a "
    "recursion. Operators and runtime calls are not Python functions: their time counts in the function around them.",
    keys=("function", "kind"),
    columns=read_columns("""
        self   ns     self
        total  ns     total
        calls  count  calls
    """),
    rates=read_rates("mean_us  total / calls  1e-3  mean µs"),
)


def python_rows(context: Context) -> TableRows:
    """Rows by function, without addresses of objects; a call counts in the step in which it begins."""
    names, lane = context.trace.names, context.lanes.python
    name = lane.name
    keys: list[Key] = [(name, matched(names)), (name, lambda code: _kind(names[code]))]
    return summed(context.steps.positions_at(lane.start), keys, [lane.self_ns, lane.ns, 1])


def _kind(name: str) -> str:
    if name.startswith("nn.Module: "):
        return "nn.Module"
    return "built-in" if name.startswith("<built-in ") else "function"


OUTSIDE = "outside modules"

HOST_MODULES = TableSchema(
    "host_modules",
    "Host time by module",
    "Host time of operators and runtime calls by the nn.Module they belong to, forward and backward. Self: operators "
    "of the module itself; total: with the modules inside it. Calls: forward calls of the module.",
    keys=("module",),
    columns=read_columns("""
        self       ns     self
        total      ns     total
        operators  count  operators
        calls      count  module calls
    """),
)


def host_modules_rows(context: Context) -> TableRows:
    """Rows by module path; empty if the trace has no modules. Self times add up to those of all operators and calls in
    the steps.
    """
    ops, calls, lane = context.ops, context.calls, module_lane(context.trace)
    of_call, recorded = paths_of(lane)
    paths = {path: number for number, path in enumerate(recorded)}
    of_node = int64_of(modules_of(tuples(calls.table.parent, calls.table.kind, calls.table.name), paths))
    step = context.steps.positions_at(ops.start) if paths else all_none(len(ops.rows))
    module = np.where(step >= 0, of_node[calls.node], -1)
    (at_step, module), (self_ns, operators) = grouped([step, module], [ops.self_ns, calls.operator])
    which, around = with_ancestors(int64_of([parent for parent, _ in paths]), module)
    step, module, *columns = stacked(
        (at_step, module, self_ns, np.where(module < 0, self_ns, 0), operators, 0),
        (at_step[which], around, 0, self_ns[which], 0, 0),
        (context.steps.positions_at(lane.start), of_call, 0, 0, 0, 1),
    )
    return summed(step, [(module + 1, [OUTSIDE, *_module_texts(context.trace.names, paths)])], columns)


def _module_texts(names: list[str], paths: ModulePaths[int]) -> list[str]:
    """The text of each path, labelled as in the other tables."""
    labels = module_labels((number, parent, names[name]) for (parent, name), number in paths.items())
    texts: list[str] = []
    for (parent, _), number in paths.items():
        texts.append(f"{texts[parent]}/{labels[number]}" if parent >= 0 else labels[number])
    return texts
