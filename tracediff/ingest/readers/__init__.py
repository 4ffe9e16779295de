"""`Reader`: the interface of a file format; and that of Nsight Systems, whose SQLite database other modules read,
imported for such files only.
"""

from collections.abc import Callable, Iterator

from tracediff.ingest.files.source import TraceFile, Unpacked
from tracediff.ingest.model.trace import Trace
from tracediff.structs import FrozenStruct


class Reader(FrozenStruct):
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
