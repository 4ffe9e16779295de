"""What is around each operator and launch: the phase of the step, the user's annotation, the nn.Module and the line of
code.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from tracediff.arrays import (
    MISSING,
    AnyArray,
    Int64,
    all_none,
    combined,
    last_equal,
    mapped,
    sorted_by,
    stable_order,
    tuples,
    union,
    values_at,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.names import innermost_line
from tracediff.ingest.model.trace import Trace
from tracediff.patterns import late
from tracediff.profile.placement.nesting import ALWAYS, Lane, Lanes, Painting, lane_of, painted
from tracediff.runtimes import collective_of_scope, is_host_collective
from tracediff.structs import FrozenStruct

PHASES = ("forward", "backward", "optimizer", "other", "unknown")
FORWARD, BACKWARD, OPTIMIZER, OTHER, UNKNOWN = range(len(PHASES))

BACKWARD_OP = late(r"^autograd::engine::evaluate_function|^torch::autograd::|^[\w:]*Backward\d*$")
OPTIMIZER_SCOPE = late(r"^Optimizer\.")
MODULE_SCOPE = late(r"^(?:nn\.Module: |module:|fx:)")
NO_SCOPE = late(
    r"^(?:ProfilerStep|Optimizer\.|## Call CompiledFxGraph|CompiledFxGraph|module:|fx:|PyTorch Profiler|Iteration)"
    r"|DataLoader"
)
"""Annotations that are not the user's: those of the profiler, of the framework and of modules. Those of collectives are
excluded as well.
"""


def is_loading(name: str) -> bool:
    """Whether a scope of this name is where a DataLoader loads."""
    return "DataLoader" in name


Paths = list[tuple[int, int]]
"""Of each path of nested scopes the one around it, −1 for none, and the code of the innermost scope's name."""
Nested = tuple[Int64, Paths]
"""int64[n] the path of each scope, −1 for none, and the paths."""


def chain(paths: Paths, path: int) -> list[int]:
    """Codes of the names from the outermost scope of a path to the innermost; empty for −1."""
    names = []
    while path >= 0:
        path, name = paths[path]
        names.append(name)
    return names[::-1]


class Scopes(FrozenStruct):
    """The phase (index into PHASES), annotations and modules of each scope of the ops lane, by its position there."""

    phase: NDArray[np.int8]
    annotations: Nested
    modules: Nested


def scopes_of(ops: Lane, annotations: Lane) -> Scopes:
    """The phase, annotation and module of every operator and call."""
    modules = module_lane(ops.trace)
    module_of, module_paths = paths_of(modules)
    users = lane_of(ops.trace, annotations.rows[annotations.matches(_is_users)])
    user_of, user_paths = paths_of(users)

    phase = _phases(ops, annotations)
    starts, threads = ops.start, ops.thread
    module = values_at(module_of, modules.enclosing(threads, starts))
    annotation = values_at(user_of, users.enclosing(threads, starts))
    if len(modules.rows):
        backward = np.flatnonzero((phase == BACKWARD) & (module < 0))
        module[backward] = of_forward(ops, phase, module)[backward]
    return Scopes(phase, (annotation, user_paths), (module, module_paths))


def _is_users(annotation: str) -> bool:
    return not (NO_SCOPE.search(annotation) or collective_of_scope(annotation))


def module_lane(trace: Trace) -> Lane:
    """The calls of nn.Modules."""
    rows = trace.complete((cat.PYTHON, cat.ANNOTATION))
    return lane_of(trace, trace.rows_named(MODULE_SCOPE.match, rows))


def host_collectives(lanes: Lanes) -> Int64:
    """Rows of the collectives that threads of the host carry out."""
    return lanes.annotations.rows[lanes.annotations.matches(is_host_collective)]


def collective_waits(lanes: Lanes) -> Painting:
    """Where the host does nothing recorded until a collective ends that a thread of its own carries out, as of gloo: by
    the collective. What such a thread does within it is part of it.
    """
    collectives = lane_of(lanes.ops.trace, host_collectives(lanes))
    outermost = lanes.ops.roots
    around = collectives.enclosing(lanes.ops.thread[outermost], lanes.ops.start[outermost])
    others = outermost[around < 0]
    busy = union(lanes.ops.start[others], lanes.ops.end[others])
    order = stable_order(collectives.end)
    start, end = collectives.start[order], collectives.end[order]
    since = np.append(ALWAYS, busy.end)[np.searchsorted(busy.start, end, side="left")]  # what ended last before its end
    start = np.maximum(np.maximum(start, since), np.append(ALWAYS, end[:-1]))  # of several the one that ends first
    waits = np.flatnonzero(start < end)
    return painted(start[waits], end[waits], collectives.rows[order[waits]])


def inherited(lane: Lane, values: AnyArray, missing: int) -> AnyArray:
    """Each scope's own value; if that is ``missing``, the value of the scope around it."""
    return np.append(values, values.dtype.type(missing))[lane.nearest(values != missing)]


def paths_of(lane: Lane) -> Nested:
    """The paths of the scopes of ``lane``, one for each chain of names."""
    path_of, paths = all_none(len(lane.rows)), list[tuple[int, int]]()
    name = lane.name
    for positions in lane.by_depth():
        around = values_at(path_of, lane.parent[positions])
        code, first = combined(around, name[positions])
        path_of[positions] = len(paths) + code
        paths += tuples(around[first], name[positions][first])
    return path_of, paths


def _phases(ops: Lane, annotations: Lane) -> NDArray[np.int8]:
    is_operator = ops.category == cat.CPU_OP
    phases = np.full(len(ops.rows), -1, np.int8)
    phases[is_operator & ops.matches(BACKWARD_OP.search)] = BACKWARD
    scope = annotations.enclosing(ops.thread, ops.start)
    for phase, matches in ((OPTIMIZER, OPTIMIZER_SCOPE.search), (OTHER, is_loading)):
        around = values_at(annotations.nearest(annotations.matches(matches)), scope)
        phases[(around >= 0) & (phases < 0)] = phase
    phase_of_op = inherited(ops, phases, -1)
    alone = (phase_of_op < 0) & (ops.parent < 0) & ~is_operator & (scope < 0)
    phase_of_op[phase_of_op < 0] = FORWARD
    phase_of_op[alone] = UNKNOWN  # a call that nothing is around
    return phase_of_op


def of_forward(ops: Lane, phase: NDArray[np.int8], values: Int64) -> Int64:
    """int64[n]: of a backward operator the one of ``values`` of the forward operator with its sequence number.

    Operators that record no gradient carry the number of the next that does, so that the latest of one number is the
    one meant.
    """
    sequence = ops.trace.integer_column("Sequence number", cat.CPU_OP)[ops.rows]
    numbered = np.flatnonzero((sequence != MISSING) & (sequence >= 0) & (phase != BACKWARD))
    numbered = sorted_by(numbered, ops.start, sequence)
    backward_sequence = inherited(ops, np.where(phase == BACKWARD, sequence, MISSING), MISSING)
    return values_at(values[numbered], last_equal(sequence[numbered], backward_sequence))


CODE = late(r"\.py\(\d+\)")
"""Names of functions that are in a Python file."""


def outside_torch(python: Lane, others: Collection[str] = ()) -> Int64:
    """int64[rows of the trace + 1]: of a Python function the innermost of a Python file outside of torch that is or
    encloses it, and is none of ``others``; else −1.
    """
    inside = python.trace.torch_functions.union(others)
    outside = python.matches(lambda name: CODE.search(name) and name not in inside)
    rows = all_none(len(python.trace) + 1)
    rows[python.rows] = values_at(python.rows, python.nearest(outside))
    return rows


STACKS = ("stack", "Call stack")
"""Arguments of operators with the frames around them: of what torch.compile compiled, and of torch before 1.12."""


def source_lines(ops: Lane, python: Lane) -> Int64:
    """int64[n] by position in the ops lane: code of ``model.py(12): forward`` among the texts of the trace, to which
    lines are added; −1 where unknown.

    A stack names the line that runs, a Python function of a trace the line on which it begins.
    """
    trace = ops.trace
    stacks = [argument for argument in STACKS if trace.has_texts(argument, cat.CPU_OP)]
    if not (len(python.rows) or stacks):
        return all_none(len(ops.rows))
    names = (*trace.names, "")  # the last is of no code
    texts = {text: code for code, text in enumerate(trace.texts)}

    def code_of(line: str | None) -> int:
        return texts.setdefault(line, len(texts)) if line else -1

    out = all_none(len(ops.rows))
    if len(python.rows):
        around = python.enclosing(ops.thread, ops.start)
        caller = outside_torch(python)[values_at(python.rows, around)]
        out = mapped(values_at(trace.name, caller), lambda code: code_of(names[code]))
    for argument in stacks:
        stack = trace.text_column(argument, cat.CPU_OP)[ops.rows]
        own = mapped(stack, lambda code: code_of(innermost_line(trace.text(code))))
        out = np.where(own >= 0, own, out)
    trace.texts = list(texts)
    return out
