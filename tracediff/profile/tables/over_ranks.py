"""The tables over ranks: what their columns mean. They are made of all files of a set together, of what the table
``collectives`` keeps of each (`tracediff.aggregate.collective_skew`).
"""

from __future__ import annotations

from tracediff.profile.tables.schema import Column, Rate, TableSchema

WAITS = TableSchema(
    "collective_waits",
    "Waits in collectives",
    "Each collective matched over the ranks. Wait: until the last rank has come; transfer: from then on. Not told: "
    "operations without their partners in the "
    "other ranks' files, and those that one rank can leave before others come (broadcast, send, …). The bandwidths "
    "are those of the transfer.",
    keys=("collective", "group", "dtype", "size"),
    columns=(
        Column("time", "time"),
        Column("wait", "wait"),
        Column("transfer", "transfer"),
        Column("untold", "not told"),
        Column("exposed", "exposed"),
        Column("overlapped", "overlapped"),
        Column("operations", "operations", "count"),
        Column("partial", "with ranks missing", "count"),
        Column("moved", "moved", "bytes"),
        Column("moved_time", "transfer of known size"),
        Column("bus", "over the bus", "bytes"),
        Column("bus_time", "transfer of known bus size"),
    ),
    rates=(
        Rate("algorithm_gb_s", "algorithm GB/s", "moved", "moved_time"),
        Rate("bus_gb_s", "bus GB/s", "bus", "bus_time"),
    ),
)
STRAGGLERS = TableSchema(
    "stragglers",
    "Ranks that come last",
    "Held up: how long the others waited for this rank, added over them, where it came last to a collective; late by: "
    "how long after the last but one. "
    "Where two came last within the uncertainty of their clocks, it is unclear who did.",
    keys=("rank",),
    columns=(
        Column("held_up", "held up"),
        Column("last", "came last", "count"),
        Column("late", "late by"),
        Column("wait", "own wait"),
        Column("transfer", "own transfer"),
        Column("exposed", "own exposed"),
        Column("operations", "operations", "count"),
    ),
    rates=(Rate("late_mean_us", "late by µs each", "late", "last", 1e-3),),
)
STRAGGLING_STEPS = TableSchema(
    "straggling_steps",
    "Ranks that come last, by step",
    "As by rank, for each used step in which it came last; the mean over the runs that have the step.",
    keys=("step", "rank"),
    columns=STRAGGLERS.columns[:3],
    rates=STRAGGLERS.rates,
)
CLOCKS = TableSchema(
    "rank_clocks",
    "Clocks of the ranks",
    "How far each rank's clock is ahead of its reference's, by the ends of collectives that end together, and within "
    "which nine in ten of them agree. "
    "It is taken off before ranks are compared.",
    keys=("run", "rank", "reference"),
    columns=(Column("offset", "ahead"), Column("uncertainty", "uncertainty"), Column("shared", "collectives", "count")),
)

SCHEMAS = {schema.name: schema for schema in (WAITS, STRAGGLERS, STRAGGLING_STEPS, CLOCKS)}
"""Name → schema, in the order in which they are shown."""
