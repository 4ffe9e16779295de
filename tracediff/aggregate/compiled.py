"""The logs of torch.compile joined with the traces of a set, by the names of kernels and the keys of their graphs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tracediff.aggregate.traceset import TraceSet
from tracediff.formatting import time
from tracediff.ingest.health import Notes
from tracediff.ingest.manifest import GraphBreak
from tracediff.ingest.source import TraceFile
from tracediff.ingest.torch_log import PHASES, TORCH_LOG, CompiledKernel, TorchLog, read_log
from tracediff.profile.kernels.match_names import is_generated

LOGS = "logs of torch.compile"
CALL_OF_GRAPH = re.compile(r"## Call CompiledFxGraph (\w+) ##")


def add_torch_logs(traces: TraceSet, files: Sequence[TraceFile]) -> None:
    """Give ``traces`` what the logs of its ranks say, with health notes on it; nothing of logs of another run."""
    if not files:
        return
    notes = Notes({(n.code, n.message): n.count for n in traces.notes if n.code != TORCH_LOG})
    logs = [log for file in files if (log := read_log(file, notes)) and log.rank in (None, *traces.ranks)]
    traces.torch_log = _joined(traces, logs, notes)
    traces.notes = tuple(notes.list())


def _joined(traces: TraceSet, logs: Sequence[TorchLog], notes: Notes) -> TorchLog | None:
    names = {name for p in traces.profiles for name in p.names}
    compiled = {
        name
        for p in traces.profiles
        for work in (p.kernels, p.host_work)
        for name in (p.names[code] for code in np.unique(work.name).tolist())
        if is_generated(name)
    }
    graphs = {found[1] for name in names if (found := CALL_OF_GRAPH.match(name))}
    logged = [kernel for log in logs for kernel in log.kernels]
    in_trace = [kernel for kernel in logged if kernel.name in compiled]
    called = [kernel for kernel in logged if kernel.graph in graphs]
    if not logs or ((compiled or graphs) and not (in_trace or called)):
        notes.add(TORCH_LOG, f"{LOGS} are of another run or of other ranks, and were not used")
        return None
    kernels = _unambiguous([kernel for kernel in in_trace if kernel in called] or in_trace)
    named = len({kernel.name for kernel in kernels})
    if compiled:
        notes.add(TORCH_LOG, f"{named} of {len(compiled)} compiled kernels have their line of code from {LOGS}")
    else:
        notes.add(TORCH_LOG, f"the traces name no compiled kernel, so {LOGS} give no line of code")
    recompiles: Counter[GraphBreak] = Counter()
    for log in logs:
        recompiles |= Counter(log.recompiles)  # each rank repeats those of the others
    breaks = dict.fromkeys(found for log in logs for found in log.graph_breaks)
    compile_us = max((log.compile_us for log in logs), default=())
    _note(notes, breaks, recompiles, compile_us)
    return TorchLog(tuple(kernels), tuple(breaks), tuple(recompiles.elements()), compile_us)


def _unambiguous(kernels: Sequence[CompiledKernel]) -> list[CompiledKernel]:
    """Those with a line, but for names that several graphs of a phase give to kernels of different lines."""
    different: dict[tuple[str, str], dict[tuple[str, ...], CompiledKernel]] = {}
    for kernel in kernels:
        different.setdefault((kernel.phase, kernel.name), {})[kernel.lines] = kernel
    return [kernel for found in different.values() if len(found) == 1 for kernel in found.values() if kernel.lines]


def _note(
    notes: Notes, breaks: Iterable[GraphBreak], recompiles: Mapping[GraphBreak, int], compile_us: Sequence[float]
) -> None:
    for found in breaks:
        notes.add(TORCH_LOG, f"graph break at {found}")
    for found, number in recompiles.items():
        notes.add(TORCH_LOG, f"recompiled {found}", number)
    if any(compile_us):
        spent = ", within it ".join(f"{phase} {time(us)}" for phase, us in zip(PHASES, compile_us, strict=True))
        notes.add(TORCH_LOG, f"compile time: {spent}")
