"""Memory: how much is allocated on each device, and how much is allocated and freed per step."""

from __future__ import annotations

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.analyses.allocations import Allocations, allocations, devices
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.placement.steps import Steps
from tracediff.profile.tables.schema import Column, Rate, TableSchema

SCHEMA = TableSchema(
    "memory",
    "Memory",
    "Per step and device: peak allocated and peak reserved memory, the memory still allocated at the end of the step, "
    "and the bytes allocated and freed. Churn: bytes allocated in the step divided by the peak. Needs "
    "profile_memory=True. Reserved memory is not recorded for the host, nor by torch before 1.11 (shown as 0).",
    keys=("device",),
    columns=(
        Column("peak", "peak allocated", "bytes"),
        Column("reserved", "peak reserved", "bytes"),
        Column("end", "allocated at the end", "bytes"),
        Column("allocated", "allocated", "bytes"),
        Column("freed", "freed", "bytes"),
        Column("allocations", "allocations", "count"),
        Column("frees", "frees", "count"),
        Column("failed", "out-of-memory events", "count"),
    ),
    rates=(Rate("churn", "churn", "allocated", "peak"),),
    arguments=("Total Reserved",),
)


def table(context: Context) -> TableRows:
    """Rows by device; a step without allocations and frees keeps the memory of the steps before it."""
    found = allocations(context.trace)
    step, device = (
        np.tile(np.arange(len(context.steps)), len(found)),
        np.repeat(np.arange(len(found)), len(context.steps)),
    )
    values = [np.empty((0, len(SCHEMA.columns)), np.int64), *(_values(allocated, context.steps) for allocated in found)]
    return TableRows(tuple((name,) for name in devices(found)), step, device, np.concatenate(values))


def _values(device: Allocations, steps: Steps) -> Int64:
    """int64[s, columns]: the values of one device."""
    low, high = device.levels(steps)
    reserved = [device.reserved[a : b + 1].max() for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    born, died = np.maximum(device.change, 0), np.maximum(-device.change, 0)
    sums = [
        np.diff(np.append(0, np.cumsum(c))[np.stack((low, high))], axis=0)[0] for c in (born, died, born > 0, died > 0)
    ]
    failed = np.diff(
        np.searchsorted(device.failed, np.stack((steps.own_start, np.maximum(steps.own_start, steps.end)))), axis=0
    )[0]
    return np.column_stack(
        (device.allocated[device.peaks(steps)], reserved, device.allocated[high], *sums, failed)
    ).astype(np.int64)
