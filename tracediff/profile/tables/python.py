"""Python functions and modules, if the profiler recorded stacks."""

from __future__ import annotations

from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import matched
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Key, Rate, TableSchema, summed

SCHEMA = TableSchema(
    "python",
    "Python functions",
    "Time in Python functions on all threads. Self excludes the Python functions called; total counts every level of a "
    "recursion. Operators and runtime calls are not Python functions: their time counts in the function around them.",
    keys=("function", "kind"),
    columns=(Column("self", "self"), Column("total", "total"), Column("calls", "calls", "count")),
    rates=(Rate("mean_us", "mean µs", "total", "calls", 1e-3),),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by function, without addresses of objects; a call counts in the step in which it begins."""
    names, lane = context.trace.names, context.lanes["python"]
    name = context.trace.name[lane.rows]
    keys: list[Key] = [(name, matched(names)), (name, lambda code: _kind(names[code]))]
    return summed(context.steps.positions_at(lane.start), keys, [lane.self_ns, lane.end - lane.start, 1])


def _kind(name: str) -> str:
    if name.startswith("nn.Module: "):
        return "nn.Module"
    return "built-in" if name.startswith("<built-in ") else "function"
