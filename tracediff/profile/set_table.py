"""`SetTable`: a table of a whole set, as reports show it."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.profile.measures.measure import Measure


@dataclass(frozen=True)
class SetTable:
    """A table of a set, as that of a measure.

    Attributes:
        measure: what it tells. denominator: of all numerators.
        rows: key → numerators of the columns, per step.
    """

    measure: Measure
    denominator: int
    rows: dict[tuple[str, ...], list[int]]
