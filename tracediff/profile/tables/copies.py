"""Copies: how many bytes move between host and devices, and how fast."""

from __future__ import annotations

import re

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import MISSING
from tracediff.profile.arrays.factorize import numbered_texts
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, Rate, TableSchema, summed
from tracediff.runtimes import ARGUMENT, copy_direction, is_memset

KINDS = re.compile(r"[^(]*\((?P<kinds>.*)\)$")

SCHEMA = TableSchema(
    "copies",
    "Copies and memsets",
    "Copies by direction and kind of memory, and memsets. Kinds of memory are named as the vendor records them. "
    "Bandwidth is the bytes copied over the time of the copies.",
    keys=("direction", "memory"),
    columns=(Column("time", "time"), Column("copies", "copies", "count"), Column("size", "size", "bytes")),
    rates=(Rate("rate_gb_s", "bandwidth, GB/s", "size", "time"),),
    arguments=(ARGUMENT.size,),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by direction and kind of memory, both from the event's name."""
    trace, gpu = context.trace, context.gpu
    copies = np.flatnonzero(trace.category[gpu.rows] != cat.KERNEL)
    rows = gpu.rows[copies]
    used, name = np.unique(trace.name[rows], return_inverse=True)
    parts = [_parts(trace.names[code]) for code in used.tolist()]
    direction, directions = numbered_texts(way for way, _ in parts)
    kind, kinds = numbered_texts(kind for _, kind in parts)
    size = trace.integer_column(ARGUMENT.size, (cat.MEMCPY, cat.MEMSET))[rows]
    columns = [(gpu.end - gpu.start)[copies], np.ones(len(copies), np.int64), np.where(size == MISSING, 0, size)]
    return summed(gpu.step[copies], [(direction[name], directions), (kind[name], kinds)], columns)


def _parts(name: str) -> tuple[str, str]:
    """(direction, kinds of memory) from the name of a copy."""
    direction = copy_direction(name)
    if direction:
        kinds = KINDS.match(name)
        return direction, kinds["kinds"] if kinds else ""
    return ("memset", "") if is_memset(name) else (name[:60], "")
