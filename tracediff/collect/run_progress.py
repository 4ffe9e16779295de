"""`RunProgress`: which run of a collection is in which phase, and how long the rest will take."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tracediff.formatting import clock

PHASES = ("build", "warm-up", "timing", "record")
"""Phases of a run: up to the first step, further steps, steps without the profiler, steps with it."""


class RunProgress(NamedTuple):
    """How far a collection is.

    Attributes:
        variant, run, repeats: run ``run`` of ``repeats`` of this variant. phase: one of PHASES.
        fraction: of all runs, 0 to 1. left_s: estimated time left, None while unknown.
    """

    variant: str
    run: int
    repeats: int
    phase: str
    fraction: float
    left_s: float | None

    def __str__(self) -> str:
        """``eager, run 2 of 5: record, about 0:48 left``."""
        remaining = "" if self.left_s is None else f", about {clock(self.left_s)} left"
        return f"{self.variant}, run {self.run} of {self.repeats}: {self.phase}{remaining}"


OnRun = Callable[[RunProgress], None]


@dataclass
class RunTimes:
    """How long runs took, from which the time left is estimated: of each variant, as long as its last run.

    Attributes:
        upcoming: variants of the runs that follow the current one.
    """

    upcoming: Sequence[str] = ()
    _last: dict[str, float] = field(default_factory=dict)
    _done: int = 0
    _started: float = 0.0

    def start(self) -> None:
        """A run starts."""
        self._started = time.monotonic()

    def finish(self, variant: str) -> None:
        """The run has ended."""
        self._last[variant] = time.monotonic() - self._started
        self._done += 1

    def left_s(self, variant: str) -> float | None:
        """The time left during a run of ``variant``, None before the end of the first run."""
        if not self._last:
            return None
        mean = sum(self._last.values()) / len(self._last)
        current = self._last.get(variant, mean) - (time.monotonic() - self._started)
        return max(current, 0.0) + sum(self._last.get(each, mean) for each in self.upcoming)

    @property
    def fraction(self) -> float:
        """Share of the runs that have ended."""
        return self._done / (self._done + 1 + len(self.upcoming))
