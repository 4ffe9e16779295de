"""The further tables of a set: the averages of its files' tables, and what only several ranks together tell."""

from __future__ import annotations

import numpy as np

from tracediff.aggregate.averages import weighted_files
from tracediff.aggregate.set_table import SetTable
from tracediff.aggregate.traceset import TraceSet
from tracediff.profile.arrays.factorize import grouped
from tracediff.profile.tables import NAMES, table_schema


def set_tables(traces: TraceSet) -> dict[str, SetTable]:
    """Name → table of all tables that every file of ``traces`` has, in their order; tables over ranks stand behind that
    of collectives.
    """
    out: dict[str, SetTable] = {}
    for name in NAMES:
        if all(name in p.tables for p in traces.profiles):
            out[name] = SetTable(table_schema(name), *table_average(traces, name))
        if name == "collectives":
            out |= {table.schema.name: table for table in traces.over_ranks}
    return out


def table_average(traces: TraceSet, name: str) -> tuple[int, dict[tuple[str, ...], list[int]]]:
    """(denominator, key → numerators of the columns) per step of the mean rank, of the table called ``name``; files
    without it have none of its rows.
    """
    denominator, weighted = weighted_files(traces)
    sums: dict[tuple[str, ...], list[int]] = {}
    for profile, used, weight in weighted:
        table = profile.tables.get(name)
        if table is None:
            continue
        rows = np.isin(table.step, used)
        (keys,), columns = grouped([table.key[rows]], list(table.values[rows].T))
        for key, *values in zip(keys.tolist(), *(c.tolist() for c in columns), strict=True):
            entry = sums.setdefault(table.keys[key], [0] * len(values))
            for k, value in enumerate(values):
                entry[k] += weight * value
    return denominator, sums
