"""What each kernel of a CUDA or HIP graph was for, which a replay of the graph does not record: by the graph's capture,
and by what `torch.cuda.graph_annotations` recorded.

A text of an annotation is ``str`` in torch 2.12 and 2.13, ``name`` later, ``annotation`` where the CUPTI monitor
exports it; graph compilers give the module's qualified name. Scopes that overlap are merged by torch, so one text is
left, the inner.
"""

from __future__ import annotations

import json

import numpy as np

from tracediff import bounds
from tracediff.arrays import MISSING, Int64, combined, group_rows, sorted_by, tuples
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Codes, Trace, texts
from tracediff.patterns import late
from tracediff.profile.model.profile import CallTable
from tracediff.profile.placement.calls import ANNOTATION, MODULE, PHASE, build_calls
from tracediff.profile.placement.nesting import build_lanes
from tracediff.profile.placement.steps import whole_file
from tracediff.runtimes import ARGUMENT, is_capture_begin, is_captured_copy, is_launch

COPY = "copy"
"""The name of a launch that copies or sets memory: captures do not say how."""
KERNEL_ARGUMENT = "kernel"
"""Argument of a launch that names its kernel; HIP's have it, CUDA's do not."""


PathNode = tuple[int, str, str, str, str, str, int]
"""Kind of `calls.KINDS`, name, shapes, dtypes, strides, line, ordinal; texts are empty where not recorded."""
CallPath = tuple[PathNode, ...]
"""Where a launch is in the call tree of its capture: nodes from the outermost on."""


Key = tuple[str, str]
"""Name of a kernel, empty where not recorded, `COPY` for copies; grid and block, empty where not recorded."""
Capture = tuple[tuple[Key, CallPath], ...]
"""One captured graph: its launches in order."""


def captures_of(trace: Trace) -> list[Capture]:
    """The captured graphs in a capture trace, in order of time; empty if no launch in it is a captured one."""
    notes = Notes()
    steps = whole_file(trace)
    calls = build_calls(trace, steps, build_lanes(trace, notes), notes)
    calls_made = trace.complete(cat.CALLS)
    begins = np.sort(trace.ts[calls_made[trace.name_matches(is_capture_begin, calls_made)]])
    launches = _captured_launches(trace, begins)
    graph = np.searchsorted(begins, trace.ts[launches], side="right")
    kernels = zip(trace.names_of(launches), texts(trace, KERNEL_ARGUMENT, launches), strict=True)
    names = [COPY if is_captured_copy(call) else kernel for call, kernel in kernels]
    keys = zip(names, launch_shapes(trace, launches), strict=True)
    captured = list(zip(keys, _paths(trace, calls.table, calls.node[calls.position[launches]]), strict=True))
    return [tuple(captured[group[0] : group[-1] + 1]) for group in group_rows(graph, np.arange(len(graph)))]


def _captured_launches(trace: Trace, begins: Int64) -> Int64:
    """Rows of the launches and copies that ran nothing, in order of time."""
    rows = trace.complete(cat.CALLS)
    rows = rows[trace.name_matches(lambda name: is_launch(name) or is_captured_copy(name), rows)]
    ran = trace.integer_column(ARGUMENT.correlation, *cat.GPU)
    correlation = trace.integer_column(ARGUMENT.correlation, *cat.CALLS)[rows]
    rows = rows[~np.isin(correlation, ran[ran != MISSING])]
    if len(begins):  # what runs before is not part of a graph
        rows = rows[trace.ts[rows] >= begins[0]]
    return sorted_by(rows, trace.ts)


def launch_shapes(trace: Trace, rows: Int64) -> list[str]:
    """Grid and block of each kernel or launch, whatever blanks they were written with; empty where not recorded."""
    shapes = zip(*(texts(trace, argument, rows) for argument in (ARGUMENT.grid, ARGUMENT.block)), strict=True)
    return ["".join(f"{grid}×{block}".split()) if grid and block else "" for grid, block in shapes]


def _paths(trace: Trace, table: CallTable, nodes: Codes) -> list[CallPath]:
    """The path of each of ``nodes`` of a capture's tree; each node's is made once."""
    recorded_texts = (*trace.texts, "")  # the last is of no code
    paths: dict[int, CallPath] = {-1: ()}

    def below(path: CallPath, node: int) -> CallPath:
        kind = int(table.kind[node])
        if kind == PHASE:  # the replay has its own
            return path
        recorded = (recorded_texts[column[node]] for column in (table.shapes, table.types, table.strides, table.line))
        return *path, (kind, trace.names[table.name[node]], *recorded, int(table.ordinal[node]))

    for node in nodes.tolist():
        new = []
        while node not in paths:
            new.append(node)
            node = int(table.parent[node])
        for inner in reversed(new):
            paths[inner] = below(paths[int(table.parent[inner])], inner)
    return [paths[node] for node in nodes.tolist()]


TEXTS = ("name", "str", "annotation")
QUALIFIED_NAME, AUTOGRAD_PHASE = "module_fqn", "autograd_phase"
BACKWARD = "backward"
"""The only value of `PHASE`: work that autograd did for what was annotated."""
GRAPH_ANNOTATIONS = (*TEXTS, QUALIFIED_NAME, AUTOGRAD_PHASE)
PART = late(r"[^.]+(?:\.\d+)*")
"""A module in a qualified name, with the number of the instance: ``layers.3`` of ``layers.3.attention``."""


def annotated_paths(trace: Trace, rows: Int64) -> dict[int, CallPath]:
    """Position in ``rows``, of GPU events of graph replays → where their annotation places them; none without one."""
    columns = [trace.text_column(name, *cat.GPU)[rows] for name in GRAPH_ANNOTATIONS]
    annotated = np.flatnonzero(np.max(columns, axis=0) >= 0)
    code, first = combined(*(column[annotated] for column in columns))
    recorded_texts = (*trace.texts, "")  # the last is of no code
    paths = [
        _path({n: recorded_texts[column[row]] for n, column in zip(GRAPH_ANNOTATIONS, columns, strict=True)})
        for row in annotated[first].tolist()
    ]
    return {position: paths[k] for position, k in tuples(annotated, code)}


def _listed(text: str) -> dict[str, str]:
    """The arguments in a list of dictionaries, which the CUPTI monitor writes as JSON; else none."""
    try:
        entries = json.loads(text) if text.startswith("[{") else []
    except (ValueError, RecursionError):
        return {}
    return {
        name: value
        for each in entries
        if isinstance(each, dict)
        for name, value in each.items()
        if name in GRAPH_ANNOTATIONS and isinstance(value, str)
    }


def _path(arguments: dict[str, str]) -> CallPath:
    arguments = arguments | _listed(arguments["annotation"])
    scopes = [(ANNOTATION, BACKWARD)] if arguments[AUTOGRAD_PHASE] == BACKWARD else []
    scopes += [(ANNOTATION, text) for name in TEXTS if (text := arguments[name])][:1]
    modules = PART.findall(arguments[QUALIFIED_NAME])
    scopes += [(MODULE, part) for part in (modules if len(modules) <= bounds.MODULES else [arguments[QUALIFIED_NAME]])]
    return tuple((kind, name, "", "", "", "", 0) for kind, name in scopes)
