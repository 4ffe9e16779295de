"""What a file format is to the rest of ingest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracediff.ingest.source import TraceFile, Unpacked
from tracediff.ingest.trace import Trace


@dataclass(frozen=True)
class Reader:
    """One file format.

    Attributes:
        name: of the format.
        files: what to give, for error messages: ``the .json or .json.gz that torch.profiler writes``.
        suffixes: ends of the names of such files, packed ones included.
        recognises: whether a file that unpacks to these first bytes may be of the format.
        read: the events of a file; takes the file, its unpacked bytes from the first on, how many of them to decode at
            a time, and the names of the arguments to keep (None for all). Raises NotATrace where the file holds no
            events, and TracediffError where it is damaged beyond reading.
    """

    name: str
    files: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[TraceFile, Unpacked, int, frozenset[str] | None], Trace]
