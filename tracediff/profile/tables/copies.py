"""Copies: how many bytes move between host and devices, and how fast."""

from __future__ import annotations

import re

import numpy as np

from tracediff.ingest import categories as cat
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
    name = trace.name[rows]
    size = trace.integer_column(ARGUMENT.size, (cat.MEMCPY, cat.MEMSET), 0)[rows]
    keys = [(name, lambda code: _direction(trace.names[code])), (name, lambda code: _memory(trace.names[code]))]
    return summed(gpu.step[copies], keys, [gpu.ns[copies], 1, size])


def _direction(name: str) -> str:
    return copy_direction(name) or ("memset" if is_memset(name) else name[:60])


def _memory(name: str) -> str:
    """The kinds of memory that a copy is between."""
    kinds = KINDS.match(name) if copy_direction(name) else None
    return kinds["kinds"] if kinds else ""
