"""Builds a `Profile` from a `Trace`."""

from collections.abc import Sequence

import numpy as np

from tracediff import bounds
from tracediff.arrays import Int64, busy_ns, concatenated, distinct, grouped, last_equal, marked, return_freed, zeros
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.profile.analyses.leaves import leaf_table
from tracediff.profile.events.context import Context, build_context
from tracediff.profile.events.work import WorkKeys, host_work, kernel_work, work_keys
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.model.profile import CallTable, OpTable, Origin, PackedTimeline, Profile
from tracediff.profile.model.selection import Selection
from tracediff.profile.perf_model.recorded_sizes import DTYPE, RECEIVED, SENT
from tracediff.profile.placement.calls import compiled_calls
from tracediff.profile.placement.captures import GRAPH_ANNOTATIONS, KERNEL_ARGUMENT, Capture
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.scopes import STACKS
from tracediff.profile.tables import build_tables
from tracediff.runtimes import ARGUMENT, DRIVER_VERSIONS

LAUNCHES = (ARGUMENT.correlation, ARGUMENT.device, ARGUMENT.stream, ARGUMENT.grid, ARGUMENT.block)
INPUTS = ("Input Dims", "Input type", "Input Strides")
ORDER = ("Sequence number", "External id", "Ev Idx", "Python id")
MESSAGES = (SENT, RECEIVED, DTYPE)
MEMORY = ("Bytes", "Total Allocated", "Device Type", "Device Id")
ARGUMENTS = frozenset((*LAUNCHES, *INPUTS, *STACKS, *ORDER, *MEMORY, *GRAPH_ANNOTATIONS, ARGUMENT.size, *MESSAGES))
"""The event arguments that every profile needs."""

CAPTURE_ARGUMENTS = ARGUMENTS | {KERNEL_ARGUMENT}
"""Those that `captures_of` needs."""

NOT_MEASURED = (cat.SPAN, cat.METADATA)
"""Categories whose complete events are not work, such as the profiler's own span."""


def build_profile(
    trace: Trace,
    step_marker: str | None = None,
    families: Families = DEFAULT,
    selection: Selection | None = None,
    tables: Sequence[str] = (),
    captures: Sequence[Capture] = (),
) -> Profile:
    """The profile of ``trace``.

    Args:
        step_marker: a regular expression; annotations with a matching name are the steps instead of ProfilerStep#N.
        families: rules that map operators to families of work.
        selection: the steps from which the timeline's typical step is chosen, None for no timeline; the tables cover
            all steps.
        tables: names of tables to build.
        captures: of the graphs that the trace replays.

    Raises:
        TracediffError: the marker is not a regular expression, or matches no annotation.
    """
    return_freed(len(trace))
    notes = Notes.of(trace.notes)
    context = build_context(trace, step_marker, families, notes, captures)
    return_freed(len(trace))
    steps, account = context.steps, context.account
    calls, texts = _with_own_texts(context)
    keys = work_keys(context, notes, texts)
    further = build_tables(context, tables)
    on_host = host_work(context, keys, texts)
    compiled = compiled_calls(context.calls, context.lanes, texts)
    ops, kernels = _op_table(context), kernel_work(context, keys)
    return_freed(len(trace))
    communication = None
    if "collectives" in tables:
        from tracediff.profile.analyses.collective_ops import first_collectives

        communication = first_collectives(context, notes)
    if selection is None:
        trace.arguments.pop(cat.CPU_OP, None)  # of which the leaves need none: they are a tenth of what is left
    profile = Profile(
        origin=_origin(trace, context.gpu),
        notes=tuple(notes.list()),
        step_numbers=steps.numbers,
        whole_file=steps.whole_file,
        completions=context.completions,
        draining_ns=int(context.completions[0] - steps.start[0]),
        host_ns=steps.ns,
        state_names=account.names,
        state_ns=account.ns,
        owned=account.owned,
        busy_ns=_busy(context.gpu, len(steps)),
        ops=ops,
        calls=calls,
        compiled_calls=compiled,
        kernels=kernels,
        host_work=on_host,
        events=_event_counts(trace),
        leaves=leaf_table(context, keys),
        categories=tuple(trace.categories),
        names=tuple(trace.names),
        texts=tuple(texts),
        tables=further,
        collectives=communication,
    )
    if selection is None:
        return profile
    from tracediff.profile.timeline import build_timeline  # which only pages show

    position = selection.typical(profile)
    return profile.replace(timeline=PackedTimeline.of(position, build_timeline(context, position)))


def work_keys_of(context: Context) -> WorkKeys:
    """The keys of the GPU events of a file or, without any, of its operators; as in its profile."""
    return work_keys(context, Notes(), _with_own_texts(context)[1])


def _origin(trace: Trace, gpu: GpuEvents) -> Origin:
    meta = trace.meta
    distributed = meta.distributed_info
    used = set(gpu.device.tolist())
    names = [d.name for d in meta.device_properties if d.id in used] or [d.name for d in meta.device_properties]
    driver = next((number for key in DRIVER_VERSIONS if (number := meta.versions.get(key))), None)
    return Origin(
        trace.file,
        rank=distributed.rank if distributed else None,
        world_size=distributed.world_size if distributed else None,
        gpus=tuple(dict.fromkeys(names)),
        flags=meta.flags,
        driver=str(driver) if driver else None,
        torch=meta.torch_version,
        gpu_count=len(used),
    )


def _busy(gpu: GpuEvents, steps: int) -> Int64:
    """int64[steps]: busy time of the events launched in each step, per GPU, summed over GPUs."""
    places = [np.flatnonzero(gpu.device == device) for device in distinct(gpu.device)]
    return sum((busy_ns(gpu.start[p], gpu.end[p], gpu.step[p], steps) for p in places), zeros(steps))


def _event_counts(trace: Trace) -> dict[str, int]:
    counts = np.bincount(trace.category, minlength=len(trace.categories)).tolist()
    return {name: n for name, n in zip(trace.categories, counts, strict=True) if n}


def _op_table(context: Context) -> OpTable:
    trace, gpu = context.trace, context.gpu
    is_measured = (trace.dur >= 0) & ~trace.is_of(NOT_MEASURED)
    self_ns = zeros(len(trace))
    for lane in context.lanes:
        self_ns[lane.rows] = lane.self_ns
    is_measured[gpu.rows] = False  # they are of the steps that launched them
    parts = [_ops(trace, gpu.rows, np.maximum(gpu.step, -1), gpu.ns)]
    for low in range(0, len(trace), bounds.EVENTS_AT_ONCE):
        rows = low + np.flatnonzero(is_measured[low : low + bounds.EVENTS_AT_ONCE])
        parts.append(_ops(trace, rows, context.steps.positions_at(trace.ts[rows]), self_ns[rows]))
    columns = concatenated(parts)
    (s, c, n), (count, total, self_total) = grouped(columns[:3], columns[3:])
    return OpTable(step=s, category=c, name=n, count=count, total_ns=total, self_ns=self_total)


def _ops(trace: Trace, rows: Int64, step: Int64, self_ns: Int64) -> list[Int64]:
    """[step, category, name, count, total and self time] of the events at ``rows``."""
    keys, amounts = grouped((step, trace.category[rows], trace.name[rows]), (1, trace.dur[rows], self_ns))
    return [*keys, *amounts]


def _with_own_texts(context: Context) -> tuple[CallTable, list[str]]:
    """The call table with codes of only the texts it uses, and those texts."""
    table, texts = context.calls.table, context.trace.texts
    columns = {name: getattr(table, name) for name in ("shapes", "types", "strides", "line")}
    codes = np.flatnonzero(marked(np.concatenate([*columns.values()]), len(texts) + 1)[:-1])  # the last is of no code
    moved = {name: last_equal(codes, column) for name, column in columns.items()}
    return table.replace(**moved), [texts[c] for c in codes.tolist()]
