"""Names and labels of the processes in a trace, from its metadata events."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.trace import Arguments, Trace

PROCESS_LABELS = {"name": "process_name", "labels": "process_labels"}
"""Argument that names a process → the metadata event that has it."""


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
