"""The step of both sides as one trace for Perfetto, made in a process of its own: a step has up to a million events."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Sequence
from dataclasses import replace

from tracediff.aggregate.representative_step import TypicalStep
from tracediff.diff.comparison import Comparison
from tracediff.errors import TracediffError
from tracediff.report.to_perfetto import to_perfetto
from tracediff_dashboards.reading.spawned import Report, Spawned

FASTEST = 1
"""Level of gzip."""
_one_at_a_time = threading.Lock()


def merged_step(whole: Comparison, steps: Sequence[TypicalStep | None]) -> bytes:
    """The gzip of `to_perfetto` with ``steps``, those of control and test, instead of the typical ones.

    Raises:
        TracediffError: a side is a snapshot, its file cannot be read any more, or a step has too many events.
    """
    control, test = (replace(side, typical=step) for side, step in zip((whole.control, whole.test), steps, strict=True))
    shown = replace(whole, control=control, test=test)
    with _one_at_a_time:
        try:
            found: bytes = Spawned(_written, shown).result()
        except EOFError:
            raise TracediffError("merged step", "the process that wrote it exited", "free some memory") from None
    return found


def _written(_report: Report, comparison: Comparison) -> bytes:
    return gzip.compress(to_perfetto(comparison).text.encode(), FASTEST, mtime=0)
