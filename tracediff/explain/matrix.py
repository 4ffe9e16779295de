"""Many sets against one control, or every pair: the verdicts with their tests corrected for being many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.statistics.runs import LEVEL
from tracediff.diff.verdict import Judging
from tracediff.explain.compare import compare_sets


@dataclass(frozen=True)
class Cell:
    """One comparison of the matrix.

    Attributes:
        comparison: by itself.
        result: the verdict after correction: faster, slower, same or inconclusive.
        p_adjusted: Holm's p over all comparisons of the matrix that were tested, None where untested.
    """

    comparison: Comparison
    result: str
    p_adjusted: float | None


def against_control(control: TraceSet, others: Sequence[TraceSet], judging: Judging, force: bool = False) -> list[Cell]:
    """Every set against ``control``."""
    return _corrected([compare_sets(control, other, force, judging) for other in others])


def every_pair(sets: Sequence[TraceSet], judging: Judging, force: bool = False) -> list[Cell]:
    """Every set against every later one."""
    return _corrected([compare_sets(a, b, force, judging) for a, b in combinations(sets, 2)])


def _corrected(comparisons: list[Comparison]) -> list[Cell]:
    adjusted = holm([c.p_value for c in comparisons])
    cells = []
    for comparison, p in zip(comparisons, adjusted, strict=True):
        found = comparison.verdict.result
        chance = found in ("faster", "slower") and p is not None and p > LEVEL
        cells.append(Cell(comparison, "inconclusive" if chance else found, p))
    return cells


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment of those that are there: the chance of any false alarm stays below the level."""
    tested = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))
        out[k] = largest
    return out
