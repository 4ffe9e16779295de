"""The step account: each instant of a period in exactly one state (docs/concepts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tracediff.arrays import (
    BARE,
    Int64,
    changes,
    distinct,
    edges_of,
    grouped,
    int64_of,
    last_up_to,
    marked,
    numbered_texts,
    paint,
    stacked,
    sums,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.profile.model.profile import Grid, Owned
from tracediff.profile.placement.nesting import ALWAYS, Painting, thread_ranks
from tracediff.profile.placement.scopes import is_loading
from tracediff.runtimes import is_synchronising
from tracediff.structs import FrozenStruct

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


class StepAccount(FrozenStruct):
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


Layer = tuple[Int64, Int64, int, Int64 | int]
"""The intervals in which one state applies, unless an earlier layer's does: start and end int64[m] ns, of which empty
and reversed ones add nothing; the state's position among the names; the position of the step that causes each, NO_OWNER
for nobody's.
"""


def step_account(context: Context) -> StepAccount:
    """The state of every instant between the completions; families divide the state op on traces without a GPU."""
    names, completions = list(STATES), context.completions
    edges, state, owner = _painted(list(_layers(context, names)), completions)
    length, step = np.diff(edges), last_up_to(completions, edges[:-1])
    size = len(completions) - 1, len(names)
    ns = sums(step * len(names) + state, length, prod(size)).reshape(size)
    on_gpu = np.flatnonzero(state < len(GPU_STATES))
    (of_step, of_state, of_owner), (owned_ns,) = grouped([step[on_gpu], state[on_gpu], owner[on_gpu]], [length[on_gpu]])
    owned = Owned(step=of_step, state=of_state, owner=of_owner, ns=owned_ns)
    new = np.flatnonzero(changes(state, step))
    times, rows = np.concatenate(([ALWAYS], edges[new], edges[-1:])), np.concatenate(([-1], state[new], [-1]))
    return StepAccount(tuple(names), ns, owned, Painting(times, rows))


def _painted(layers: list[Layer], completions: Int64) -> tuple[Int64, Int64, Int64]:
    """(edges int64[k + 1] ns, state int64[k], owner int64[k]) of the instants between ``completions``."""
    ranks = len(completions)  # an owner's, the earliest step's first; nobody's is last
    start, end, order = stacked(
        *(
            (start, end, np.where(owner >= 0, owner, ranks - 1) + place * ranks)
            for place, (start, end, _, owner) in enumerate(layers)
        )
    )
    start, end = start.clip(completions[0]), end.clip(max=completions[-1])
    lasting = np.flatnonzero(start < end)
    start, end, order = start[lasting], end[lasting], order[lasting]
    edges = edges_of(completions, start, end)
    painted = paint(edges, start, end, order)
    bare = painted == BARE
    of_layer, owner = np.divmod(np.where(bare, ranks - 1, painted), ranks)
    state = int64_of([state for _, _, state, _ in layers])[of_layer]
    return edges, np.where(bare, STATES.index("python"), state), np.where(owner < ranks - 1, owner, NO_OWNER)


def _layers(context: Context, names: list[str]) -> Iterator[Layer]:
    """Those of all states but Python, which is what remains; families are added to ``names``."""
    trace, gpu, annotations, ops = context.trace, context.gpu, context.lanes.annotations, context.ops
    for state in range(len(BUSY_STATES)):
        which = gpu.state == state
        yield gpu.start[which], gpu.end[which], state, gpu.step[which]
    launch_end = np.where(gpu.launch >= 0, trace.spans(gpu.launch)[1], gpu.start)
    yield launch_end, gpu.start, STATES.index("gpu_queued"), gpu.step
    calls = trace.complete(cat.CALLS)
    yield _layer("data_loading", trace, annotations.rows[annotations.matches(is_loading)])
    yield _layer("synchronising", trace, trace.rows_named(is_synchronising, calls))
    yield _layer("launching", trace, calls[marked(gpu.launch, len(trace) + 1)[calls]])
    if len(gpu.rows):
        yield _layer("op", trace, ops.rows[ops.roots])
    else:
        yield from _op_layers(context, names)
    waits = np.flatnonzero(context.collectives.rows[:-1] >= 0)
    times = context.collectives.times
    yield times[waits], times[waits + 1], STATES.index("synchronising"), NO_OWNER


def _layer(state: str, trace: Trace, rows: Int64) -> Layer:
    return *trace.spans(rows), STATES.index(state), NO_OWNER


def _op_layers(context: Context, names: list[str]) -> Iterator[Layer]:
    """The intervals in which the innermost scope is of each family, thread by thread: first the thread of the steps,
    then in order of process and thread id.
    """
    ops = context.ops
    used, name = np.unique(ops.name, return_inverse=True)
    place, families = numbered_texts(context.families.of_name(ops.trace.names[code]) for code in used.tolist())
    start, end, position = ops.pieces()
    family, thread_of = place[name][position], ops.thread[position]
    for thread in thread_order(context):
        on_thread = thread_of == thread
        for code in distinct(family[on_thread]).tolist():
            state = f"op:{families[code]}"
            if state not in names:
                names.append(state)
            some = np.flatnonzero(on_thread & (family == code))
            yield start[some], end[some], names.index(state), NO_OWNER


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
