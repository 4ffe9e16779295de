"""Collective operations of one file: communication kernels, and the work of gloo, MPI and UCC on the host, each with
its operation, group, size and exposed time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracediff import bounds
from tracediff.arrays import (
    MISSING,
    AnyArray,
    Int64,
    Intervals,
    all_none,
    combined,
    distinct,
    int64_of,
    mapped,
    union,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.profile.events.context import Context
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.model.profile import CollectiveKind, Collectives
from tracediff.profile.perf_model.recorded_sizes import DTYPE, RECEIVED, SENT, dtype_of, read_list
from tracediff.profile.placement.gpu_events import COMMUNICATES, COMPUTES
from tracediff.profile.placement.nesting import Lane
from tracediff.runtimes import collective_of_scope, is_host_collective

UNKNOWN = "unknown"
DESCRIPTION = ("Collective name", "Process Group Name", "Process Group Description", "Process Group Ranks", DTYPE)
AMOUNTS = (SENT, RECEIVED, "Group size", "Seq", "seq")
"""Arguments of communication kernels, or of the ``record_param_comms`` around their launch: texts, and numbers."""
KNOWN_AS = tuple(
    (squashed.replace("_", ""), squashed)
    for squashed in ("barrier", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv",
                     "collective_permute", "reduce", "gather", "scatter", "send", "recv")
)  # fmt: skip
"""Part of a name without underscores and hyphens → operation; the first match decides."""
LARGEST = 1 << 56
"""Limit of elements; larger numbers are recording errors."""


def first_collectives(context: Context, notes: Notes) -> Collectives:
    """The first operations of the file; a health note counts the others."""
    operations = collectives(context)
    notes.add(
        "many-collectives",
        f"collective operations beyond the first {bounds.COLLECTIVES} of a file are not matched across ranks",
        max(len(operations.kind) - bounds.COLLECTIVES, 0),
    )
    columns = (name for name in Collectives.__struct_fields__ if name != "kinds")
    return operations.replace(**{name: getattr(operations, name)[: bounds.COLLECTIVES] for name in columns})


def collectives(context: Context) -> Collectives:
    """All operations of the file.

    On the GPU an operation is a communication kernel; what it does comes from its own arguments, else from the
    ``record_param_comms`` and the annotation (``nccl:all_reduce``, with inputs) around its launch, else from its name.
    On the host it is an annotation of gloo, MPI or UCC on their threads.
    """
    trace, gpu = context.trace, context.gpu
    kernels = np.flatnonzero(gpu.state == COMMUNICATES)
    host = trace.rows_named(is_host_collective, trace.complete((cat.ANNOTATION,)))
    rows = np.concatenate((gpu.rows[kernels], host))
    start, end = trace.spans(rows)
    around = _around(context.lanes.annotations, collective_of_scope, gpu.launch[kernels])
    annotation = np.concatenate((around, host))
    records = _around(context.ops, "record_param_comms".__eq__, gpu.launch[kernels])
    record = np.concatenate((records, all_none(len(host))))
    kinds, kind, size = _described(trace, rows, annotation, record)
    exposed = np.concatenate((_exposed_on_gpu(context, kernels), _exposed_on_host(context, host)))
    sequence = np.maximum(_integer(trace, "Seq", rows, record), _integer(trace, "seq", rows, record)).clip(-1)
    step = np.concatenate((gpu.step[kernels], context.steps.positions_at(trace.ts[host])))
    base = trace.meta.base_time_nanoseconds or 0
    order = np.lexsort((end, start))
    return Collectives(
        kinds=kinds,
        kind=kind[order],
        step=step[order],
        sequence=sequence[order],
        size=size[order],
        start=start[order] + base,
        end=end[order] + base,
        exposed=exposed[order],
    )


EXCHANGES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "gather": 1, "scatter": 1}
"""Operations between each rank and all others → how often each of their bytes is moved."""


def bus_bytes(kind: CollectiveKind, size: Int64) -> Int64 | None:
    """int64[k]: bytes on each rank's link for operations of ``size`` bytes (int64[k]); None if the size of the group
    or the operation is unknown.

    With n ranks, of size S: all_reduce 2·S·(n−1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter S·(n−1)/n;
    broadcast, reduce, send, recv S.
    Source: nccl-tests, doc/PERFORMANCE.md, and the factors in its all_to_all, gather and scatter tests.
    """
    if kind.collective in ("broadcast", "reduce", "send", "recv"):
        return size
    if kind.ranks < 2 or kind.collective not in EXCHANGES:
        return None
    moved = EXCHANGES[kind.collective] * size
    return moved - moved // kind.ranks


def traffic(
    kinds: Sequence[CollectiveKind], kind: Int64, ranks: Int64, size: Int64, ns: Int64
) -> tuple[Int64, Int64, Int64, Int64]:
    """Of k operations (bytes, time of those whose bytes are known, `bus_bytes`, time of those whose these are known).

    Args:
        kind: int64[k] index into ``kinds``. ranks: int64[k] size of the group, 0 where unknown. size: int64[k] bytes,
            −1 where unknown. ns: int64[k] the time that they take.
    """
    has_size = size >= 0
    carried, is_known = zeros(len(size)), np.zeros(len(size), bool)
    code, first = combined(kind, ranks)
    for same, row in enumerate(first.tolist()):
        mine = np.flatnonzero((code == same) & has_size)
        byte_counts = bus_bytes(kinds[kind[row]].replace(ranks=int(ranks[row])), size[mine])
        if byte_counts is not None:
            carried[mine], is_known[mine] = byte_counts, True
    return size * has_size, ns * has_size, carried, ns * is_known


def size_labels(size: Int64) -> list[str]:
    """Text of each size in bytes: the power of two that it does not exceed."""
    power = np.where(size > 1, np.searchsorted(1 << np.arange(62), size), 0).tolist()
    return [
        UNKNOWN
        if s < 0
        else "0 B"
        if s == 0
        else f"≤ {1 << p % 10} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[p // 10]}"
        for s, p in zip(size.tolist(), power, strict=True)
    ]


def _around(lane: Lane, matches: Any, rows: Int64) -> Int64:
    """int64[m] row of the innermost scope of the lane whose name ``matches`` accepts and that is open on the thread
    when each event of ``rows`` begins; −1 for none.
    """
    innermost = np.where(rows >= 0, lane.enclosing(lane.trace.thread(rows), lane.trace.ts[rows]), -1)
    matching = lane.nearest(lane.matches(matches))
    return values_at(lane.rows, values_at(matching, innermost))


def _recorded(column: AnyArray, missing: int, rows: Int64, record: Int64) -> Int64:
    """int64[m] the value in ``column`` of each of ``rows``, else of the ``record`` around it, else ``missing``."""
    own = column[rows]
    return np.where(own != missing, own, np.append(column, missing)[record])


def _integer(trace: Trace, argument: str, rows: Int64, record: Int64) -> Int64:
    """int64[m] of the kernels ``rows``, else of the ``record`` around their launch, else MISSING."""
    return _recorded(trace.integer_column(argument, cat.KERNEL, cat.CPU_OP), MISSING, rows, record)


def _described(
    trace: Trace, rows: Int64, annotation: Int64, record: Int64
) -> tuple[tuple[CollectiveKind, ...], Int64, Int64]:
    """(the distinct kinds, int64[m] index into them, int64[m] size in bytes or −1)."""
    text_columns = (trace.text_column(argument, cat.KERNEL, cat.CPU_OP) for argument in DESCRIPTION)
    name_columns = [_recorded(column, -1, rows, record) for column in text_columns]
    inputs = (trace.text_column(argument, cat.ANNOTATION) for argument in ("Input type", "Input Dims"))
    annotated, types, dims = (values_at(column, annotation) for column in (trace.name, *inputs))
    ranks = _integer(trace, "Group size", rows, record).clip(0, 1 << 31)
    row, first = combined(*name_columns, annotated, trace.name[rows], types, ranks)
    kinds: dict[CollectiveKind, int] = {}
    kind_of_sample, width = zeros(len(first)), zeros(len(first))
    names = (*trace.names, "")  # the last is of no code
    only = _only_group(trace)
    for i, sample in enumerate(first.tolist()):
        operation, group, about, members, dtype = (trace.text(column[sample]) for column in name_columns)
        scope, name = names[annotated[sample]], names[trace.name[rows[sample]]]
        operation = operation or collective_of_scope(scope) or name
        of_inputs = read_list(trace.text(types[sample]))
        spelled = dtype or (str(of_inputs[0]) if of_inputs else "")
        dtype, width[i] = dtype_of(spelled) or (spelled[: bounds.GROUP_NAME] or UNKNOWN, 0)
        label, members, n = (group, members, int(ranks[sample])) if group else only
        described = CollectiveKind(_canonical(operation), _group(label, about if group else "", n), dtype, members, n)
        kind_of_sample[i] = kinds.setdefault(described, len(kinds))
    kind, ordered = kind_of_sample[row], tuple(kinds)
    elements = np.maximum(_integer(trace, SENT, rows, record), _integer(trace, RECEIVED, rows, record))
    elements = np.where(elements >= 0, elements, _elements_of_inputs(trace, dims, kind, ordered))
    has_size = (elements >= 0) & (elements < LARGEST) & (width[row] > 0)
    return ordered, kind, np.where(has_size, elements.clip(0, LARGEST) * width[row], -1)


def _canonical(name: str) -> str:
    squashed = name.lower().replace("_", "").replace("-", "")
    return next((canonical for part, canonical in KNOWN_AS if part in squashed), name[: bounds.GROUP_NAME])


def _group(name: str, about: str, ranks: int) -> str:
    """The display name of a process group, such as ``0 default_pg, 8 ranks``."""
    if not name:
        return UNKNOWN
    about = about if about not in (name, "undefined") else ""
    return f"{name} {about}".strip()[: bounds.GROUP_NAME] + (
        f", {ranks} {'rank' if ranks == 1 else 'ranks'}" if ranks else ""
    )


def _only_group(trace: Trace) -> tuple[str, str, int]:
    """(name, members, size) of the process group of a file that lists exactly one; empty else."""
    groups = trace.meta.distributed_info.pg_config if trace.meta.distributed_info else None
    if not isinstance(groups, list) or len(groups) != 1 or not isinstance(groups[0], dict):
        return "", "", 0
    name, size, members = (groups[0].get(key) for key in ("pg_name", "pg_size", "ranks"))
    n = size if isinstance(size, int) and 0 < size < 1 << 31 else 0
    return (
        (str(name), str(members) if isinstance(members, list) else "", n)
        if isinstance(name, str | int)
        else ("", "", 0)
    )


def _elements_of_inputs(trace: Trace, dims: Int64, kind: Int64, kinds: tuple[CollectiveKind, ...]) -> Int64:
    """int64[m] elements from the inputs of the annotation, −1 where unknown; gathers move one input per rank."""
    elements = mapped(dims, lambda code: _elements(read_list(trace.text(code))))
    gathers = np.array([k.collective in ("all_gather", "gather") for k in kinds], bool)[kind]
    ranks = int64_of([k.ranks for k in kinds])[kind]
    return np.where(
        gathers, np.where((ranks > 0) & (elements < LARGEST // np.maximum(ranks, 1)), elements * ranks, -1), elements
    )


def _elements(dims: Any) -> int:
    """Total elements of tensors with these shapes, −1 if these are not shapes."""
    if not isinstance(dims, list):
        return -1
    if all(isinstance(d, int) and 0 <= d < LARGEST for d in dims) and dims:
        total = 1
        for d in dims:
            total = min(total * d, LARGEST)
        return total
    parts = [_elements(d) for d in dims if d != []]
    return min(sum(parts), LARGEST) if parts and min(parts) >= 0 else -1


def _exposed_on_gpu(context: Context, events: Int64) -> Int64:
    """int64[m]: how long no compute kernel of its GPU runs while each of the GPU ``events`` does."""
    out = zeros(len(events))
    for device in distinct(context.gpu.device[events]):
        some = events[mine := context.gpu.device[events] == device]
        out[mine] = _outside(_computing(context, device), context.gpu.start[some], context.gpu.end[some])
    return out


def _exposed_on_host(context: Context, rows: Int64) -> Int64:
    """int64[m]: how long each of the annotations ``rows`` is open while no thread is in an operator other than
    communication and no compute kernel runs.
    """
    trace, ops = context.trace, context.ops
    if not len(rows):
        return zeros(0)
    speaks = trace.name_matches(lambda name: context.families.of_name(name) == COMMUNICATION)
    computing = _computing(context, None)
    start, end, position = ops.pieces()
    works = np.flatnonzero(~speaks[ops.rows[position]])
    busy = union(np.append(computing.start, start[works]), np.append(computing.end, end[works]))
    return _outside(busy, *trace.spans(rows))


def _computing(context: Context, device: int | None) -> Intervals:
    """The times at which a compute kernel runs on the GPU ``device``, or with None on any GPU."""
    gpu = context.gpu
    computes = gpu.state == COMPUTES
    mine = np.flatnonzero(computes if device is None else computes & (gpu.device == device))
    return union(gpu.start[mine], gpu.end[mine])


def _outside(covered: Intervals, start: Int64, end: Int64) -> Int64:
    return end - start - (covered.length_before(end) - covered.length_before(start))
