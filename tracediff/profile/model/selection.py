"""`Selection`: which steps of a file are used."""

from __future__ import annotations

import re

import numpy as np

from tracediff.arrays import Bools
from tracediff.errors import TracediffError, quoted
from tracediff.patterns import late
from tracediff.profile.model.profile import Profile
from tracediff.structs import FrozenStruct

RANGE = late(r"^\s*(\d{1,18})\s*(?:\.\.\s*(\d{1,18})\s*)?$", re.ASCII)


class Selection(FrozenStruct):
    """Which steps of a file are used: by default all but the first where there are three or more, else all.

    Attributes:
        skip_first: leave out the first N steps instead.
        first, last: use the steps numbered first..last instead.
    """

    skip_first: int | None = None
    first: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        """Raises a TracediffError where first steps are left out of steps that are chosen by number."""
        if self.skip_first is not None and self.first is not None:
            raise TracediffError("--step", "chooses steps by number, so --skip-first has no effect", "give one of them")

    @classmethod
    def parse(cls, text: str, skip_first: int | None = None) -> Selection:
        """The selection written as ``A`` or ``A..B``, with which no ``skip_first`` may be given.

        Raises:
            TracediffError: any other text, or both.
        """
        match = RANGE.match(text)
        if not match:
            raise TracediffError("--step", f"not a step or a range of steps: {quoted(text)}", "write 12 or 5..10")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise TracediffError("--step", f"the range {quoted(text)} ends before it begins", f"write {last}..{first}")
        return cls(skip_first, first, last)

    def used(self, profile: Profile) -> Bools:
        """bool[s]: which steps of ``profile`` count."""
        numbers = profile.step_numbers
        if self.first is not None and self.last is not None:
            return (numbers >= self.first) & (numbers <= self.last)
        skip = self.skip_first if self.skip_first is not None else int(len(numbers) >= 3)
        return np.arange(len(numbers)) >= skip

    def typical(self, profile: Profile) -> int:
        """Position of the used step whose period is nearest to the median of those used, the earliest of equals; of
        all steps if none is used.
        """
        used = self.used(profile)
        positions = np.flatnonzero(used) if used.any() else np.arange(len(used))
        periods = profile.periods[positions]
        return int(positions[np.argmin(np.abs(periods - np.median(periods)))])
