"""The step account: each instant of a period in exactly one state (docs/concepts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.arrays.factorize import grouped, numbered_texts
from tracediff.profile.arrays.intervals import Intervals, union
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.innermost import innermost_scopes
from tracediff.profile.placement.nesting import Lane, thread_number
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import is_communication, is_synchronising

STATES = (
    "gpu_compute",
    "gpu_comm",
    "gpu_copy",
    "gpu_queued",
    "data_loading",
    "synchronising",
    "launching",
    "op",
    "python",
)
"""The states in order of precedence: an instant has the first state that applies."""

GPU_STATES = STATES[:4]
LABELS = {
    "gpu_compute": "GPU compute",
    "gpu_comm": "GPU communication",
    "gpu_copy": "GPU copies",
    "gpu_queued": "idle: work queued",
    "data_loading": "loading data",
    "synchronising": "synchronising",
    "launching": "launching",
    "op": "in an op",
    "python": "in Python",
}
"""States in words."""
NO_OWNER = -1


@dataclass(frozen=True)
class StepAccount:
    """The division of each step's period into states.

    Attributes:
        names: the states, STATES first, then ``op:<family>`` where the trace has no GPU event.
        ns: int64[steps, states]; each row sums to the step's period.
        owned: int64[k, 4] rows (step, state, owner, ns) of the GPU states: owner is the earliest step that launched an
            event that causes the state, NO_OWNER if only spilled or outside events cause it.
        edges: int64[k + 1] ns. painted: int64[k] the state from each edge to the next.
    """

    names: tuple[str, ...]
    ns: Int64
    owned: Int64
    edges: Int64
    painted: Int64


@dataclass(frozen=True)
class Layer:
    """The intervals in which one state applies."""

    state: int
    owner: int
    where: Intervals


def step_account(
    trace: Trace,
    steps: Steps,
    completions: Int64,
    *,
    gpu: GpuEvents,
    ops: Lane,
    annotations: Lane,
    families: Families = DEFAULT,
) -> StepAccount:
    """The state of every instant between ``completions`` (int64[s + 1] ns); ``families`` divide the state op on traces
    without a GPU.
    """
    names = list(STATES)
    layers = list(_gpu_layers(trace, gpu))
    layers += _host_layers(trace, gpu, annotations)
    layers += list(_op_layers(trace, steps, ops, names, families)) if not len(gpu.rows) else [_covered_by(trace, ops)]
    low, high = int(completions[0]), int(completions[-1])
    layers = [Layer(x.state, x.owner, x.where.clipped(low, high)) for x in layers]
    edges = np.sort(np.concatenate([completions, *(e for x in layers for e in (x.where.start, x.where.end))]))
    edges = edges[np.concatenate(([True], edges[1:] != edges[:-1]))]
    painted = np.full(max(len(edges) - 1, 0), -1, np.int64)
    for i, layer in enumerate(layers):
        if len(layer.where.start):
            first, last = np.searchsorted(edges, [layer.where.start[0], layer.where.end[-1]])
            part = painted[first:last]
            part[(part < 0) & layer.where.covers(edges[first:last])] = i
    return _summed(names, layers, completions, edges, painted)


def _summed(names: list[str], layers: list[Layer], completions: Int64, edges: Int64, painted: Int64) -> StepAccount:
    states = np.array([x.state for x in layers] + [STATES.index("python")], np.int64)
    owners = np.array([x.owner for x in layers] + [NO_OWNER], np.int64)
    length = np.diff(edges)
    step = np.searchsorted(completions, edges[:-1], side="right") - 1
    ns = np.zeros((len(completions) - 1, len(names)), np.int64)
    np.add.at(ns, (step, states[painted]), length)
    on_gpu = np.flatnonzero((painted >= 0) & (states[painted] < len(GPU_STATES)))
    keys, sums = grouped([step[on_gpu], states[painted[on_gpu]], owners[painted[on_gpu]]], [length[on_gpu]])
    return StepAccount(tuple(names), ns, np.column_stack((*keys, *sums)), edges, states[painted])


def _gpu_layers(trace: Trace, gpu: GpuEvents) -> Iterator[Layer]:
    communicates = trace.named(is_communication)[gpu.rows]
    kernel = trace.category[gpu.rows] == cat.KERNEL
    launch_end = np.where(gpu.launch >= 0, trace.ts[gpu.launch] + trace.dur[gpu.launch], gpu.start)
    owner = np.where(gpu.step >= 0, gpu.step, NO_OWNER)
    owners = [int(o) for o in np.unique(owner) if o >= 0] + [NO_OWNER]  # the earliest step first, nobody's last
    kinds = (kernel & ~communicates, kernel & communicates, ~kernel)
    for state, which in enumerate(kinds):
        for o in owners:
            some = which & (owner == o)
            yield Layer(state, o, union(gpu.start[some], gpu.end[some]))
    for o in owners:
        some = owner == o
        yield Layer(STATES.index("gpu_queued"), o, union(launch_end[some], gpu.start[some]))


def _host_layers(trace: Trace, gpu: GpuEvents, annotations: Lane) -> list[Layer]:
    loading = trace.named(lambda name: "DataLoader" in name)[annotations.rows]
    calls = np.flatnonzero(np.isin(trace.category, cat.CALLS) & (trace.dur >= 0))
    waits = trace.named(is_synchronising)[calls]
    launching = np.unique(gpu.launch[gpu.launch >= 0])
    return [
        _layer("data_loading", trace, annotations.rows[loading]),
        _layer("synchronising", trace, calls[waits]),
        _layer("launching", trace, launching),
    ]


def _layer(state: str, trace: Trace, rows: Int64) -> Layer:
    return Layer(STATES.index(state), NO_OWNER, union(trace.ts[rows], trace.ts[rows] + trace.dur[rows]))


def _covered_by(trace: Trace, ops: Lane) -> Layer:
    return _layer("op", trace, ops.rows[ops.parent < 0])


def _op_layers(trace: Trace, steps: Steps, ops: Lane, names: list[str], known_families: Families) -> Iterator[Layer]:
    """The intervals in which the innermost scope is of each family, thread by thread: first the thread of the steps,
    then in order of thread id.
    """
    used, name = np.unique(trace.name[ops.rows], return_inverse=True)
    place, known = numbered_texts(known_families.of_name(trace.names[code]) for code in used.tolist())
    family = place[name]
    for thread in thread_order(trace, steps, ops):
        times, innermost = innermost_scopes(ops, np.flatnonzero(ops.thread == thread))
        family_at = np.where(innermost >= 0, family[innermost], -1)
        for code in np.unique(family_at[family_at >= 0]).tolist():
            state = f"op:{known[code]}"
            if state not in names:
                names.append(state)
            some = np.flatnonzero(family_at[:-1] == code)
            yield Layer(names.index(state), NO_OWNER, union(times[some], times[some + 1]))


def thread_order(trace: Trace, steps: Steps, ops: Lane) -> list[int]:
    """Thread codes of the ops lane: the one whose annotations are the steps first, the others by thread id."""
    starts = np.isin(trace.ts, steps.start) & (trace.category == cat.ANNOTATION)
    step_threads = trace.pid.astype(np.int64)[starts] * (len(trace.ids) + 1) + trace.tid[starts]
    firsts = {int(t): int(r) for t, r in zip(ops.thread[::-1].tolist(), ops.rows[::-1].tolist(), strict=True)}

    def place(thread: int) -> tuple[bool, bool, int, str]:
        tid = trace.ids[trace.tid[firsts[thread]]]
        number = thread_number(tid)
        return thread not in step_threads, number is None, number or 0, str(tid)

    return sorted(firsts, key=place)


def state_label(name: str, has_gpu: bool) -> str:
    """The state in words, not escaped: families of operators may be user-defined."""
    if name.startswith("op:"):
        return f"op: {name[3:]}"
    text = LABELS.get(name, name)
    return f"idle: {text}" if has_gpu and name not in GPU_STATES else text
