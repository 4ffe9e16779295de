"""The line of code, outside of torch, that each operator runs for: from its own stack, else from the Python functions
around it.
"""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.frames import innermost_line
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.placement.python_callers import outside_torch
from tracediff.profile.placement.scopes import enclosing

STACKS = ("stack", "Call stack")
"""Arguments of operators with the frames around them: of what torch.compile compiled, and of torch before 1.12."""


def source_lines(trace: Trace, ops: Lane, python: Lane) -> Int64:
    """int64[n] by position in the ops lane: code of ``model.py(12): forward`` among the texts of the trace, to which
    lines are added; −1 where unknown.

    A stack names the line that runs, a Python function of a trace the line on which it begins.
    """
    lines: dict[str, int] = {}
    out = np.full(len(ops.rows), -1, np.int64)
    if len(python.rows):
        around = enclosing(python, ops.thread, ops.start)
        caller = outside_torch(trace, python)[np.where(around >= 0, python.rows[around], -1)]
        known = np.flatnonzero(caller >= 0)
        codes, name = np.unique(trace.name[caller[known]], return_inverse=True)
        numbers = [lines.setdefault(trace.names[code], len(lines)) for code in codes.tolist()]
        out[known] = np.array(numbers, np.int64)[name]
    for argument in STACKS:
        stack = trace.text_column(argument, cat.CPU_OP)[ops.rows]
        codes = np.unique(stack[stack >= 0])
        found = [innermost_line(trace.texts[code]) for code in codes.tolist()]
        numbers = [lines.setdefault(frame, len(lines)) if frame else -1 for frame in found]
        own = np.append(np.array(numbers, np.int64), -1)[
            np.where(stack >= 0, np.searchsorted(codes, stack), len(codes))
        ]
        out = np.where(own >= 0, own, out)
    if not lines:
        return out
    texts = {text: code for code, text in enumerate(trace.texts)}
    codes_of = np.array([texts.setdefault(line, len(texts)) for line in lines], np.int64)
    trace.texts = list(texts)
    return np.where(out >= 0, codes_of[out], -1)
