"""The operators that the code of a compiled graph calls itself: a log of torch.compile knows the line of each."""

from __future__ import annotations

import numpy as np

from tracediff.arrays import Int64, combined, ordinals, values_at
from tracediff.ingest.model.health import Notes
from tracediff.patterns import late
from tracediff.profile.events.context import Context
from tracediff.profile.model.profile import CompiledCalls, no_compiled_calls
from tracediff.profile.placement.calls import OP
from tracediff.profile.placement.nesting import lane_of
from tracediff.profile.placement.scopes import enclosing

CALL_OF_GRAPH = late(r"## Call CompiledFxGraph (\w+) ##")
"""The scope around a run of a compiled graph's code; its key in inductor's cache."""


def compiled_calls(context: Context, texts: list[str]) -> CompiledCalls:
    """Those operators. The keys of the graphs, which their ``graph`` refers to, are added to ``texts``. A node that is
    not the same call of the same graph in every step is none of them.
    """
    trace, calls, ops, annotations = context.trace, context.calls, context.lanes.ops, context.lanes.annotations
    runs = lane_of(trace, annotations.rows[trace.name_matches(CALL_OF_GRAPH.match, annotations.rows)], Notes())
    if not len(runs.rows):
        return no_compiled_calls()
    around = enclosing(runs, ops.thread, ops.start)
    parent_node = values_at(around, ops.parent)  # the last is of those without a parent
    own = np.flatnonzero(calls.operator & (around >= 0) & (around != parent_node))
    same_name, _ = combined(around[own], trace.name[ops.rows[own]])
    ordinal = ordinals(same_name)
    in_step = calls.table.kind[calls.node[own]] == OP
    own, ordinal = own[in_step], ordinal[in_step]
    codes, graph_of_run = np.unique(trace.name[runs.rows], return_inverse=True)
    graph = graph_of_run[around[own]] + len(texts)
    texts += [graph_match[1] for code in codes.tolist() if (graph_match := CALL_OF_GRAPH.match(trace.names[code]))]
    return _of_nodes(calls.node[own], graph, ordinal)


def _of_nodes(node: Int64, graph: Int64, ordinal: Int64) -> CompiledCalls:
    """The distinct rows, in order of their nodes, but for nodes that have several."""
    _, first = combined(node, graph, ordinal)
    first = first[np.argsort(node[first], kind="stable")]
    _, rows = np.unique(node[first], return_counts=True)
    first = first[np.repeat(rows == 1, rows)]
    return CompiledCalls(node=node[first], graph=graph[first], ordinal=ordinal[first])
