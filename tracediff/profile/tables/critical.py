"""Critical path: the operators, calls and kernels that each step waits for (docs/tables/critical.md)."""

from collections.abc import Iterator

import numpy as np

from tracediff.arrays import Int64, cut, distinct, numbered_texts, stacked, union
from tracediff.ingest.model import categories as cat
from tracediff.profile.analyses.critical_path import CriticalPath, SourceNumbers, critical_path
from tracediff.profile.events.context import Context
from tracediff.profile.events.step_states import state_label
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model.profile import TableRows
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.tables.schema import TableSchema, read_columns, read_rates, summed
from tracediff.runtimes import ARGUMENT

KINDS = ("gpu_compute", "gpu_comm", "gpu_copy", "queue", "op", "call", "python", "unknown")
QUEUE, OP, CALL, PYTHON, UNEXPLAINED = range(KINDS.index("queue"), len(KINDS))
NOT_IN_FILE, NOT_RECORDED = "launch not in the file", "nothing recorded"

CRITICAL = TableSchema(
    "critical",
    "Critical path",
    "The chain of events that each step's completion waited for, followed back to the completion of the step before. "
    "Every instant is charged to one GPU event, its time in the queue, an operator, a runtime call or Python code, so "
    "that the times on the path add up to the period. “In the period” is all time under the same name: self time for "
    "operators and calls; for queues the time in which at least one launched event waits. Shortening work that is not "
    "on the path does not shorten the step.",
    keys=("kind", "name"),
    columns=read_columns("""
        critical  ns  on the path
        total     ns  in the period
    """),
    rates=read_rates("on_path_percent  critical / total  100  % on the path"),
    arguments=(ARGUMENT.awaited_stream, ARGUMENT.awaited_record),
    labels={"name": display_name, "kind": state_label},
)

Parts = tuple[Int64, Int64, Int64]
"""Parts of the period: position of the step, code of (kind, name), duration in ns."""


Labels = Int64
"""Codes of (kind, name): index into KINDS × number of texts + index into texts."""


def critical_rows(context: Context) -> TableRows:
    """Rows by kind and match name, so that names that differ in counters or addresses agree between the sides."""
    path = critical_path(context)
    labels, texts = _labels(context.gpu)
    critical = (*_on_path(path, labels), 0)
    total = ((step, label, 0, ns) for step, label, ns in _in_period(path, SourceNumbers(context), labels))
    step, label, *columns = stacked(critical, *total)
    return summed(step, [(label // len(texts), KINDS), (label % len(texts), texts)], columns)


def _labels(gpu: GpuEvents) -> tuple[Labels, list[str]]:
    """(the label of each source (`SourceNumbers`), the texts)."""
    trace = gpu.trace
    place, names = numbered_texts(map(match_name, trace.names))
    texts = [*names, NOT_IN_FILE, NOT_RECORDED]
    size, name = len(texts), place[trace.name]
    rows = np.append(_kinds(gpu) * size + name, PYTHON * size + texts.index(NOT_RECORDED))
    queues = QUEUE * size + np.where(gpu.launch >= 0, name[gpu.launch], texts.index(NOT_IN_FILE))
    unknown = UNEXPLAINED * size + texts.index(NOT_IN_FILE)
    return np.concatenate((rows, rows[gpu.rows], queues, queues, [unknown])), texts


def _kinds(gpu: GpuEvents) -> Int64:
    """int64[n] index into KINDS of each event; events other than operators, calls and GPU events count as Python."""
    kind = np.full(len(gpu.trace.categories), PYTHON, np.int64)
    kind[cat.CPU_OP], kind[list(cat.CALLS)] = OP, CALL
    kinds = kind[gpu.trace.category]
    kinds[gpu.rows] = gpu.state
    return kinds


def _on_path(path: CriticalPath, labels: Labels) -> Parts:
    """The spans of the path, those on the host by what it did."""
    span, source, _, ns = path.parts(np.arange(len(path.source)))
    return path.step[span], labels[source], ns


def _in_period(path: CriticalPath, numbers: SourceNumbers, labels: Labels) -> Iterator[Parts]:
    """All time of the same kinds and names: GPU events; time in which at least one waits in a queue; self time of
    operators and calls on every thread; Python time of the host taken as one thread.
    """
    context, rows, queues = numbers.context, labels[: numbers.event], labels[numbers.queue : numbers.between]
    gpu, ops, edges = context.gpu, context.ops, context.completions
    yield _by_step(gpu.start, gpu.end, rows[gpu.rows], edges)
    for label in distinct(queues):
        some = queues == label
        waiting = union(path.queued[some], gpu.start[some])
        yield _by_step(waiting.start, waiting.end, np.full(len(waiting.start), label), edges)
    start, end, position = ops.pieces()
    yield _by_step(start, end, rows[ops.rows[position]], edges)
    whole = path.host.outside_ops
    idle = np.flatnonzero(~context.trace.is_of(cat.OPS, whole.rows) | (whole.rows < 0))
    yield _by_step(whole.times[idle], np.append(whole.times, edges[-1])[idle + 1], rows[whole.rows[idle]], edges)
    unknown = np.flatnonzero(path.source == numbers.unknown)
    yield path.step[unknown], labels[path.source[unknown]], path.ns[unknown]


def _by_step(start: Int64, end: Int64, label: Int64, completions: Int64) -> Parts:
    """The parts of spans in each period; parts outside every period are left out."""
    which, step, low, high = cut(start, end, completions)
    return step, label[which], high - low
