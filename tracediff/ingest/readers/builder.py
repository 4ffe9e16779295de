"""`TraceBuilder`: events of a format that has columns already → a `Trace`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracediff.arrays import MISSING, Int64
from tracediff.errors import NotATrace
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.arguments import json_text
from tracediff.ingest.json.decode import GrowingTrace
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.times import LONGEST_US
from tracediff.ingest.model.trace import Arguments, Trace, TraceMeta

THREAD_BITS = 24
"""A thread's global number is that of its process, and below it in so many bits its own."""
TIMES = (-(2**61), 2**61)
"""Limits of times in ns: their differences fit int64."""


Values = Int64 | Sequence[str]
"""An argument of n events: int64[n], MISSING where absent; int64[n, k], lists; or n texts, empty where absent."""


class TraceBuilder(GrowingTrace):
    """Collects events, a group of one category at a time."""

    _odd: int = 0
    _untimed: int = 0

    def add(
        self,
        category: int,
        names: Sequence[str],
        start: Int64,
        end: Int64,
        *,
        thread: Int64 | None = None,
        arguments: Mapping[str, Values],
    ) -> None:
        """Add n complete events.

        Args:
            start, end: int64[n] ns. Events without a start are left out, those that end before it are 0 ns long.
            thread: int64[n] global numbers of threads, None for events on a device.
            arguments: name → values.
        """
        is_timed = (start > TIMES[0]) & (start < TIMES[1])
        self._untimed += int((~is_timed).sum())
        duration = np.where(is_timed & (end > TIMES[0]) & (end < TIMES[1]), end, start) - np.where(is_timed, start, 0)
        is_odd = is_timed & ((duration < 0) | (duration > LONGEST_US * 1000) | (end == MISSING))
        self._odd += int(is_odd.sum())
        keep = np.flatnonzero(is_timed)
        if not len(keep):
            return
        pid, tid = self._threads(thread, len(start))
        base = {
            "ts": start[keep],
            "dur": np.where(is_odd, 0, duration)[keep],
            "name": self.names.encode(names)[keep],
            "category": np.full(len(keep), category, np.int32),
            "pid": pid[keep],
            "tid": tid[keep],
            "phase": np.full(len(keep), self.phases["X"], np.int32),
        }
        columns = {name: self._column(values)[keep] for name, values in arguments.items()}
        self.append(base, {category: Arguments(np.arange(len(keep)), columns)})

    def trace(self, file: TraceFile, meta: TraceMeta, notes: Notes, remedy: str) -> Trace:
        """All events that were added.

        Raises:
            NotATrace: there are none; ``remedy`` says what to do.
        """
        notes.add("no-time", "events without a start time were dropped", self._untimed)
        notes.add("odd-duration", "events with an impossible end count as 0 ns long", self._odd)
        if not self.length:
            raise NotATrace(file, "contains no events", remedy)
        trace = self.trace_of(file, meta)
        trace.notes = notes.list()
        return trace

    def _threads(self, thread: Int64 | None, length: int) -> tuple[Any, Any]:
        """int32[n] codes of process and thread."""
        if thread is None:
            return (np.full(length, self.ids[None], np.int32),) * 2
        own = (1 << THREAD_BITS) - 1
        unique_threads, inverse = np.unique(thread, return_inverse=True)
        pids = [self.ids[(number >> THREAD_BITS) & own] for number in unique_threads.tolist()]
        tids = [self.ids[number & own] for number in unique_threads.tolist()]
        return np.array(pids, np.int32)[inverse], np.array(tids, np.int32)[inverse]

    def _column(self, values: Values) -> Any:
        """Whole numbers as they are; int32[n] codes of texts, and of lists as JSON, −1 where one is absent."""
        if not isinstance(values, np.ndarray):
            return np.array([self.texts[text] if text else -1 for text in values], np.int32)
        if values.ndim == 1:
            return values
        unique_rows, inverse = np.unique(values, axis=0, return_inverse=True)
        codes = [-1 if MISSING in row else self.texts[json_text(row)] for row in unique_rows.tolist()]
        return np.array(codes, np.int32)[inverse.ravel()]
