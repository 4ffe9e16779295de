"""Collectives: how much ranks communicate, how fast, and how much of it overlaps with computation."""

from __future__ import annotations

import numpy as np

from tracediff.profile.analyses.collective_ops import bus_traffic, collectives, size_labels
from tracediff.profile.arrays.factorize import numbered_texts
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Amounts, Column, Rate, TableSchema, summed

SCHEMA = TableSchema(
    "collectives",
    "Collectives",
    "Collective operations by process group, dtype and message size. Times include the wait for other ranks. "
    "Exposed: no compute kernel runs on that GPU (for gloo and MPI: no operator runs on the host). Overlapped: one "
    "does. Algorithm bandwidth is size over time. Bus bandwidth corrects it for the operation and the number of ranks, "
    "so that it can be compared with the speed of the links.",
    keys=("collective", "group", "dtype", "size"),
    columns=(
        Column("time", "time"),
        Column("exposed", "exposed"),
        Column("overlapped", "overlapped"),
        Column("operations", "operations", "count"),
        Column("moved", "moved", "bytes"),
        Column("moved_time", "time with known size"),
        Column("bus", "bus traffic", "bytes"),
        Column("bus_time", "time with known bus traffic"),
    ),
    rates=(
        Rate("mean_us", "mean µs", "time", "operations", 1e-3),
        Rate("algorithm_gb_s", "algorithm bandwidth, GB/s", "moved", "moved_time"),
        Rate("bus_gb_s", "bus bandwidth, GB/s", "bus", "bus_time"),
    ),
    arguments=(
        "Collective name",
        "In msg nelems",
        "Out msg nelems",
        "Group size",
        "Process Group Name",
        "Process Group Description",
        "Process Group Ranks",
        "dtype",
        "Seq",
        "seq",
    ),
)


def table(context: Context) -> TableRows:
    """Rows by the recorded properties of the operation; `bus_bytes` has the formula of the bus bandwidth."""
    found = collectives(context)
    took, known = found.end - found.start, found.size >= 0
    ranks = np.array([k.ranks for k in found.kinds], np.int64)[found.kind]
    bus, has_bus = bus_traffic(found.kinds, found.kind, ranks, found.size)
    keys = [(found.kind, [getattr(k, name) for k in found.kinds]) for name in ("collective", "group", "dtype")]
    columns: list[Amounts] = [
        took,
        found.exposed,
        took - found.exposed,
        1,
        np.where(known, found.size, 0),
        np.where(known, took, 0),
        bus,
        np.where(has_bus, took, 0),
    ]
    return summed(found.step, [*keys, numbered_texts(size_labels(found.size))], columns)
