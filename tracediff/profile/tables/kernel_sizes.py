"""Kernel sizes: a histogram of the kernels by duration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import Column, TableSchema, summed

BOUNDS_US = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Where buckets begin; a kernel of exactly that duration is in the bucket that begins there."""
BUCKETS = (*(f"{low:04d}–{high:04d} µs" for low, high in pairwise(BOUNDS_US)), f"{BOUNDS_US[-1]} µs and more")
"""Their names, which sort as text."""

SCHEMA = TableSchema(
    "kernel_sizes",
    "Kernels by duration",
    "A histogram of kernels by duration, with the total time of each bucket. Copies and memsets are not included.",
    keys=("duration",),
    columns=(Column("time", "time"), Column("kernels", "kernels", "count")),
)  # fmt: skip


def table(context: Context) -> TableRows:
    """Rows by bucket of duration."""
    gpu = context.gpu
    kernels = np.flatnonzero(context.trace.category[gpu.rows] == cat.KERNEL)
    took = gpu.ns[kernels]
    bucket = np.searchsorted(np.array(BOUNDS_US) * 1000, took, side="right") - 1
    return summed(gpu.step[kernels], [(bucket, BUCKETS)], [took, 1])
