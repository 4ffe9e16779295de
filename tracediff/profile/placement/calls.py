"""The call tree: phases, annotations, modules and operators; the same call in every step is one node.

Siblings are distinguished by name, shapes and, among equals, by order: the third `aten::mm` of a module in step 5 is
the third in step 6. Wrappers (compiled regions, autograd's nodes) have no node of their own. GPU events are below the
operator that launched them, or below the scope if no operator did (graph replays).
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

import numpy as np

from tracediff import bounds
from tracediff.arrays import (
    Bools,
    Int64,
    all_none,
    combined,
    grouped,
    int64_of,
    marked,
    ordinals,
    sorted_by,
    stable_order,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Codes
from tracediff.patterns import late
from tracediff.profile.kernels.match_names import is_wrapper
from tracediff.profile.model.columns import no_rows, rows_of
from tracediff.profile.model.profile import CallTable, CompiledCalls
from tracediff.profile.placement.nesting import Lane, Lanes, lane_of, tied
from tracediff.profile.placement.scopes import BACKWARD, PHASES, Scopes, chain, of_forward, scopes_of, source_lines
from tracediff.profile.placement.steps import Steps
from tracediff.runtimes import is_synchronising, may_wait
from tracediff.structs import FrozenStruct

INSTANCE = late(r"^nn\.Module: (?P<cls>.*?)(?:_(?P<k>\d{1,18}))?$")
CALL_OF_GRAPH = late(r"## Call CompiledFxGraph (\w+) ##")
"""The scope around a run of a compiled graph's code; its key in inductor's cache."""


@lru_cache(maxsize=1 << 16)
def _class_and_number(name: str) -> tuple[str, int | None]:
    """``nn.Module: Linear_3`` → (Linear, 3); None if the name is not an instance of a class."""
    match = INSTANCE.match(name)
    return (match["cls"], int(match["k"] or 0)) if match else (name.partition(":")[2] or name, None)


def module_labels(modules: Iterable[tuple[int, int, str]]) -> dict[int, str]:
    """Node → ``Linear[1]``, or ``Linear`` if it is the only child of that class.

    Args:
        modules: (node, parent node, name as recorded) of each.
    """
    labels: dict[int, str] = {}
    classes: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for node, parent, name in modules:
        labels[node], number = _class_and_number(name)
        if number is not None:
            classes[parent, labels[node]].append((number, node))
    for siblings in classes.values():
        if len(siblings) > 1:
            for ordinal, (_, node) in enumerate(sorted(siblings)):
                labels[node] += f"[{ordinal}]"
    return labels


Name = TypeVar("Name", int, str)
"""Of a module as recorded, or its code in a trace."""
ModulePaths = dict[tuple[int, Name], int]
"""Paths of modules, each a name below another path, −1 for none → their numbers."""


def modules_of(nodes: Iterable[tuple[int, int, Name]], paths: ModulePaths[Name]) -> list[int]:
    """The path of the innermost module that each node (parent, kind, name) is or is in, −1 for none, in whatever phase;
    graphs have modules that no call recorded, which are added to ``paths``. Parents are before children.
    """
    out: list[int] = []
    for parent, kind, name in nodes:
        around = out[parent] if parent >= 0 else -1
        out.append(paths.setdefault((around, name), len(paths)) if kind == MODULE else around)
    return out


KINDS = ("phase", "annotation", "module", "op")
PHASE, ANNOTATION, MODULE, OP = range(len(KINDS))


class Calls(FrozenStruct):
    """The call tree of one file, and the node of each scope of the ops lane.

    Attributes:
        table: the nodes and their rows per step.
        node: int32[n] by position in the ops lane: for an operator its own node; for a wrapper or a runtime call the
            node of the operator or scope around it.
        position: int32[rows of the trace + 1] position in the ops lane, −1 for others; the last is of no row.
        operator: bool[n] by position: whether it is an operator other than a wrapper. waits, may_wait: whether it is a
            call in which the host waits for the device, or may.
    """

    table: CallTable
    node: Codes
    position: Codes
    operator: Bools
    waits: Bools
    may_wait: Bools


def build_calls(steps: Steps, lanes: Lanes, notes: Notes) -> Calls:
    """The call tree of the ``steps`` of a trace."""
    ops, trace = lanes.ops, lanes.ops.trace
    operator = (ops.category == cat.CPU_OP) & ~ops.matches(is_wrapper)
    step = steps.positions_at(ops.start)
    in_step = operator & (step >= 0)
    scopes = scopes_of(ops, lanes.annotations)
    node, nodes = _number(ops, in_step, step, scopes, notes)
    line = source_lines(ops, lanes.python)
    if (line >= 0).any():
        # what calls backward() is around it all; a function of the program within it is a backward of its own
        is_caller = line == line[ops.nearest(ops.parent < 0)]
        forward_line = of_forward(ops, scopes.phase, line)
        line = np.where((scopes.phase == BACKWARD) & is_caller & (forward_line >= 0), forward_line, line)
    del scopes
    rows = np.flatnonzero(in_step)
    types, strides = (
        _first_of(node[rows], trace.text_column(a, cat.CPU_OP)[ops.rows[rows]], len(nodes))
        for a in ("Input type", "Input Strides")
    )
    (s, c), (count, total, self_ns) = grouped([step[rows], node[rows]], [1, ops.ns[rows], ops.self_ns[rows]])
    position = np.full(len(trace) + 1, -1, np.int32)
    position[ops.rows] = np.arange(len(ops.rows))
    return Calls(
        CallTable(
            **dict(zip(NODE, nodes.T.copy(), strict=True)),
            types=types,
            strides=strides,
            line=_first_of(node[rows], line[rows], len(nodes)),
            step=s,
            node=c,
            count=count,
            total_ns=total,
            self_ns=self_ns,
        ),
        node.astype(np.int32),
        position,
        operator,
        *((ops.category != cat.CPU_OP) & ops.matches(matches) for matches in (is_synchronising, may_wait)),
    )


def _first_of(node: Int64, values: Int64 | Codes, size: int) -> Int64:
    """int64[size]: each node's value at its first occurrence, −1 for nodes that have none."""
    out = all_none(size)
    out[node[::-1]] = values[::-1]
    return out


NODE = ("parent", "kind", "name", "shapes", "ordinal")
"""The columns of a `CallTable` that make a node, in the order of `Nodes`."""
Nodes = Int64
"""int64[k, 5]: NODE of each."""


def operators_around(ops: Lane, operator: Bools) -> tuple[Int64, Int64]:
    """(innermost, outermost) int64[n]: the scope of ``operator`` that each scope is or is in, −1 for none."""
    inner = ops.nearest(operator)
    return inner, ops.nearest(operator & (values_at(inner, ops.parent) < 0))


def _scope_nodes(ops: Lane, scopes: Scopes) -> tuple[Int64, Nodes]:
    """(node of the scope around each of the ops lane's scopes, the scopes' nodes)."""
    nested = (ANNOTATION, *scopes.annotations), (MODULE, *scopes.modules)
    code, first = combined(scopes.phase, *(path_of for _, path_of, _ in nested))
    numbers = {(-1, PHASE, phase): phase for phase in range(len(PHASES))}
    of_code = zeros(len(first))
    for i in stable_order(ops.start[first]).tolist():
        here = int(scopes.phase[first[i]])
        for kind, path_of, paths in nested:
            for name in chain(paths, int(path_of[first[i]])):
                here = numbers.setdefault((here, kind, name), len(numbers))
        of_code[i] = here
    return of_code[code], int64_of([(*node, -1, 0) for node in numbers])


def _number(ops: Lane, counted: Bools, step: Int64, scopes: Scopes, notes: Notes) -> tuple[Int64, Nodes]:
    """(node of each scope of the lane, all nodes): operators level by level, children of the same parent node with the
    same label and ordinal as one; of too many, whatever their ordinal.
    """
    around = ops.nearest_around(counted)  # an operator that began before the step has no node to be below
    scope, tree = _scope_nodes(ops, scopes)
    name, shapes = ops.name, ops.trace.text_column("Input Dims", cat.CPU_OP)[ops.rows]
    label_codes = np.full(len(ops.rows), -1, np.int32)
    label_codes[counted] = combined(name[counted], shapes[counted])[0]
    for apart in (True, False):
        parts = [tree]
        node = scope.copy()
        level = sorted_by(np.flatnonzero(counted & (around < 0)), ops.start)
        inner = np.flatnonzero(counted & (around >= 0))
        parent_node = scope[level]
        within: tuple[Int64, ...] = step[level], parent_node
        while len(level):
            label_of = label_codes[level]
            ordinal = ordinals(combined(*within, label_of)[0]) if apart else zeros(len(level))
            code, first = combined(parent_node, label_of, ordinal)
            by_time = np.argsort(first)  # siblings are numbered in order of their first occurrence
            node[level] = sum(map(len, parts)) + np.argsort(by_time)[code]
            first = first[by_time]
            own = level[first]
            kind = np.full(len(first), OP)
            parts.append(np.column_stack((parent_node[first], kind, name[own], shapes[own], ordinal[first])))
            reached = marked(level, len(ops.rows))[around[inner]]
            level, inner = sorted_by(inner[reached], ops.start), inner[~reached]
            parent_node, within = node[around[level]], (around[level],)
        nodes = np.concatenate(parts)
        if not apart or len(nodes) <= bounds.CALLS:
            break
        notes.add(
            "calls-merged",
            "the steps have so many distinct calls that equal calls below one parent were merged",
            len(nodes),
        )
    outer = ~counted & (around >= 0)
    node[outer] = node[around[outer]]
    return node, nodes


def compiled_calls(calls: Calls, lanes: Lanes, texts: list[str]) -> CompiledCalls:
    """The operators that the code of compiled graphs calls itself: a log of torch.compile knows the line of each. The
    keys of the graphs, which their ``graph`` refers to, are added to ``texts``. A node that is not the same call of the
    same graph in every step is none of them.
    """
    ops, annotations, trace = lanes.ops, lanes.annotations, lanes.ops.trace
    runs = lane_of(trace, annotations.rows[annotations.matches(CALL_OF_GRAPH.match)])
    if not len(runs.rows):
        return no_rows(CompiledCalls)
    around = runs.enclosing(ops.thread, ops.start)
    parent_node = values_at(around, ops.parent)  # the last is of those without a parent
    own = np.flatnonzero(calls.operator & (around >= 0) & (around != parent_node))
    same_name, _ = combined(around[own], ops.name[own])
    ordinal = ordinals(same_name)
    in_step = calls.table.kind[calls.node[own]] == OP
    own, ordinal = own[in_step], ordinal[in_step]
    codes, graph_of_run = np.unique(runs.name, return_inverse=True)
    graph = graph_of_run[around[own]] + len(texts)
    texts += [graph_match[1] for code in codes.tolist() if (graph_match := CALL_OF_GRAPH.match(trace.names[code]))]
    node = calls.node[own].astype(np.int64)
    _, first = combined(node, graph, ordinal)  # in order of their nodes
    once = np.delete(first, tied(node[first]))
    return rows_of(CompiledCalls(node=node, graph=graph, ordinal=ordinal), once)
