"""Python functions and modules, if the profiler recorded stacks."""

from __future__ import annotations

import numpy as np

from tracediff.profile.context import Context
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed

KINDS = ("function", "built-in", "nn.Module")

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
    trace, lane = context.trace, context.lanes["python"]
    name = trace.name[lane.rows]
    used = np.unique(name)
    names = [match_name(trace.names[code]) for code in used.tolist()]
    kind = np.array([KINDS.index(_kind(n)) for n in names], np.int64)
    texts = sorted(set(names))
    place = {text: i for i, text in enumerate(texts)}
    code = np.searchsorted(used, name)
    text = np.array([place[n] for n in names], np.int64)
    columns = [lane.self_ns, lane.end - lane.start, np.ones(len(code), np.int64)]
    return summed(context.steps.positions_at(lane.start), [(text[code], texts), (kind[code], KINDS)], columns)


def _kind(name: str) -> str:
    return (
        "nn.Module" if name.startswith("nn.Module: ") else "built-in" if name.startswith("<built-in ") else "function"
    )
