"""Measures of both sides, row by row."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.profile.measures.measure import Measure
from tracediff.profile.set_table import SetTable


@dataclass(frozen=True)
class MeasureRow:
    """One row; ``control`` and ``test`` are numerators over the comparison's scale, one a column of the measure, 0 where a side has no such row."""

    key: tuple[str, ...]
    control: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True)
class MeasureDiff:
    """A measure on both sides, the largest change of its first column first."""

    measure: Measure
    rows: tuple[MeasureRow, ...]


def compare_tables(control: dict[str, SetTable], test: dict[str, SetTable], scale: int) -> tuple[MeasureDiff, ...]:
    """The tables that both sets have, on ``scale``, a multiple of their denominators."""
    return tuple(_compared(control[name], test[name], scale) for name in control if name in test)


def _compared(control: SetTable, test: SetTable, scale: int) -> MeasureDiff:
    of = control.measure
    sides = [{key: tuple(scale // table.denominator * n for n in row) for key, row in table.rows.items()} for table in (control, test)]
    none = (0,) * len(of.columns)
    rows = [MeasureRow(key, sides[0].get(key, none), sides[1].get(key, none)) for key in {**sides[0], **sides[1]}]
    return MeasureDiff(of, tuple(sorted(rows, key=lambda r: (-abs(r.test[0] - r.control[0]), -max(r.control[0], r.test[0]), r.key))))
