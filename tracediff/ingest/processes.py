"""Names of the processes and threads in a trace, from its metadata events."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.trace import Arguments, Trace

PROCESS_LABELS = {"name": "process_name", "labels": "process_labels"}
"""Argument that names a process → the metadata event that has it."""
THREAD_NAME = "thread_name"
"""The metadata event that names a thread."""


def process_labels(trace: Trace) -> list[list[str]]:
    """Code of each process → its names and labels, in the file's order."""
    labels: list[list[str]] = [[] for _ in range(int(trace.pid.max(initial=-1)) + 1)]
    metadata = trace.arguments.get(cat.METADATA, Arguments(np.empty(0, np.int64)))
    for argument, event in PROCESS_LABELS.items():
        if argument in metadata.texts and event in trace.names:
            ours = (trace.name[metadata.rows] == trace.names.index(event)) & (metadata.texts[argument] >= 0)
            pids, values = trace.pid[metadata.rows[ours]], metadata.texts[argument][ours]
            for pid, value in zip(pids.tolist(), values.tolist(), strict=True):
                labels[pid].append(trace.texts[value])
    return labels


def thread_names(trace: Trace) -> dict[tuple[int, int], str]:
    """(code of the process, code of the thread) → its name, the last of several."""
    metadata = trace.arguments.get(cat.METADATA)
    if metadata is None or "name" not in metadata.texts or THREAD_NAME not in trace.names:
        return {}
    named = (trace.name[metadata.rows] == trace.names.index(THREAD_NAME)) & (metadata.texts["name"] >= 0)
    rows, texts = metadata.rows[named], metadata.texts["name"][named]
    places = zip(trace.pid[rows].tolist(), trace.tid[rows].tolist(), strict=True)
    return dict(zip(places, (trace.texts[code] for code in texts.tolist()), strict=True))
