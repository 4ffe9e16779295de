"""Synchronisations: calls in which the host waits for the GPU, by call site."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model import TableRows
from tracediff.profile.placement.calls import OP, Calls
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.scopes import enclosing
from tracediff.profile.placement.steps import PROFILER_STEP
from tracediff.profile.tables.schema import Column, Key, Rate, TableSchema, summed
from tracediff.runtimes import is_synchronising

SOURCE_LINE = re.compile(r"\(\d+\): ")
"""Matches Python functions with a file; built-in functions and modules have none."""
FRAMES = 3
"""Python frames kept around a call; the innermost are usually torch's own."""
AROUND = " > "

SCHEMA = TableSchema(
    "synchronisations",
    "Synchronisations",
    "Calls in which the host waits for the GPU, by call site: the operators around the call, outermost first; the "
    "three innermost Python functions with a source line; and the innermost annotation. A field is empty if nothing of "
    "its kind is around the call or was recorded.",
    keys=("call", "operators", "python", "annotation"),
    columns=(Column("time", "time"), Column("calls", "calls", "count")),
    rates=(Rate("mean_us", "mean µs", "time", "calls", 1e-3),),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by call and call site; if one such call is inside another, only the outer counts."""
    trace, ops = context.trace, context.lanes["ops"]
    waits = (trace.category[ops.rows] != cat.CPU_OP) & trace.named(is_synchronising)[ops.rows]
    waiting = np.flatnonzero(waits & ~((ops.parent >= 0) & waits[ops.parent]))
    step = context.steps.positions_at(ops.start[waiting])
    keys: list[Key] = [
        (trace.name[ops.rows[waiting]], trace.names),
        (np.where(step >= 0, context.calls.node[waiting], -1), lambda node: _path(trace, context.calls, node)),
        _innermost(trace, context.lanes["python"], matches=SOURCE_LINE.search, ops=ops, positions=waiting, most=FRAMES),
        _innermost(
            trace,
            context.lanes["annotations"],
            matches=lambda name: not PROFILER_STEP.match(name),
            ops=ops,
            positions=waiting,
            most=1,
        ),
    ]
    return summed(step, keys, [trace.dur[ops.rows[waiting]], 1])


def _innermost(
    trace: Trace, lane: Lane, *, matches: Callable[[str], object], ops: Lane, positions: Int64, most: int
) -> tuple[Int64, list[str]]:
    """(code of the innermost ``most`` scopes of ``lane`` around each of the ops at ``positions`` whose names match
    ``matches``, the texts that the codes index).
    """
    name = np.append(trace.name[lane.rows].astype(np.int64), -1)
    above = np.append(lane.parent, -1)
    passed = np.append(~trace.named(matches)[lane.rows], False)
    found: list[Int64] = []
    here = enclosing(lane, ops.thread[positions], ops.start[positions])
    while len(found) < most:
        while passed[here].any():
            here = np.where(passed[here], above[here], here)
        found.append(here)
        here = above[here]
    code, first = combined(*(name[f] for f in found))
    chains = zip(*(name[f][first].tolist() for f in found), strict=True)
    return code, [AROUND.join(match_name(trace.names[n]) for n in reversed(chain) if n >= 0) for chain in chains]


def _path(trace: Trace, calls: Calls, node: int) -> str:
    """The operators at and around ``node`` of the calls, outermost first."""
    names: list[str] = []
    while node >= 0 and calls.table.kind[node] == OP:
        names.append(match_name(trace.names[calls.table.name[node]]))
        node = int(calls.table.parent[node])
    return AROUND.join(reversed(names))
