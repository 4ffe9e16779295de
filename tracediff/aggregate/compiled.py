"""The logs of torch.compile joined with the traces of a set, by the names of kernels and the keys of their graphs, and
the calls of a graph by their order.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tracediff.aggregate.snapshot_columns import SharedColumns
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import all_none, distinct, group_by, tuples
from tracediff.formatting import time
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.manifest import CompiledKernel, GraphBreak, TorchLog
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import as_one
from tracediff.ingest.torch_log import PHASES, TORCH_LOG, read_log
from tracediff.profile.kernels.match_names import is_generated
from tracediff.profile.model.profile import Profile
from tracediff.profile.placement.calls import CALL_OF_GRAPH, OP

LOGS = "logs of torch.compile"
Called = tuple[str, str]
"""Key of a graph, and the name of what its code calls."""
Lines = dict[Called, list[str | None]]
"""The line of each such call, in order."""


def add_torch_logs(traces: TraceSet, files: Sequence[TraceFile]) -> None:
    """Give ``traces`` what the logs of its ranks say, with health notes on it; nothing of logs of another run."""
    if not files:
        return
    notes = Notes.of(note for note in traces.notes if note.code != TORCH_LOG)
    logs = [log for file in files if (log := read_log(file, notes)) and log.rank in (None, *traces.ranks)]
    traces.torch_log = _joined(traces, logs, notes)
    traces.notes = tuple(notes.list())


def _joined(traces: TraceSet, logs: Sequence[TorchLog], notes: Notes) -> TorchLog | None:
    names = {name for p in traces.profiles for name in p.names}
    compiled = {
        name
        for p in traces.profiles
        for work in (p.kernels, p.host_work)
        for name in (p.names[code] for code in distinct(work.name).tolist())
        if is_generated(name)
    }
    graphs = {call_match[1] for name in names if (call_match := CALL_OF_GRAPH.match(name))}
    logged = [kernel for log in logs for kernel in log.kernels]
    in_trace = [kernel for kernel in logged if kernel.name in compiled]
    kernels_of_graphs = [kernel for kernel in logged if kernel.graph in graphs]
    if not logs or ((compiled or graphs) and not (in_trace or kernels_of_graphs)):
        notes.add(TORCH_LOG, f"{LOGS} are of another run or of other ranks, and were not used")
        return None
    kernels = _unambiguous([kernel for kernel in in_trace if kernel in kernels_of_graphs] or in_trace)
    count = len({kernel.name for kernel in kernels})
    if compiled:
        notes.add(TORCH_LOG, f"{count} of {len(compiled)} compiled kernels have their line of code from {LOGS}")
    else:
        notes.add(TORCH_LOG, f"the traces name no compiled kernel, so {LOGS} give no line of code")
    _give_lines(traces, _lines_of_calls(logs), notes)
    recompiles: Counter[GraphBreak] = Counter()
    for log in logs:
        recompiles |= Counter(log.recompiles)  # each rank repeats those of the others
    breaks = dict.fromkeys(place for log in logs for place in log.graph_breaks)
    compile_us = max((log.compile_us for log in logs), default=())
    for place in breaks:
        notes.add(TORCH_LOG, f"graph break at {place}")
    for place, number in recompiles.items():
        notes.add(TORCH_LOG, f"recompiled {place}", number)
    if any(compile_us):
        spent = ", within it ".join(f"{phase} {time(us)}" for phase, us in zip(PHASES, compile_us, strict=True))
        notes.add(TORCH_LOG, f"compile time: {spent}")
    return TorchLog(tuple(kernels), tuple(breaks), tuple(recompiles.elements()), compile_us)


def _unambiguous(kernels: Sequence[CompiledKernel]) -> list[CompiledKernel]:
    """Those with a line, but for names that several graphs of a phase give to kernels of different lines."""
    different: dict[tuple[str, str], dict[tuple[str, ...], CompiledKernel]] = {}
    for kernel in kernels:
        different.setdefault((kernel.phase, kernel.name), {})[kernel.lines] = kernel
    return [
        kernel for by_line in different.values() if len(by_line) == 1 for kernel in by_line.values() if kernel.lines
    ]


def _lines_of_calls(logs: Sequence[TorchLog]) -> Lines:
    """Without the calls of a graph whose line differs between logs."""
    out: Lines = {}
    for log in logs:
        for key, calls in group_by(log.calls, lambda call: (call.graph, call.name)).items():
            lines = [as_one(call.lines) for call in calls]
            out[key] = lines if out.get(key, lines) == lines else []
    return out


def _give_lines(traces: TraceSet, lines: Lines, notes: Notes) -> None:
    """Give the calls of compiled graphs their line, with a note on those of operators. Lines that the trace has of them
    are replaced: the Python functions around a graph are its callers.
    """
    shared, has_line_of = SharedColumns(), dict[tuple[str, str, int], bool]()
    for run in traces.runs:
        run.ranks = {
            rank: [shared.of(_with_lines(p, lines, has_line_of)) for p in files] for rank, files in run.ranks.items()
        }
    operators = [has_line for (_, name, _), has_line in has_line_of.items() if not is_generated(name)]
    if operators:
        count = f"{sum(operators)} of {len(operators)}"
        notes.add(TORCH_LOG, f"{count} calls of operators by compiled graphs have their line of code from {LOGS}")


def _with_lines(profile: Profile, lines: Lines, has_line_of: dict[tuple[str, str, int], bool]) -> Profile:
    """``profile`` with ``lines``; notes in ``has_line_of`` of which of its calls they are."""
    calls, table = profile.calls, profile.compiled_calls
    call_keys = [
        (profile.texts[graph], profile.names[name]) for graph, name in tuples(table.graph, calls.name[table.node])
    ]
    rows = [*zip(call_keys, table.ordinal.tolist(), table.node.tolist(), strict=True)]
    last = {call: ordinal for call, ordinal, _ in sorted(rows)}
    line_of_node = {node: _line(lines.get(call, []), ordinal, last[call]) for call, ordinal, node in rows}
    has_line_of.update({(*call, ordinal): line_of_node[node] is not None for call, ordinal, node in rows})
    new = sorted({line for line in line_of_node.values() if line})
    codes = {line: len(profile.texts) + k for k, line in enumerate(new)}
    own = all_none(len(calls.line) + 1)  # the last is of those without a parent
    for node, line in line_of_node.items():
        own[node] = codes[line] if line else -1
    operators = np.flatnonzero(calls.kind == OP)
    while len(inside := operators[(own[operators] < 0) & (own[calls.parent[operators]] >= 0)]):
        own[inside] = own[calls.parent[inside]]
    line_of = np.where(own[:-1] >= 0, own[:-1], calls.line)
    return profile.replace(calls=calls.replace(line=line_of), texts=(*profile.texts, *new)) if new else profile


def _line(lines: Sequence[str | None], ordinal: int, last: int) -> str | None:
    """The line of a call; None where the log has another number of calls, of different lines."""
    if last + 1 == len(lines):
        return lines[ordinal]
    return lines[0] if len(set(lines)) == 1 else None
