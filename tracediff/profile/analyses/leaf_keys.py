"""What a part of a period belongs to: a leaf, by its key (`LeafTable`)."""

from functools import cached_property
from typing import Any

import numpy as np

from tracediff.arrays import AnyArray, Bools, Int64, all_none, combined, concatenated, marked, union, values_at
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.patterns import late
from tracediff.profile.analyses.critical_path import SourceNumbers
from tracediff.profile.events.work import KEY, WorkKeys, keys_at
from tracediff.profile.placement.calls import operators_around
from tracediff.profile.placement.nesting import NOTHING, Painting, overlaid, painted
from tracediff.profile.placement.scopes import is_loading, outside_torch
from tracediff.runtimes import is_host_collective, is_query, reads_number

KINDS = (
    *("gpu", "queue", "op", "call", "sync", "loading", "compiling", "python", "unknown", "between", "annotated"),
    "start",
)
GPU, QUEUE, OP, CALL, SYNC, LOADING, COMPILING, PYTHON, UNKNOWN, BETWEEN, ANNOTATED, START = range(len(KINDS))
COLUMNS = ("kind", *KEY, "op", "root")

COMPILER, CAPTURE = "(dynamo_timed)", "CUDAGraphNode.record"
"""In the names of scopes: of a part of compilation, and of the capture of a CUDA graph within one."""

CALLEE = late(
    r"<built-in \w+ (?P<builtin>[\w.]+)|nn\.Module: (?P<module>\w+?)(?:_\d+)?$"
    r"|(?:[^:]*/)?(?P<file>[a-z]\w*)\.py\(\d+\): __(?:init|enter|exit)__$"
    r"|(?!(?:[^:]*/)?_contextlib\b)[^:]*: (?!_|<|decorate_|(?:inner|wrapped|wrapper)$)(?P<function>.+)"
)
"""Recorded names of functions that say what their caller calls: of what is not written in Python, of a module, of the
file whose object is made or entered, and of a Python function that is not private, anonymous or what a decorator
returns.
"""


def _is_python(name: str) -> bool:
    """Whether it is a module or a function that is written in Python."""
    callee = CALLEE.match(name)
    return callee is not None and callee.lastgroup in ("module", "function")


def callee_label(name: str) -> str:
    """``collect()``, the class of a module, or a file of Python, of a recorded name; empty where it says nothing to who
    calls it.
    """
    callee = CALLEE.match(name)
    if not callee:
        return ""
    function = callee["builtin"] or callee["function"]
    return callee["module"] or (f"{function}()" if function else f"{callee['file']}.py")


class Sources(SourceNumbers, dict=True):
    """What a part of a period can be charged to; further numbers are scopes."""

    blocked: Int64

    @cached_property
    def end(self) -> int:
        """After the last of all."""
        return self.further + len(self.scopes[1])

    def is_op(self, sources: Int64) -> Bools:
        """bool[m]: which of ``sources`` are operators and calls."""
        return self.context.calls.position[np.minimum(sources, self.nothing)] >= 0

    @cached_property
    def waits(self) -> Bools:
        """bool[n] by position in the ops lane: calls that may wait for the GPU; launches into a full queue."""
        waits: Bools = self.context.calls.may_wait | self.context.ops.matches(lambda n: reads_number(n) or is_query(n))
        waits[self.blocked] = True
        return waits

    @cached_property
    def root_starts(self) -> Int64:
        """ns at which the outermost operators and calls start, ascending."""
        ops = self.context.ops
        return np.sort(ops.start[ops.roots])

    @cached_property
    def scopes(self) -> tuple[Painting, Int64, Int64]:
        """(painting, kind, code of the name) of the scopes that hold whatever happens in them: where a DataLoader
        loads, and where torch.compile works, by its outermost scope and the capture of a graph.
        """
        return _scopes(self.context.trace, self.further)

    def keys(self, others: Int64, work: WorkKeys) -> tuple[AnyArray, dict[str, Int64]]:
        """(leaf of each source, of those that have one; columns of the keys of the leaves, in their order).

        Args:
            others: sources beside operators, calls and GPU events, at least one. work: of the GPU events or, without a
                GPU, of the operators by their position in the lane.
        """
        gpu, ops = self.context.gpu, self.context.ops
        events = np.arange(len(gpu.rows))
        kinds = [
            (ops.rows, self._of_operators(work)),
            (self.event + events, {"kind": np.full(len(events), GPU), **work}),
            (others, self._of_others(others)),
        ]
        leaf_of: AnyArray = np.zeros(self.end, np.int32)
        leaf_count, columns = 0, []
        for sources, own in kinds:
            if len(sources):
                code, first = combined(*own.values())
                code += leaf_count
                leaf_of[sources] = code
                leaf_count += len(first)
                columns.append({name: own[name][first] if name in own else all_none(len(first)) for name in COLUMNS})
        keys = {name: np.concatenate([c[name] for c in columns]) for name in COLUMNS}
        code, first = combined(*keys.values())
        return code.astype(np.int32)[leaf_of], {name: column[first] for name, column in keys.items()}

    def _of_operators(self, work: WorkKeys) -> dict[str, Int64]:
        """The columns of operators and calls, by their position in the lane."""
        trace, ops, operator = self.context.trace, self.context.ops, self.context.calls.operator
        name = ops.name
        kind = np.full(len(ops.rows), OP, np.int8)
        kind[trace.is_of(cat.CALLS, ops.rows)] = CALL
        kind[self.context.calls.waits] = SYNC
        around = (np.append(name, np.int32(-1))[position] for position in operators_around(ops, operator))
        out: dict[str, Any] = {"kind": kind, "name": name, **dict(zip(("op", "root"), around, strict=True))}
        if not len(self.context.gpu.rows):
            here = np.flatnonzero(operator)
            for column, values in keys_at(work, here).items():
                out[column] = out[column] if column in out else all_none(len(name))
                out[column][here] = values
        return out

    def _of_others(self, sources: Int64) -> dict[str, Int64]:
        """The columns of queues, scopes, annotations and time of which nothing is known; all else is Python."""
        context, trace = self.context, self.context.trace
        kind = np.full(len(sources), PYTHON)
        name, callee = all_none(len(sources)), all_none(len(sources))
        rows = np.flatnonzero(sources <= self.nothing)
        if len(context.lanes.python.rows):
            row = sources[rows]
            caller, function = (rows_of[row] for rows_of in self._calls_of_program)
            caller = np.where(caller < 0, outside_torch(context.lanes.python)[row], caller)
            is_python = np.append(trace.category == cat.PYTHON, False)[row]
            caller = np.where((caller < 0) & is_python, row, caller)  # a function that nobody outside of torch called
            name[rows] = np.where(caller >= 0, trace.name[caller], -1)
            callee[rows] = np.where(function >= 0, trace.name[function], -1)
        is_noted = marked(context.lanes.annotations.rows, len(trace) + 1)
        is_noted[context.steps.rows] = False
        noted = np.flatnonzero(is_noted[np.minimum(sources, self.nothing)])
        collective = trace.name_matches(is_host_collective, sources[noted])
        kind[noted], name[noted] = np.where(collective, SYNC, ANNOTATED), trace.name[sources[noted]]
        before = np.flatnonzero((sources >= self.queue) & (sources < self.unknown))
        is_gap, event = np.divmod(sources[before] - self.queue, len(context.gpu.rows))
        launch = context.gpu.launch[event]
        kind[before], name[before] = np.where(is_gap, BETWEEN, QUEUE), np.where(launch >= 0, trace.name[launch], -1)
        scopes = np.flatnonzero(sources >= self.further)
        kind[scopes], name[scopes] = (column[sources[scopes] - self.further] for column in self.scopes[1:])
        kind[sources == self.unknown], kind[sources == self.start] = UNKNOWN, START
        return {"kind": kind, "name": name, "op": callee}

    @property
    def _calls_of_program(self) -> tuple[Int64, Int64]:
        """(int64[rows of the trace + 1]: of a Python function the innermost of the program's own that is or encloses
        it; what that calls, of nested ones the outermost whose name says so), −1 for none. Of what a library's
        decorator calls that is a function or module of Python, and nothing else.
        """
        trace, python = self.context.trace, self.context.lanes.python
        caller = outside_torch(python, trace.library_functions)
        is_own = caller[python.rows] == python.rows
        is_named, is_python = (python.matches(matches) for matches in (CALLEE.match, _is_python))
        library = trace.torch_functions | trace.library_functions
        is_library = np.append(python.matches(library.__contains__), False)
        is_called = is_named & (is_python | ~is_library[python.parent]) & (caller[python.rows] >= 0)
        callee = all_none(len(python.rows) + 1)  # the last is of roots, which nothing is around
        for scopes in python.by_depth():
            around = callee[python.parent[scopes]]
            first = np.where(is_called[scopes], scopes, -1)
            callee[scopes] = np.where(is_own[scopes], -1, np.where(around >= 0, around, first))
        rows = all_none(len(trace) + 1)
        rows[python.rows] = values_at(python.rows, callee[:-1])
        return caller, rows


def _scopes(trace: Trace, first: int) -> tuple[Painting, Int64, Int64]:
    rows = np.flatnonzero(trace.name_matches(lambda name: COMPILER in name or is_loading(name)))
    rows = rows[trace.is_of(cat.HOST, rows) & (trace.dur[rows] > 0)]
    compiles = trace.name_matches(lambda name: COMPILER in name, rows)
    captures = compiles & trace.name_matches(lambda name: CAPTURE in name, rows)
    loads = trace.name_matches(is_loading, rows) & (trace.category[rows] == cat.ANNOTATION)
    painting, parts = NOTHING, list[tuple[Int64, Int64]]()
    for kind, some in ((LOADING, rows[loads]), (COMPILING, rows[captures]), (COMPILING, rows[compiles & ~captures])):
        some = some[np.lexsort((-trace.dur[some], trace.ts[some]))]
        spans = union(*trace.spans(some))
        outermost = some[np.searchsorted(trace.ts[some], spans.start, side="left")]
        number = first + sum(len(kinds) for kinds, _ in parts) + np.arange(len(outermost))
        painting = overlaid(painting, painted(spans.start, spans.end, number))
        parts.append((np.full(len(outermost), kind), np.where(kind == COMPILING, trace.name[outermost], -1)))
    kinds, names = concatenated(parts)
    return painting, kinds, names
