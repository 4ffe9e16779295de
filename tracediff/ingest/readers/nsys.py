"""Nsight Systems: the SQLite database that ``nsys export --type sqlite`` writes, whose ranks `nsys_tables` makes."""

from __future__ import annotations

from collections.abc import Iterator

from tracediff.ingest.readers.reader import Reader
from tracediff.ingest.source import TraceFile, Unpacked
from tracediff.ingest.trace import Trace

MAGIC = b"SQLite format 3\0"


def recognises(first: bytes) -> bool:
    """Whether the bytes begin an SQLite database."""
    return first.startswith(MAGIC)


def read(file: TraceFile, unpacked: Unpacked, _chunk: int | None, _only: frozenset[str] | None) -> Iterator[Trace]:
    """The events of each process of the database; see `Reader`."""
    from tracediff.ingest.readers.database import database_path  # which imports sqlite3, for such files only
    from tracediff.ingest.readers.database_process import read_in_process

    with database_path(file, unpacked) as path:
        yield from read_in_process(file, path)


NSYS = Reader(
    "an SQLite export of Nsight Systems",
    "the .sqlite that nsys export --type sqlite writes",
    (".sqlite", ".sqlite.gz", ".sqlite.zst"),
    recognises,
    read,
)
