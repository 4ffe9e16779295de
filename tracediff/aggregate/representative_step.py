"""The step of a set that is shown where only one can be: a timeline, a merged trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracediff.aggregate.averages import UsedStep
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.source import TraceFile
from tracediff.profile.model import PackedTimeline, Timeline


@dataclass(frozen=True)
class TypicalStep:
    """One step of one file.

    Attributes:
        run, rank, file: where it is from.
        timeline: what happened in it.
    """

    run: str
    rank: int
    file: TraceFile
    timeline: Timeline


def typical_step(traces: TraceSet, steps: dict[str, list[UsedStep]]) -> TypicalStep | None:
    """The typical step of that file whose is nearest to the median period of all ``steps``; None where no file has its
    events (snapshots).

    It is one of ``steps`` where any file kept the events of such a one.
    """
    median = float(np.median([step.period_ns for run in steps.values() for step in run] or [0]))
    used = {(name, step.rank, step.number) for name, of_run in steps.items() for step in of_run}
    found = (
        (run.name, rank, profile.origin.file, profile.timeline)
        for run in traces.runs
        for rank, files in run.ranks.items()
        for profile in files
        if profile.timeline is not None
    )

    def oddness(place: tuple[str, int, TraceFile, PackedTimeline]) -> tuple[bool, float]:
        run, rank, _, timeline = place
        return (run, rank, timeline.step) not in used, abs(timeline.end - timeline.start - median)

    nearest = min(found, key=oddness, default=None)
    if nearest is None:
        return None
    run, rank, file, timeline = nearest
    return TypicalStep(run, rank, file, timeline.unpacked())
