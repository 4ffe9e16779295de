"""Launches: what the host spends to start work on the GPU, and how long that work then waits."""

from __future__ import annotations

import numpy as np

from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed

SCHEMA = TableSchema(
    "launches",
    "Launches",
    "Calls that start work on the GPU: their time on the host; how long their work waits between the call's return "
    "and its begin; how long it runs. "
    "Short: work that runs for less time than its launch took.",
    keys=("call",),
    columns=(
        Column("host", "on the host"),
        Column("launches", "launches", "count"),
        Column("delay", "queue delay"),
        Column("work", "work"),
        Column("events", "events", "count"),
        Column("short", "short", "count"),
    ),
    rates=(
        Rate("host_mean_us", "host µs each", "host", "launches", 1e-3),
        Rate("delay_mean_us", "delay µs each", "delay", "events", 1e-3),
    ),
)


def table(context: Context) -> TableRows:
    """By the name of the call; a launch counts once, however many GPU events it starts."""
    trace, gpu = context.trace, context.gpu
    at = np.flatnonzero(gpu.launch >= 0)
    launch = gpu.launch[at]
    first = np.zeros(len(at), bool)
    first[np.unique(launch, return_index=True)[1]] = True
    took, ran = trace.dur[launch], (gpu.end - gpu.start)[at]
    waited = np.maximum(gpu.start[at] - trace.ts[launch] - took, 0)
    columns = [
        np.where(first, took, 0),
        first.astype(np.int64),
        waited,
        ran,
        np.ones(len(at), np.int64),
        (ran < took).astype(np.int64),
    ]
    return summed(gpu.step[at], [(trace.name[launch].astype(np.int64), trace.names)], columns)
