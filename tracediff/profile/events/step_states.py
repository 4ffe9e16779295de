"""The step account: each instant of a period in exactly one state (docs/concepts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracediff.arrays import (
    BARE,
    Int64,
    Spans,
    all_none,
    changes,
    distinct,
    edges_of,
    grouped,
    last_up_to,
    marked,
    numbered_texts,
    paint,
    sums,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.profile.model.profile import Grid, Owned
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import ALWAYS, Lane, Painting, pieces, thread_ranks
from tracediff.profile.placement.scopes import is_loading
from tracediff.runtimes import is_synchronising

if TYPE_CHECKING:  # which has the account
    from tracediff.profile.events.context import Context

LABELS = {
    "gpu_compute": "GPU compute",
    "gpu_comm": "GPU communication",
    "gpu_copy": "GPU copies",
    "gpu_queued": "idle: launched, not started",
    "data_loading": "loading data",
    "synchronising": "synchronising",
    "launching": "launching",
    "op": "in an op",
    "python": "in Python",
}
"""The states in order of precedence, an instant has the first that applies; each in words."""
STATES = tuple(LABELS)

GPU_STATES = STATES[:4]
BUSY_STATES = STATES[:3]
"""In which a GPU works."""
NO_OWNER = -1


class StepAccount(Struct, frozen=True):
    """The division of each step's period into states.

    Attributes:
        names: the states, STATES first, then ``op:<family>`` where the trace has no GPU event.
        ns: int64[steps, states]; each row sums to the step's period.
        owned: whose the time of the GPU states is.
        painting: the state of each instant of a step, cut where the step changes.
    """

    names: tuple[str, ...]
    ns: Grid
    owned: Owned
    painting: Painting


class Layer(Spans, frozen=True):
    """The intervals in which one state applies, unless an earlier layer's does.

    Attributes:
        state: position among the names of the states. start, end: int64[m] ns; empty and reversed ones add nothing.
        owner: int64[m] position of the step that causes each; NO_OWNER for nobody's.
    """

    state: int
    owner: Int64


def step_account(context: Context) -> StepAccount:
    """The state of every instant between the completions; families divide the state op on traces without a GPU."""
    names, ops, collectives = list(STATES), context.ops, context.collectives
    layers = [*_gpu_layers(context.gpu), *_host_layers(context.gpu, context.lanes.annotations)]
    if len(context.gpu.rows):
        layers.append(_layer("op", context.trace, ops.rows[ops.roots]))
    else:
        layers += _op_layers(context, names)
    some = np.flatnonzero(collectives.rows[:-1] >= 0)
    waits = collectives.times[some], collectives.times[some + 1]
    layers.append(Layer(*waits, STATES.index("synchronising"), all_none(len(some))))
    return _summed(names, context.completions, *_painted(layers, context.completions))


def _painted(layers: list[Layer], completions: Int64) -> tuple[Int64, Int64, Int64]:
    """(edges int64[k + 1] ns, state int64[k], owner int64[k]) of the instants between ``completions``."""
    ranks = len(completions)  # an owner's, the earliest step's first; nobody's is last
    start = np.concatenate([layer.start for layer in layers]).clip(completions[0])
    end = np.concatenate([layer.end for layer in layers]).clip(max=completions[-1])
    order = np.concatenate(
        [np.where(layer.owner >= 0, layer.owner, ranks - 1) + place * ranks for place, layer in enumerate(layers)]
    )
    lasting = np.flatnonzero(start < end)
    start, end, order = start[lasting], end[lasting], order[lasting]
    edges = edges_of(completions, start, end)
    painted = paint(edges, start, end, order)
    bare = painted == BARE
    of_layer, owner = np.divmod(np.where(bare, ranks - 1, painted), ranks)
    state = np.array([layer.state for layer in layers], np.int64)[of_layer]
    return edges, np.where(bare, STATES.index("python"), state), np.where(owner < ranks - 1, owner, NO_OWNER)


def _summed(names: list[str], completions: Int64, edges: Int64, state: Int64, owner: Int64) -> StepAccount:
    length = np.diff(edges)
    step = last_up_to(completions, edges[:-1])
    size = len(completions) - 1, len(names)
    ns = sums(step * len(names) + state, length, prod(size)).reshape(size)
    on_gpu = np.flatnonzero(state < len(GPU_STATES))
    (of_step, of_state, of_owner), (owned_ns,) = grouped([step[on_gpu], state[on_gpu], owner[on_gpu]], [length[on_gpu]])
    owned = Owned(step=of_step, state=of_state, owner=of_owner, ns=owned_ns)
    new = np.flatnonzero(changes(state, step))
    times, rows = np.concatenate(([ALWAYS], edges[new], edges[-1:])), np.concatenate(([-1], state[new], [-1]))
    return StepAccount(tuple(names), ns, owned, Painting(times, rows))


def _gpu_layers(gpu: GpuEvents) -> Iterator[Layer]:
    launch_end = np.where(gpu.launch >= 0, gpu.trace.spans(gpu.launch)[1], gpu.start)
    for state in range(len(BUSY_STATES)):
        which = gpu.state == state
        yield Layer(gpu.start[which], gpu.end[which], state, gpu.step[which])
    yield Layer(launch_end, gpu.start, STATES.index("gpu_queued"), gpu.step)


def _host_layers(gpu: GpuEvents, annotations: Lane) -> list[Layer]:
    trace, loading = gpu.trace, annotations.matches(is_loading)
    calls = trace.complete(cat.CALLS)
    waits = trace.name_matches(is_synchronising, calls)
    launching = calls[marked(gpu.launch, len(trace) + 1)[calls]]
    return [
        _layer("data_loading", trace, annotations.rows[loading]),
        _layer("synchronising", trace, calls[waits]),
        _layer("launching", trace, launching),
    ]


def _layer(state: str, trace: Trace, rows: Int64) -> Layer:
    return Layer(*trace.spans(rows), STATES.index(state), all_none(len(rows)))


def _op_layers(context: Context, names: list[str]) -> Iterator[Layer]:
    """The intervals in which the innermost scope is of each family, thread by thread: first the thread of the steps,
    then in order of process and thread id.
    """
    ops = context.ops
    used, name = np.unique(ops.name, return_inverse=True)
    place, families = numbered_texts(context.families.of_name(ops.trace.names[code]) for code in used.tolist())
    start, end, position = pieces(ops)
    family, thread_of = place[name][position], ops.thread[position]
    for thread in thread_order(context):
        on_thread = thread_of == thread
        for code in distinct(family[on_thread]).tolist():
            state = f"op:{families[code]}"
            if state not in names:
                names.append(state)
            some = np.flatnonzero(on_thread & (family == code))
            yield Layer(start[some], end[some], names.index(state), all_none(len(some)))


def thread_order(context: Context) -> list[int]:
    """Thread codes of the ops lane: the one that runs the steps first, the others by process and thread id."""
    step_threads, rank = context.trace.thread(context.steps.rows), thread_ranks(context.lanes)
    return sorted(distinct(context.ops.thread).tolist(), key=lambda thread: (thread not in step_threads, rank[thread]))


def state_label(name: str, has_gpu: bool = False) -> str:
    """The state in words, not escaped: families of operators may be user-defined."""
    if name.startswith("op:"):
        return f"op: {name[3:]}"
    text = LABELS.get(name, name)
    return f"idle: {text}" if has_gpu and name not in GPU_STATES else text
