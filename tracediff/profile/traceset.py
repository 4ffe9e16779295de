"""`TraceSet`: the profiles of one side, arranged as runs and ranks, and the steps of them that count."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracediff.errors import TracediffError
from tracediff.ingest.health import Note
from tracediff.ingest.manifest import Manifest
from tracediff.profile.families import DEFAULT, Families
from tracediff.profile.profile import Profile
from tracediff.profile.set_table import SetTable

RANGE = re.compile(r"^\s*(\d{1,18})\s*(?:\.\.\s*(\d{1,18})\s*)?$")


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
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise TracediffError("--step", f"the range ends before it begins: {text!r}", f"write {last}..{first}")
        return cls(first=first, last=last)

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
        over_ranks: tables that only several ranks together tell, where the set was loaded with the measure of collectives.
    """

    label: str
    runs: list[Run]
    selection: Selection
    notes: tuple[Note, ...]
    manifest: Manifest | None = None
    families: Families = DEFAULT
    over_ranks: tuple[SetTable, ...] = ()

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
