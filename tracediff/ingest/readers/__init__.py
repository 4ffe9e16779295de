"""File formats, a module for each. The first format that recognises a file reads it."""

from __future__ import annotations

from tracediff.errors import NotATrace
from tracediff.ingest.readers.kineto import KINETO
from tracediff.ingest.readers.nsys import NSYS
from tracediff.ingest.readers.reader import Reader
from tracediff.ingest.source import TraceFile

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
        raise NotATrace(
            str(file), "a report of Nsight Systems, not its export", f"nsys export --type sqlite {file.name}"
        )
    printable = sum(32 <= c < 127 or c in b"\t\r\n" for c in first)
    content = "text" if printable >= 0.9 * len(first) else "binary (a protobuf trace?)"
    formats, files = (_alternatives(texts) for texts in ([r.name for r in READERS], [r.files for r in READERS]))
    raise NotATrace(str(file), f"{content}, not {formats}", f"give {files}")


def _alternatives(texts: list[str]) -> str:
    """``a, b or c``."""
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last
