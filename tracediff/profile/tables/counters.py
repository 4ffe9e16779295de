"""Counters: values over time that tools add to a trace (`C` events), such as GPU utilisation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest import categories as cat
from tracediff.ingest.times import MISSING, Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.arrays.intervals import cut
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed

LARGEST = 2.0**61
"""Limit of a value times the length of the file in ns; larger values count as unknown, so that sums fit int64."""

SCHEMA = TableSchema(
    "counters",
    "Counters",
    "Counter values over the period of each step. A sample applies until the next sample of its series. The mean is "
    "taken over the time for which a value is known.",
    keys=("counter", "series"),
    columns=(
        Column("known", "time with a value"),
        Column("integral", "value × ns", "count"),
        Column("samples", "samples", "count"),
    ),
    rates=(Rate("mean", "mean", "integral", "known"),),
)


def table(context: Context) -> TableRows:
    """Rows by counter and series; empty if the trace has no counters. The value is unknown before the first sample and
    after the last.
    """
    trace, borders = context.trace, context.completions
    rows, series, value, names = _samples(trace)
    order = np.lexsort((rows, trace.ts[rows], series, trace.pid[rows], trace.name[rows]))
    rows, series, value = rows[order], series[order], value[order]
    track, _ = combined(trace.name[rows].astype(np.int64), trace.pid[rows].astype(np.int64), series)
    follows = np.flatnonzero(track[1:] == track[:-1])
    start, end = trace.ts[rows[follows]], trace.ts[rows[follows + 1]]
    fits = np.abs(value[follows]) < LARGEST / max(int(borders[-1] - borders[0]), 1)
    which, period, low, high = cut(start[fits], end[fits], borders)
    held = follows[fits][which]
    integral = np.rint(value[held] * (high - low)).astype(np.int64)
    sample = np.concatenate((held, np.arange(len(rows))))
    step = np.concatenate(
        (period, np.where(trace.ts[rows] < borders[-1], np.searchsorted(borders, trace.ts[rows], side="right") - 1, -1))
    )
    nothing = np.zeros(len(rows), np.int64)
    columns = [
        np.concatenate((high - low, nothing)),
        np.concatenate((integral, nothing)),
        np.arange(len(sample)) >= len(held),
    ]
    return summed(step, [(trace.name[rows[sample]], trace.names), (series[sample], names)], columns)


def _samples(trace: Trace) -> tuple[Int64, Int64, NDArray[np.float64], list[str]]:
    """(row, series code and value (or NaN) of each sample, series names)."""
    counters = trace.arguments.get(cat.COUNTER)
    if counters is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), []
    numbers = np.array([*map(_number, trace.texts), math.nan])
    columns: dict[str, NDArray[np.float64]] = dict(counters.floats)
    columns |= {
        name: np.where(column == MISSING, math.nan, column.astype(np.float64)) for name, column in counters.ints.items()
    }
    columns |= {name: numbers[column] for name, column in counters.texts.items()}
    names = sorted(columns)
    is_recorded = {name: ~np.isnan(columns[name]) for name in names}
    rows = np.concatenate([counters.rows[is_recorded[name]] for name in names] or [counters.rows[:0]])
    value = np.concatenate([columns[name][is_recorded[name]] for name in names] or [np.zeros(0)])
    series = np.repeat(np.arange(len(names)), [int(is_recorded[name].sum()) for name in names]).astype(np.int64)
    return rows, series, value, names


def _number(text: str) -> float:
    try:
        return float(text.replace("_", "?"))  # Python would take 1_0 for 10
    except ValueError:
        return math.nan
