"""The further tables of a set: the averages of its files' tables, and those that compare its ranks."""

from __future__ import annotations

import numpy as np

from tracediff.aggregate.alike import alike
from tracediff.aggregate.averages import weighted_files
from tracediff.aggregate.set_table import SetTable
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.health import Note, Notes
from tracediff.profile.arrays.factorize import grouped
from tracediff.profile.tables import ALL, OVER_RANKS, table_names, table_schema

MISSING = "missing-table"


def set_tables(traces: TraceSet) -> tuple[dict[str, SetTable], tuple[Note, ...]]:
    """(name → table of those that ``traces`` was loaded with, in the order in which they are shown, notes on what they
    lack). A table that was asked for by name and cannot be made is a note.
    """
    names = table_names(traces.tables)
    compares_ranks = len(traces.ranks) > 1 and not set(OVER_RANKS).isdisjoint(names)
    waits = None
    if compares_ranks:
        from tracediff.aggregate.collective_skew import collective_waits

        waits = collective_waits(traces)
    found = {table.schema.name: table for table in waits.tables} if waits else {}
    for name in names:
        if name not in OVER_RANKS and all(name in profile.tables for profile in traces.profiles):
            found[name] = table_average(traces, name)
    notes = Notes()
    for name in traces.tables:
        if name != ALL and name not in found:
            notes.add(MISSING, f"table {name} is missing: {_why_missing(name)}")
    return {name: found[name] for name in names if name in found}, (*(waits.notes if waits else ()), *notes.list())


def _why_missing(name: str) -> str:
    if name in OVER_RANKS:
        return "it compares collectives of several ranks (a snapshot keeps none of them)"
    return f"the snapshot was made without it (create it again with --table {name})"


def table_average(traces: TraceSet, name: str) -> SetTable:
    """The table called ``name`` per step of the mean rank; files without it have none of its rows."""
    denominator, weighted = weighted_files(traces)
    average = SetTable(table_schema(name), denominator)
    held = [(of_file, table) for of_file in weighted if (table := of_file[0].table(name)) is not None]
    for group in alike([of_file for of_file, _ in held], [table for _, table in held], [()] * len(held)):
        table = group.table
        rows = np.isin(table.step, group.used)
        (keys,), columns = grouped([table.key[rows]], list(table.values[rows].T))
        for key, *values in zip(keys.tolist(), *(c.tolist() for c in columns), strict=True):
            average.add(table.keys[key], values, group.weight)
    return average
