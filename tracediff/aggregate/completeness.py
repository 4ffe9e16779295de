"""What a set lacks: ranks, steps, GPUs; each said once in health, and the rest analysed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracediff.ingest.health import Notes

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import Run
    from tracediff.profile.model import Profile
    from tracediff.profile.selection import Selection

CODES = frozenset(("mixed-world-sizes", "missing-ranks", "unequal-steps", "rank-without-gpu"))
"""Of the notes that depend on which ranks and steps are chosen."""


def usable_runs(runs: Iterable[Run], selection: Selection, ranks: frozenset[int] | None, notes: Notes) -> list[Run]:
    """``runs`` less the files of which no step can be used, as long as others remain; what is lacking is added to
    ``notes``.

    Args:
        ranks: those that were asked for, None for all.
    """
    runs = list(runs)
    worlds = sorted({p.origin.world_size for p in _files(runs) if p.origin.world_size is not None})
    if len(worlds) > 1:
        notes.add("mixed-world-sizes", f"the files tell of different world sizes: {', '.join(map(str, worlds))}")
    everywhere = frozenset(rank for run in runs for rank in run.ranks)
    missing = sum(_missing(run, everywhere, ranks) for run in runs)
    notes.add(
        "missing-ranks",
        "files of further ranks are missing: what is said of a step is said of the ranks there are",
        missing,
    )
    runs = _without_stepless(runs, selection, notes)
    notes.add(
        "unequal-steps",
        "steps are not in the files of all ranks: each is that of the ranks that have it",
        sum(_unequal(run, selection) for run in runs),
    )
    if any(p.has_gpu for p in _files(runs)):
        notes.add(
            "rank-without-gpu",
            "files hold no GPU event, and others of the set do",
            sum(not p.has_gpu for p in _files(runs)),
        )
    return runs


def _files(runs: list[Run]) -> list[Profile]:
    return [p for run in runs for of in run.ranks.values() for p in of]


def _without_stepless(runs: list[Run], selection: Selection, notes: Notes) -> list[Run]:
    """``runs`` less the files without a used step: the damaged file of one rank stops no analysis, and its whole span
    is no step of the others'.
    """
    files = _files(runs)
    stepped = any(not p.whole_file for p in files)
    good = {id(p) for p in files if selection.used(p).any() and not (stepped and p.whole_file)}
    if not good or len(good) == len(files):
        return runs
    notes.add(
        "without-steps",
        "files hold none of the steps that are used, though others of the set do, and were left out",
        len(files) - len(good),
    )
    for run in runs:
        run.ranks = {rank: kept for rank, of in run.ranks.items() if (kept := [p for p in of if id(p) in good])}
    return [run for run in runs if run.ranks]


def _missing(run: Run, everywhere: frozenset[int], ranks: frozenset[int] | None) -> int:
    """How many ranks ``run`` has no file of: of those asked for, else of its world size, else of the ranks of other
    runs.
    """
    if ranks is not None:
        return len(ranks - run.ranks.keys())
    world = max((p.origin.world_size or 0 for of in run.ranks.values() for p in of), default=0)
    return max(world - sum(rank < world for rank in run.ranks), 0) if world else len(everywhere - run.ranks.keys())


def _unequal(run: Run, selection: Selection) -> int:
    """How many used steps some rank of ``run`` does not have."""
    each = [{int(n) for p in of for n in p.step_numbers[selection.used(p)]} for of in run.ranks.values()]
    return len(each[0].union(*each) - each[0].intersection(*each))
