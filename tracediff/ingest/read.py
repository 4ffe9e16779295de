"""One file → a `Trace` for each of its ranks, whatever its format."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from tracediff.ingest.readers import FIRST_BYTES, reader_of
from tracediff.ingest.source import OnRead, TraceFile, open_trace
from tracediff.ingest.trace import Trace


def read_traces(
    file: TraceFile | str,
    chunk: int | None = None,
    only: frozenset[str] | None = None,
    *,
    on_read: OnRead | None = None,
) -> Generator[Trace]:
    """The events of each rank in ``file`` as columns; times are int64 nanoseconds.

    Args:
        file: a path or URL, or a `TraceFile` for a member of an archive or one of the ranks.
        chunk: bytes decoded at a time, None for as many as are read fastest; the result does not depend on it.
        only: names of the arguments to keep, None for all.
        on_read: called with the number of stored bytes read so far (`stored_sizes`).

    Raises:
        NotATrace: the file is readable but no profiler trace.
        TracediffError: the file is missing, unreadable, cut off in its compression, or damaged beyond reading.
    """
    file = TraceFile(file) if isinstance(file, str) else file
    with open_trace(file, on_read) as unpacked:
        yield from reader_of(file, unpacked.peek(FIRST_BYTES)).read(file, unpacked, chunk, only)


def read_trace(
    file: TraceFile | str,
    chunk: int | None = None,
    only: frozenset[str] | None = None,
    *,
    on_read: OnRead | None = None,
) -> Trace:
    """As `read_traces`, of a file with one rank, or of the first of several."""
    with closing(read_traces(file, chunk, only, on_read=on_read)) as traces:
        return next(traces)
