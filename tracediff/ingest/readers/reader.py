"""`Reader`: the interface of a file format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tracediff.ingest.source import TraceFile, Unpacked
from tracediff.ingest.trace import Trace


@dataclass(frozen=True)
class Reader:
    """One file format.

    Attributes:
        name: the name of the format.
        files: the files to give, for error messages: ``the .json or .json.gz that torch.profiler writes``.
        suffixes: of such files, compressed ones included.
        recognises: whether a file that unpacks to these first bytes may be of the format.
        read: the events of each rank in a file, or of that which its `part` names; takes the file, its unpacked bytes
            from the first on, how many of them to decode at a time (None: as the reader likes), and the names of the
            arguments to keep (None for all). Raises NotATrace if the file contains no events, and TracediffError if it
            is too damaged to read.
    """

    name: str
    files: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[TraceFile, Unpacked, int | None, frozenset[str] | None], Iterator[Trace]]
