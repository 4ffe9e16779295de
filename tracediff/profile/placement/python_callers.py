"""Callers: the function outside of torch that Python code runs for."""

from __future__ import annotations

import re

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.placement.nesting import Lane

CODE = re.compile(r"\.py\(\d+\)")
"""Names of functions that are in a Python file."""


def outside_torch(trace: Trace, python: Lane) -> Int64:
    """int64[rows of the trace + 1]: of a Python function the innermost of a Python file outside of torch that is or
    encloses it; else −1.
    """
    named = [bool(CODE.search(name)) and name not in trace.torch_functions for name in trace.names]
    outside = np.array(named, bool)[trace.name[python.rows]]
    found = np.arange(len(python.rows))
    while (outward := np.flatnonzero((found >= 0) & ~outside[found])).size:
        found[outward] = python.parent[found[outward]]
    rows = np.full(len(trace) + 1, -1, np.int64)
    rows[python.rows] = np.where(found >= 0, python.rows[found], -1)
    return rows
