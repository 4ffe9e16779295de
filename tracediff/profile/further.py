"""The further tables of a set: the averages of its files' measures, and what only several ranks together tell."""

from __future__ import annotations

from tracediff.profile.average import measure_average
from tracediff.profile.measures import NAMES, measure
from tracediff.profile.set_table import SetTable
from tracediff.profile.traceset import TraceSet


def further_tables(traces: TraceSet) -> dict[str, SetTable]:
    """Name → table of all measures that every file of ``traces`` has, in their order; tables over ranks stand behind that of collectives."""
    out: dict[str, SetTable] = {}
    for name in NAMES:
        if all(name in p.measures for p in traces.profiles):
            out[name] = SetTable(measure(name), *measure_average(traces, name))
        if name == "collectives":
            out |= {table.measure.name: table for table in traces.over_ranks}
    return out
