"""Schemas of the tables over ranks. `tracediff.aggregate.collective_skew` builds these tables from all files of a set
together, out of the collectives of each file.
"""

from __future__ import annotations

from tracediff.profile.tables.schema import Column, Rate, TableSchema

WAITS = TableSchema(
    "collective_waits",
    "Waits in collectives",
    "Each collective matched across ranks. Wait: until the last rank arrives; transfer: from then to the end. Unknown: "
    "operations without their partners in the files of other ranks, and operations that one rank can leave before "
    "others arrive (broadcast, send, …), for which wait and transfer cannot be separated. The bandwidths are those of "
    "the transfer.",
    keys=("collective", "group", "dtype", "size"),
    columns=(
        Column("time", "time"),
        Column("wait", "wait"),
        Column("transfer", "transfer"),
        Column("unknown", "unknown"),
        Column("exposed", "exposed"),
        Column("overlapped", "overlapped"),
        Column("operations", "operations", "count"),
        Column("partial", "missing ranks", "count"),
        Column("moved", "moved", "bytes"),
        Column("moved_time", "transfer with known size"),
        Column("bus", "bus traffic", "bytes"),
        Column("bus_time", "transfer with known bus traffic"),
    ),
    rates=(
        Rate("algorithm_gb_s", "algorithm bandwidth, GB/s", "moved", "moved_time"),
        Rate("bus_gb_s", "bus bandwidth, GB/s", "bus", "bus_time"),
    ),
)
STRAGGLERS = TableSchema(
    "stragglers",
    "Stragglers",
    "Ranks that arrive last at collectives, so that the other ranks wait. Wait caused: the wait of the other ranks, "
    "summed over them, at collectives where this rank arrived last. Late by: how long after the second-to-last rank it "
    "arrived. If the last two arrivals lie within the uncertainty of the clocks, the row “unclear” has them.",
    keys=("rank",),
    columns=(
        Column("held_up", "wait caused"),
        Column("last", "arrived last", "count"),
        Column("late", "late by"),
        Column("wait", "own wait"),
        Column("transfer", "own transfer"),
        Column("exposed", "own exposed"),
        Column("operations", "operations", "count"),
    ),
    rates=(Rate("late_mean_us", "mean late by, µs", "late", "last", 1e-3),),
)
STRAGGLING_STEPS = TableSchema(
    "straggling_steps",
    "Stragglers by step",
    "Stragglers for each used step in which a rank arrived last; the mean over the runs that have the step.",
    keys=("step", "rank"),
    columns=STRAGGLERS.columns[:3],
    rates=STRAGGLERS.rates,
)
CLOCKS = TableSchema(
    "rank_clocks",
    "Rank clock offsets",
    "How far each rank's clock is ahead of the clock of its reference rank, measured at the ends of collectives that "
    "end on all ranks at the same time. 90 % of the collectives agree within the uncertainty. The offset is subtracted "
    "before ranks are compared.",
    keys=("run", "rank", "reference"),
    columns=(
        Column("offset", "ahead by"),
        Column("uncertainty", "uncertainty"),
        Column("shared", "collectives", "count"),
    ),
)

SCHEMAS = {schema.name: schema for schema in (WAITS, STRAGGLERS, STRAGGLING_STEPS, CLOCKS)}
"""Name → schema, in the order in which they are shown."""
