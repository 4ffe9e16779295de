"""What each kernel of a CUDA or HIP graph was for, which a replay of the graph does not record: by the graph's capture,
and by what `torch.cuda.graph_annotations` recorded; and the kernels of replays joined to that.

A replay's kernels are those of its capture in the same order. Where streams run side by side, or the capture has more
launches or fewer, kernels are matched by name, grid and block in order; what remains has no operator, as without a
capture.

A text of an annotation is ``str`` in torch 2.12 and 2.13, ``name`` later, ``annotation`` where the CUPTI monitor
exports it; graph compilers give the module's qualified name. Scopes that overlap are merged by torch, so one text is
left, the inner.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tracediff import bounds
from tracediff.arrays import (
    MISSING,
    Int64,
    all_none,
    combined,
    group_by,
    group_rows,
    int64_of,
    sorted_by,
    tuples,
    values_at,
    zeros,
)
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.patterns import late
from tracediff.profile.model.profile import CallTable
from tracediff.profile.placement.calls import ANNOTATION, MODULE, PHASE, Calls, build_calls
from tracediff.profile.placement.gpu_events import GpuEvents
from tracediff.profile.placement.nesting import build_lanes
from tracediff.profile.placement.steps import whole_file
from tracediff.runtimes import ARGUMENT, is_capture_begin, is_captured_copy, is_graph_launch, is_launch

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
    calls = build_calls(steps, build_lanes(trace, notes), notes)
    begins = np.sort(trace.ts[trace.rows_named(is_capture_begin, trace.complete(cat.CALLS))])
    launches = _captured_launches(trace, begins)
    graph = np.searchsorted(begins, trace.ts[launches], side="right")
    kernels = zip(trace.names_of(launches), trace.texts_of(KERNEL_ARGUMENT, launches), strict=True)
    names = [COPY if is_captured_copy(call) else kernel for call, kernel in kernels]
    keys = zip(names, launch_shapes(trace, launches), strict=True)
    paths = _paths(trace, calls.table)
    nodes = calls.node[calls.position[launches]].tolist()
    captured = [(key, paths[node]) for key, node in zip(keys, nodes, strict=True)]
    return [tuple(captured[group[0] : group[-1] + 1]) for group in group_rows(graph, np.arange(len(graph)))]


def _captured_launches(trace: Trace, begins: Int64) -> Int64:
    """Rows of the launches and copies that ran nothing, in order of time."""
    rows = trace.rows_named(lambda name: is_launch(name) or is_captured_copy(name), trace.complete(cat.CALLS))
    ran = trace.integer_column(ARGUMENT.correlation, *cat.GPU)
    correlation = trace.integer_column(ARGUMENT.correlation, *cat.CALLS)[rows]
    rows = rows[~np.isin(correlation, ran[ran != MISSING])]
    if len(begins):  # what runs before is not part of a graph
        rows = rows[trace.ts[rows] >= begins[0]]
    return sorted_by(rows, trace.ts)


def launch_shapes(trace: Trace, rows: Int64) -> list[str]:
    """Grid and block of each kernel or launch, whatever blanks they were written with; empty where not recorded."""
    shapes = zip(*(trace.texts_of(argument, rows) for argument in (ARGUMENT.grid, ARGUMENT.block)), strict=True)
    return ["".join(f"{grid}×{block}".split()) if grid and block else "" for grid, block in shapes]


def _paths(trace: Trace, table: CallTable) -> list[CallPath]:
    """The path of each node of a capture's tree, and at last that of no node."""
    paths: list[CallPath] = []
    columns = table.parent, table.kind, table.name, table.shapes, table.types, table.strides, table.line, table.ordinal
    for parent, kind, name, *codes, ordinal in tuples(*columns):
        if kind == PHASE:  # the replay has its own
            paths.append(())
        else:
            own = kind, trace.names[name], *map(trace.text, codes), ordinal
            paths.append((*paths[parent], own))
    return [*paths, ()]


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
    paths = [
        _path({n: trace.text(column[row]) for n, column in zip(GRAPH_ANNOTATIONS, columns, strict=True)})
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


CODE = "graph-capture"
ANNOTATED = "graph-annotations"
KERNELS = "kernels of graph replays"
EQUAL = "are those of the capture, one by one"
BY_NUMBER = "were matched to the capture by number alone, because it does not name its kernels"
ALIGNED = "were matched to the capture by name, grid and block, because it has other launches"
UNMATCHED = "are not in the capture, so they have no operator"
"""How kernels were matched."""
OCCURRENCES = ("step", "node", "count", "total_ns", "self_ns")
"""The columns of a `CallTable` that have a row for each step and node."""


def with_replayed(
    trace: Trace, gpu: GpuEvents, calls: Calls, captures: Sequence[Capture], notes: Notes
) -> tuple[Calls, Int64]:
    """(``calls`` with what the captures, or else annotations of the graphs, say below the launches of graphs, int64[g]
    node of the call that launched each GPU event, of those that one of them explains the one that they name).
    """
    node = values_at(calls.node, calls.position[gpu.launch])
    replays = _replays(gpu)
    if captures and not replays:
        notes.add(CODE, "the trace replays no graph: the captures are not used")
    launched = np.concatenate(replays) if replays else zeros(0)
    annotated = {int(launched[i]): path for i, path in annotated_paths(trace, gpu.rows[launched]).items()}
    paths = annotated | (_captured_paths(gpu, replays, captures, notes) if captures else {})
    if not paths:
        return calls, node
    grafts: Grafts = {}
    counts = Counter[tuple[int, int]]()
    for events in replays:
        root, step = int(node[events[0]]), int(gpu.step[events[0]])
        if root < 0:
            continue
        reached: set[int] = set()
        for event in events.tolist():
            if event in paths:
                here = root
                for own in paths[event]:
                    here = grafts.setdefault((here, own), len(calls.table.parent) + len(grafts))
                    reached.add(here)
                node[event] = here
        if step >= 0:
            counts.update((step, new) for new in reached)
    if annotated:
        notes.add(ANNOTATED, "kernels of graph replays have the annotations of their graph", len(annotated))
    return calls.replace(table=_grafted(trace, calls.table, grafts, counts)), node


def _captured_paths(
    gpu: GpuEvents, replays: Sequence[Int64], captures: Sequence[Capture], notes: Notes
) -> dict[int, CallPath]:
    """GPU event → its path in the capture of its graph, for those that are in one."""
    paths: dict[int, CallPath] = {}
    counts_of_methods = Counter[str]()
    matches: dict[tuple[Key, ...], tuple[Capture, Int64, str]] = {}
    for events in replays:
        keys = _keys(gpu.trace, gpu.rows[events])
        if keys not in matches:  # a graph is replayed in every step
            alignments = [(capture, *align(keys, capture)) for capture in captures]
            matches[keys] = max(  # the capture that explains most of the replay
                alignments, key=lambda one: (one[2] == EQUAL, int((one[1] >= 0).sum()), -len(one[0]))
            )
        capture, places, how = matches[keys]
        matched = int((places >= 0).sum())
        counts_of_methods.update({how: matched, UNMATCHED: len(events) - matched})
        paths |= {event: capture[place][1] for event, place in tuples(events, places) if place >= 0}
    for message, count in counts_of_methods.items():
        notes.add(CODE, f"{KERNELS} {message}", count)
    return paths


def _replays(gpu: GpuEvents) -> list[Int64]:
    """The GPU events of each graph launch, in order of start."""
    launched = np.flatnonzero(gpu.launch >= 0)
    launched = launched[gpu.trace.name_matches(is_graph_launch, gpu.launch[launched])]
    order = sorted_by(launched, gpu.start, gpu.launch)
    return group_rows(gpu.launch[order], order)


def _keys(trace: Trace, rows: Int64) -> tuple[Key, ...]:
    is_kernel = (trace.category[rows] == cat.KERNEL).tolist()
    events = zip(trace.names_of(rows), launch_shapes(trace, rows), is_kernel, strict=True)
    return tuple((name, shape) if kernel else (COPY, "") for name, shape, kernel in events)


def align(replayed: Sequence[Key], capture: Capture) -> tuple[Int64, str]:
    """(int64[n] launch of ``capture`` behind each replayed kernel, −1 for none; how they were matched)."""
    ours, theirs = list(replayed), [key for key, _ in capture]
    if not all(shape for _, shape in (*ours, *theirs)):  # one side does not record them
        ours, theirs = ([(name, "") for name, _ in side] for side in (ours, theirs))
    if ours == theirs:
        return np.arange(len(ours)), EQUAL
    if len(ours) == len(theirs) and all(
        a == b or (a[0] != COPY and not b[0]) for a, b in zip(ours, theirs, strict=True)
    ):
        return np.arange(len(ours)), BY_NUMBER
    places = all_none(len(ours))
    if len(ours) <= bounds.REPLAY_KERNELS and len(theirs) <= bounds.REPLAY_KERNELS:
        from difflib import SequenceMatcher

        for ours_at, theirs_at, size in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            places[ours_at : ours_at + size] = np.arange(theirs_at, theirs_at + size)
    _match_equal_numbers(ours, theirs, places)
    return places, ALIGNED


def _match_equal_numbers(ours: list[Key], theirs: list[Key], places: Int64) -> None:
    """Match what is left of a key in order, where as much is left on both sides: streams that ran side by side."""
    matched = set(places[places >= 0].tolist())
    rest = (place for place, (name, _) in enumerate(theirs) if name and place not in matched)
    unmatched = group_by(rest, theirs.__getitem__)
    for key, positions in group_by(np.flatnonzero(places < 0).tolist(), ours.__getitem__).items():
        if len(unmatched[key]) == len(positions):
            places[positions] = unmatched[key]


Grafts = dict[tuple[int, PathNode], int]
"""Nodes that are added to a call table, by the node around them: what each is → its number, in order."""


def _grafted(trace: Trace, table: CallTable, grafts: Grafts, counts: Mapping[tuple[int, int], int]) -> CallTable:
    """``table`` with the new nodes, whose names and texts the trace has from now on, and how often (step, node) is
    reached, without host time.
    """
    names, texts = ({text: code for code, text in enumerate(recorded)} for recorded in (trace.names, trace.texts))
    added = []
    for parent, (kind, name, *own_texts, ordinal) in grafts:
        codes = [texts.setdefault(str(text), len(texts)) if text else -1 for text in own_texts]
        added.append((parent, kind, names.setdefault(name, len(names)), ordinal, *codes))
    trace.names, trace.texts = list(names), list(texts)
    if not added:
        return table
    columns = ("parent", "kind", "name", "ordinal", "shapes", "types", "strides", "line")
    new = dict(zip(columns, int64_of(added).T, strict=True))
    rows = int64_of([(*key, count, 0, 0) for key, count in sorted(counts.items())]).reshape(-1, 5)
    new |= dict(zip(OCCURRENCES, rows.T, strict=True))
    whole = {c: np.concatenate((getattr(table, c), values)) for c, values in new.items()}
    order = np.lexsort((whole["node"], whole["step"]))
    return table.replace(**(whole | {c: whole[c][order] for c in OCCURRENCES}))
