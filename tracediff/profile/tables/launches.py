"""Launches: the host time of calls that launch GPU work, and how long that work then waits."""

from __future__ import annotations

import numpy as np

from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed

SCHEMA = TableSchema(
    "launches",
    "Launches",
    "Runtime calls that launch GPU work. Host: duration of the calls. Queue delay: from the return of the call until "
    "its GPU event starts. GPU time: how long the launched events run. Short: GPU events that run for less time than "
    "their launch took.",
    keys=("call",),
    columns=(
        Column("host", "host time"),
        Column("launches", "launches", "count"),
        Column("delay", "queue delay"),
        Column("work", "GPU time"),
        Column("events", "GPU events", "count"),
        Column("short", "short", "count"),
    ),
    rates=(
        Rate("host_mean_us", "mean host µs", "host", "launches", 1e-3),
        Rate("delay_mean_us", "mean delay µs", "delay", "events", 1e-3),
    ),
)


def table(context: Context) -> TableRows:
    """Rows by the name of the call; a launch counts once, however many GPU events it starts."""
    trace, gpu = context.trace, context.gpu
    launched = np.flatnonzero(gpu.launch >= 0)
    launch = gpu.launch[launched]
    first = np.zeros(len(launched), bool)
    first[np.unique(launch, return_index=True)[1]] = True
    took, ran = trace.dur[launch], gpu.ns[launched]
    waited = np.maximum(gpu.start[launched] - trace.ts[launch] - took, 0)
    columns = [np.where(first, took, 0), first, waited, ran, 1, ran < took]
    return summed(gpu.step[launched], [(trace.name[launch], trace.names)], columns)
