"""Whether a set is complete: missing ranks, steps and GPU events are reported in health, and the rest is analysed."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low

import numpy as np

from tracediff.aggregate.traceset import Run, world_size
from tracediff.ingest.health import Notes
from tracediff.profile.model import Profile
from tracediff.profile.selection import Selection

OTHER_WORK = 0.1
"""Relative difference in the number of GPU events per step from which a run does other work."""
CODES = frozenset(("missing-ranks", "unequal-steps", "unequal-runs", "rank-without-gpu"))
"""Codes of the notes that depend on the selected ranks and steps."""


def usable_runs(runs: Iterable[Run], selection: Selection, ranks: frozenset[int] | None, notes: Notes) -> list[Run]:
    """``runs`` without the files that have no used step, if others remain; what is missing is added to ``notes``.

    Args:
        ranks: those requested, None for all.
    """
    runs = list(runs)
    everywhere = frozenset(rank for run in runs for rank in run.ranks)
    missing = sum(_missing(run, everywhere, ranks) for run in runs)
    notes.add(
        "missing-ranks",
        "ranks have no file: the step time is that of the slowest rank present",
        missing,
    )
    runs = _without_stepless(runs, selection, notes)
    notes.add(
        "unequal-steps",
        "steps are missing from the files of some ranks: their times come from the ranks that have them",
        sum(_unequal(run, selection) for run in runs),
    )
    notes.add(
        "unequal-runs",
        "runs do another amount of work per step than most runs of the set: they are not runs of the same program and "
        "inputs",
        _odd_runs(runs, selection),
    )
    if any(p.has_gpu for p in _files(runs)):
        notes.add(
            "rank-without-gpu",
            "files have no GPU events, though other files of the set do",
            sum(not p.has_gpu for p in _files(runs)),
        )
    return runs


def _files(runs: list[Run]) -> list[Profile]:
    return [profile for run in runs for profiles in run.ranks.values() for profile in profiles]


def _without_stepless(runs: list[Run], selection: Selection, notes: Notes) -> list[Run]:
    """``runs`` without the files that have no used step, so that one damaged file does not stop the analysis. A file
    without steps is not one step if other files have steps.
    """
    files = _files(runs)
    stepped = any(not p.whole_file for p in files)
    good = {id(p) for p in files if selection.used(p).any() and not (stepped and p.whole_file)}
    if not good or len(good) == len(files):
        return runs
    notes.add(
        "without-steps",
        "files have none of the used steps, though other files of the set do, and were left out",
        len(files) - len(good),
    )
    for run in runs:
        run.ranks = {rank: kept for rank, files in run.ranks.items() if (kept := [p for p in files if id(p) in good])}
    return [run for run in runs if run.ranks]


def _odd_runs(runs: list[Run], selection: Selection) -> int:
    """The number of runs whose work per used step differs in count from the median run's."""
    counts = [_work_per_step(run, selection) for run in runs]
    middle = median_low(counts) if counts else 0.0
    return sum(abs(count - middle) > OTHER_WORK * middle for count in counts)


def _work_per_step(run: Run, selection: Selection) -> float:
    """GPU events (without a GPU: operators) per used step and file."""
    files = [p for profiles in run.ranks.values() for p in profiles]
    count = steps = 0
    for profile in files:
        used = np.flatnonzero(selection.used(profile))
        table = profile.kernels if profile.has_gpu else profile.host_work
        count += int(table.count[np.isin(table.step, used)].sum())
        steps += len(used)
    return count / max(steps, 1)


def _missing(run: Run, everywhere: frozenset[int], ranks: frozenset[int] | None) -> int:
    """The number of ranks without a file in ``run``: of those requested, else of its world size, else of the ranks of
    other runs.
    """
    if ranks is not None:
        return len(ranks - run.ranks.keys())
    world = world_size(run)
    return max(world - sum(rank < world for rank in run.ranks), 0) if world else len(everywhere - run.ranks.keys())


def _unequal(run: Run, selection: Selection) -> int:
    """The number of used steps that some rank of ``run`` does not have."""
    by_rank = [{int(n) for p in files for n in p.step_numbers[selection.used(p)]} for files in run.ranks.values()]
    return len(by_rank[0].union(*by_rank) - by_rank[0].intersection(*by_rank))
