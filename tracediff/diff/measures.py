"""Measures of both sides, row by row."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.profile.average import measure_average
from tracediff.profile.measures import NAMES, measure
from tracediff.profile.measures.measure import Measure
from tracediff.profile.traceset import TraceSet


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


def measured(traces: TraceSet) -> list[str]:
    """The measures that every file of ``traces`` has."""
    return [name for name in NAMES if all(name in p.measures for p in traces.profiles)]


def compare_measures(control: TraceSet, test: TraceSet, scale: int) -> tuple[MeasureDiff, ...]:
    """The measures that both sets have, on ``scale``, a multiple of both sets' denominators."""
    return tuple(_compared(name, control, test, scale) for name in measured(control) if name in measured(test))


def _compared(name: str, control: TraceSet, test: TraceSet, scale: int) -> MeasureDiff:
    of = measure(name)
    averages = measure_average(control, name), measure_average(test, name)
    sides = [{key: tuple(scale // denominator * n for n in row) for key, row in rows.items()} for denominator, rows in averages]
    none = (0,) * len(of.columns)
    rows = [MeasureRow(key, sides[0].get(key, none), sides[1].get(key, none)) for key in {**sides[0], **sides[1]}]
    return MeasureDiff(of, tuple(sorted(rows, key=lambda r: (-abs(r.test[0] - r.control[0]), -max(r.control[0], r.test[0]), r.key))))
