"""Profiles → `TraceSet`: which file is whose run and rank, and which of them can be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import numpy as np

from tracediff.aggregate.completeness import usable_runs
from tracediff.aggregate.number_ranges import ranges
from tracediff.aggregate.traceset import Run, TraceSet
from tracediff.errors import TracediffError
from tracediff.ingest.discover import rank_in_name, run_in_path, worker_of
from tracediff.ingest.health import Note, Notes, less
from tracediff.profile.model import Profile
from tracediff.profile.selection import Selection


def arrange(
    label: str,
    profiles: Iterable[Profile],
    selection: Selection,
    ranks: frozenset[int] | None = None,
    notes: Iterable[Note] = (),
) -> TraceSet:
    """The set made of ``profiles``, given in order of file name.

    A rank comes from distributedInfo, else from the file's or folder's name, else it is 0. A ``run<k>`` folder names
    the run; else the k-th file of each rank is run k. Files of one worker with disjoint step numbers are one run. What
    is missing from the set is reported in its notes.

    Args:
        ranks: keep only these.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    profiles = list(profiles)
    collected = Notes({(n.code, n.message): n.count for n in notes})
    runs: dict[str, Run] = {}
    recorded = set()
    for profile in profiles:
        rank = _rank_of(profile, collected, alone=len(profiles) == 1)
        recorded.add(rank)
        if ranks is None or rank in ranks:
            _place(runs, profile, rank)
    arranged = TraceSet(label=label, runs=list(runs.values()), selection=selection, notes=())
    complete(arranged, ranks, recorded, collected)
    return arranged


def complete(traces: TraceSet, ranks: frozenset[int] | None, recorded: Iterable[int], notes: Notes) -> None:
    """Leave the files without used steps out of ``traces``, and give it ``notes`` with those of its files and on what
    is missing.

    Args:
        ranks: those requested, None for all. recorded: those with files.

    Raises:
        TracediffError: no file of the requested ranks, or no step left.
    """
    for profile in traces.profiles:
        for note in profile.notes:
            notes.add(note.code, note.message, note.count)
    traces.runs = usable_runs(traces.runs, traces.selection, ranks, notes)
    _check_usable(traces, ranks, recorded)
    traces.notes = tuple(notes.list())


def _rank_of(profile: Profile, notes: Notes, alone: bool) -> int:
    if profile.origin.rank is not None:
        return profile.origin.rank
    named = rank_in_name(profile.origin.file)
    if named is None and not alone:
        notes.add("rank-guessed", "neither the trace nor its file name contains the rank: rank 0 is assumed")
    return named or 0


def _place(runs: dict[str, Run], profile: Profile, rank: int) -> None:
    """Put a file into the first run that has room for it: no file of its rank yet, or other cycles of the same
    worker.
    """
    numbered = run_in_path(profile.origin.file)
    for k in count(1):
        name = f"run {k}" if numbered is None else f"run {numbered}" + (f" ({k})" if k > 1 else "")
        present = runs.setdefault(name, Run(name)).ranks.setdefault(rank, [])
        if not present or all(_other_cycle(profile, p) for p in present):
            present.append(profile)
            return


def _other_cycle(a: Profile, b: Profile) -> bool:
    same_worker = worker_of(a.origin.file) == worker_of(b.origin.file) and a.origin.file != b.origin.file
    return (
        same_worker and not (a.whole_file or b.whole_file) and not np.intersect1d(a.step_numbers, b.step_numbers).size
    )


def narrowed(traces: TraceSet, selection: Selection, ranks: frozenset[int] | None = None) -> TraceSet:
    """The same set with other steps, or fewer ranks: no file is read again. Notes of files that are left out go; those
    of the set as a whole stay.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    kept = replace(traces, runs=of_ranks(traces.runs, ranks), selection=selection)
    kept_ids = {id(profile) for profile in kept.profiles}
    kept.notes = tuple(
        less(
            traces.notes, (note for profile in traces.profiles if id(profile) not in kept_ids for note in profile.notes)
        )
    )
    _check_usable(kept, ranks, traces.ranks)
    return kept


def of_ranks(runs: Iterable[Run], ranks: frozenset[int] | None) -> list[Run]:
    """``runs`` with only ``ranks``, and without those that have none of them."""
    kept = (Run(run.name, {r: files for r, files in run.ranks.items() if ranks is None or r in ranks}) for run in runs)
    return [run for run in kept if run.ranks]


def _check_usable(arranged: TraceSet, ranks: frozenset[int] | None, recorded: Iterable[int]) -> None:
    """Check that there is something to compare.

    Args:
        ranks: those requested, None for all. recorded: those with files in the set.

    Raises:
        TracediffError: no file of the requested ranks, or no step left.
    """
    if not arranged.runs:
        raise TracediffError(
            arranged.label,
            f"no file of rank {ranges(sorted(ranks or ()))}",
            f"ranks in this set: {ranges(sorted(recorded))}",
        )
    empty = [p for p in arranged.profiles if not arranged.selection.used(p).any()]
    if empty:
        numbers = ranges(empty[0].step_numbers.tolist()) or "none"
        remedy = f"select others with --step or --skip-first; steps in this file: {numbers}"
        raise TracediffError(str(empty[0].origin.file), "no step is left to compare", remedy)
