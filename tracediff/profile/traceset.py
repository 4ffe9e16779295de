"""`TraceSet`: the profiles of one side, arranged as runs and ranks, and the steps of them that count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracediff.errors import TracediffError
from tracediff.ingest.discover import rank_in_name, run_in_path, worker_of
from tracediff.ingest.health import Note, Notes
from tracediff.ingest.manifest import Manifest
from tracediff.profile.families import DEFAULT, Families
from tracediff.profile.gaps import usable_runs
from tracediff.profile.profile import Profile

if TYPE_CHECKING:
    from tracediff.profile.collective_waits import CollectiveWaits

RANGE = re.compile(r"^(\d+)(?:\.\.(\d+))?$")


@dataclass(frozen=True)
class Selection:
    """Which steps of a file are used: by default all but the first where there are three or more, else all.

    Attributes:
        skip_first: leave out the first N steps instead.
        first, last: use the steps numbered first..last instead.
    """

    skip_first: int | None = None
    first: int | None = None
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """The selection of ``A``, ``A..B``.

        Raises:
            TracediffError: any other text.
        """
        match = RANGE.match(text)
        if not match:
            raise TracediffError("--step", f"not a step or a range of steps: {text!r}", "write 12 or 5..10")
        return cls(first=int(match[1]), last=int(match[2] or match[1]))

    def used(self, profile: Profile) -> NDArray[np.bool_]:
        """bool[s]: which steps of ``profile`` count."""
        numbers = profile.step_numbers
        if self.first is not None and self.last is not None:
            return (numbers >= self.first) & (numbers <= self.last)
        skip = self.skip_first if self.skip_first is not None else int(len(numbers) >= 3)
        return np.arange(len(numbers)) >= skip

    def typical(self, profile: Profile) -> int:
        """Position of the used step whose period is nearest to the median of those used, the earliest of equals; of all where none is used."""
        used = self.used(profile)
        positions = np.flatnonzero(used) if used.any() else np.arange(len(used))
        periods = profile.periods[positions]
        return int(positions[np.argmin(np.abs(periods - np.median(periods)))])


@dataclass
class Run:
    """One execution: rank → its files in order (several where one worker wrote several cycles)."""

    name: str
    ranks: dict[int, list[Profile]] = field(default_factory=dict)


@dataclass
class TraceSet:
    """One side of a comparison.

    Attributes:
        label: its short name.
        runs: the runs in order.
        selection: the steps used.
        notes: health notes of the set and of all its files.
        manifest: what the collector wrote of it, None for traces from elsewhere.
        families: rules that tell what kind of work a name is.
        waits: of collectives over ranks, where the set was loaded with the measure of collectives and has several.
    """

    label: str
    runs: list[Run]
    selection: Selection
    notes: tuple[Note, ...]
    manifest: Manifest | None = None
    families: Families = DEFAULT
    waits: CollectiveWaits | None = None

    @property
    def profiles(self) -> list[Profile]:
        """All files' profiles."""
        return [p for run in self.runs for files in run.ranks.values() for p in files]

    @property
    def ranks(self) -> list[int]:
        """All ranks, ascending."""
        return sorted({r for run in self.runs for r in run.ranks})

    @property
    def has_gpu(self) -> bool:
        """Whether any file holds GPU events."""
        return any(p.has_gpu for p in self.profiles)

    @property
    def steps_used(self) -> list[int]:
        """The numbers of the used steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers[self.selection.used(p)]})

    @property
    def steps_recorded(self) -> list[int]:
        """The numbers of all steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers})


def arrange(label: str, profiles: Iterable[Profile], selection: Selection, ranks: frozenset[int] | None = None, notes: Iterable[Note] = ()) -> TraceSet:
    """The set made of ``profiles``, given in order of file name.

    A rank comes from distributedInfo, else from the file's or folder's name, else it is 0. A ``run<k>`` folder names the run; else the k-th file of
    each rank is run k. Files of one worker with disjoint step numbers are one run. What the set lacks is said in its notes.

    Args:
        ranks: keep only these.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    profiles = list(profiles)
    collected = Notes({(n.code, n.message): n.count for n in notes})
    runs: dict[str, Run] = {}
    for profile in profiles:
        rank = _rank_of(profile, collected, alone=len(profiles) == 1)
        if ranks is None or rank in ranks:
            _place(runs, profile, rank)
    arranged = TraceSet(label, list(runs.values()), selection, ())
    for profile in arranged.profiles:
        for note in profile.notes:
            collected.add(note.code, note.message, note.count)
    arranged.runs = usable_runs(arranged.runs, selection, ranks, collected)
    check_usable(arranged, ranks)
    arranged.notes = tuple(collected.list())
    return arranged


def _rank_of(profile: Profile, notes: Notes, alone: bool) -> int:
    if profile.origin.rank is not None:
        return profile.origin.rank
    named = rank_in_name(profile.origin.file)
    if named is None and not alone:
        notes.add("rank-guessed", "neither the trace nor its name says its rank: taken as rank 0")
    return named or 0


def _place(runs: dict[str, Run], profile: Profile, rank: int) -> None:
    """Put a file into the first run that has room for it: no file of its rank yet, or other cycles of the same worker."""
    numbered = run_in_path(profile.origin.file)
    for k in count(1):
        name = f"run {k}" if numbered is None else f"run {numbered}" + (f" ({k})" if k > 1 else "")
        present = runs.setdefault(name, Run(name)).ranks.setdefault(rank, [])
        if not present or all(_other_cycle(profile, p) for p in present):
            present.append(profile)
            return


def _other_cycle(a: Profile, b: Profile) -> bool:
    same_worker = worker_of(a.origin.file) == worker_of(b.origin.file) and a.origin.file != b.origin.file
    return same_worker and not (a.whole_file or b.whole_file) and not np.intersect1d(a.step_numbers, b.step_numbers).size


def narrowed(traces: TraceSet, selection: Selection, ranks: frozenset[int] | None = None) -> TraceSet:
    """The same set with other steps, or fewer ranks: no file is read again. Its notes stay those of all that was read.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    runs = [Run(run.name, {rank: files for rank, files in run.ranks.items() if ranks is None or rank in ranks}) for run in traces.runs]
    kept = replace(traces, runs=[run for run in runs if run.ranks], selection=selection)
    check_usable(kept, ranks)
    return kept


def check_usable(arranged: TraceSet, ranks: frozenset[int] | None) -> None:
    """See that there is something to compare.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    if not arranged.runs:
        wanted = ", ".join(map(str, sorted(ranks or ())))
        raise TracediffError(arranged.label, f"no file of rank {wanted}", "see which ranks there are by comparing without --rank")
    empty = [p for p in arranged.profiles if not arranged.selection.used(p).any()]
    if empty:
        numbers = ", ".join(map(str, empty[0].step_numbers.tolist())) or "none"
        reason = f"no step is left to compare (steps in the file: {numbers})"
        raise TracediffError(str(empty[0].origin.file), reason, "choose others with --step or --skip-first")
