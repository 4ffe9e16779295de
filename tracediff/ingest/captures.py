"""The traces that serving engines write while they capture CUDA or HIP graphs, beside those of the graphs' replays."""

from __future__ import annotations

import os

from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_traces, rank_in_name
from tracediff.ingest.source import TraceFile

FOLDER = "capture_traces"
"""Name of the folder, beside the traces, in which engines write them."""


def is_capture(file: TraceFile) -> bool:
    """Whether ``file`` is one by its folder."""
    return FOLDER in file.folders[-1:]


def captures_beside(file: TraceFile) -> tuple[TraceFile, ...]:
    """The capture traces in the folder beside ``file``: of its rank, where their names have ranks."""
    folder = os.path.join(os.path.dirname(file.path), FOLDER)
    if file.member or "://" in file.path or is_capture(file) or not os.path.isdir(folder):
        return ()
    try:
        found = find_traces(folder)
    except TracediffError:  # none in it
        return ()
    ranks = [rank_in_name(TraceFile(os.path.basename(capture.path))) for capture in found]
    mine = rank_in_name(file)
    return tuple(c for c, rank in zip(found, ranks, strict=True) if rank is None or mine is None or rank == mine)
