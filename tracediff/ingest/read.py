"""One file → a `Trace` for each of its ranks, by the first format that recognises it."""

from collections.abc import Generator
from contextlib import closing

from tracediff.errors import NotATrace
from tracediff.ingest.files.source import OnRead, TraceFile, open_trace
from tracediff.ingest.json.native import PLAIN_CHUNK
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.readers import NSYS, Reader
from tracediff.ingest.readers.kineto import KINETO

READERS: tuple[Reader, ...] = (KINETO, NSYS)

REPORT = ".nsys-rep"
FIRST_BYTES = 1 << 16
"""Unpacked bytes from which a format is recognised."""


def trace_suffixes() -> tuple[str, ...]:
    """Suffixes of files that may be traces."""
    return tuple(dict.fromkeys(suffix for reader in READERS for suffix in reader.suffixes))


def reader_of(file: TraceFile, first: bytes) -> Reader:
    """The reader of the file that unpacks to these first bytes.

    Raises:
        NotATrace: no format matches.
    """
    for reader in READERS:
        if reader.recognises(first):
            return reader
    if file.name.endswith(REPORT):
        raise NotATrace(file, "a report of Nsight Systems, not its export", f"nsys export --type sqlite {file.name}")
    printable = sum(32 <= c < 127 or c in b"\t\r\n" for c in first)
    content = "text" if printable >= 0.9 * len(first) else "binary (a protobuf trace?)"
    formats, files = (_alternatives(texts) for texts in ([r.name for r in READERS], [r.files for r in READERS]))
    raise NotATrace(file, f"{content}, not {formats}", f"give {files}")


def _alternatives(texts: list[str]) -> str:
    """``a, b or c``."""
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


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
        on_read: called with the number of stored bytes read so far (`stored_size`).

    Raises:
        NotATrace: the file is readable but no profiler trace.
        TracediffError: the file is missing, unreadable, cut off in its compression, or damaged beyond reading.
    """
    file = TraceFile(file) if isinstance(file, str) else file
    with open_trace(file, on_read) as unpacked:
        first = unpacked.peek(max(chunk or PLAIN_CHUNK, FIRST_BYTES))[:FIRST_BYTES]  # read at once, it is not copied
        yield from reader_of(file, first).read(file, unpacked, chunk, only)


def read_trace(file: TraceFile | str, chunk: int | None = None, only: frozenset[str] | None = None) -> Trace:
    """As `read_traces`, of a file with one rank, or of the first of several."""
    with closing(read_traces(file, chunk, only)) as traces:
        return next(traces)
