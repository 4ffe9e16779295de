"""Bytes of one trace file: plain, gzip, zstd, a member of a zip archive, or any fsspec URL.

Compression is recognised by the first bytes, never by the name. A file is read as long as it is when it is opened,
whatever is written to it meanwhile; a URL, to its end.
"""

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, BinaryIO

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.structs import FrozenStruct

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

REMOTE = "'torch-tracediff[remote]'"
PACKAGE_OF = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hf": "huggingface_hub",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
    "hdfs": "pyarrow",
}
"""Protocol of a URL → the package that fsspec needs for it, beyond those of the extra ``remote``."""
OF_NETWORK = ("aiohttp", "fsspec", "botocore", "asyncio", "urllib3", "requests")
"""Packages whose errors while reading come from the connection and not from the data."""


OnRead = Callable[[int], None]


def display_path(path: str) -> str:
    """``path`` for outputs: bytes in it that are not UTF-8 are replaced."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class TraceFile(FrozenStruct, order=True):
    """The location of one trace.

    Attributes:
        path: file path or URL.
        member: name inside the zip archive at ``path``, else ``""``.
        part: one of the ranks in the file, ``rank0``; ``""`` for all that there are.
    """

    path: str
    member: str = ""
    part: str = ""

    def __str__(self) -> str:
        place = f"{self.path}/{self.member}" if self.member else self.path
        return display_path(f"{place}:{self.part}" if self.part else place)

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return display_path(os.path.basename(self.member or self.path))

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the folders above it, outermost first."""
        return tuple(p for p in os.path.dirname(str(self)).split("/") if p)


def file_names(files: Sequence[TraceFile]) -> list[str]:
    """What to call each of ``files``: its name, or where several have the same, with the folders that tell apart."""
    names = [file.name for file in files]
    if len({*names}) == len(names):
        return names
    levels = zip(*(file.folders for file in files), strict=False)
    shared = sum(1 for _ in takewhile(lambda folders: len({*folders}) == 1, levels))
    return ["/".join((*file.folders[shared:], name)) for file, name in zip(files, names, strict=True)]


class Unpacked:
    """A stream of unpacked bytes, used as ``read(n)``; errors of the medium become one-line `TracediffError`s.

    ``on_read`` is called after each `read`.

    Attributes:
        is_stored: whether a local file has these bytes as they are.
    """

    def __init__(
        self, file: TraceFile, stream: Any, packed_size: int, on_read: Callable[[], None] = lambda: None
    ) -> None:
        self.file = file
        self.is_stored = isinstance(stream, io.BufferedReader) and isinstance(stream.raw, RegularFile)
        self.stream = stream
        self.packed_size = packed_size
        self._on_read = on_read
        self.bytes_read = 0
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes, fewer only where there are no more; `read` gives them again.

        Raises: as `read`, before which it is called.
        """
        self._peeked = self.read(size)
        self.bytes_read = 0
        return self._peeked

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end.

        Raises:
            TracediffError: truncated or damaged compression, a decompression bomb, an I/O error.
        """
        parts = [self._peeked[:size]]
        self._peeked = self._peeked[size:]
        missing = size - len(parts[0])
        while missing:
            try:
                part = bytes(self.stream.read(missing))
            except Exception as error:
                raise _fault(self.file, error) from None
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        self.bytes_read += size - missing
        self._on_read()
        usual = max(bounds.UNPACKED_BYTES, bounds.UNPACKED_RATIO * self.packed_size)
        if self.packed_size and self.bytes_read > usual:
            reason = f"unpacks to more than {bounds.UNPACKED_RATIO} times its size"
            raise TracediffError(self.file, reason, "if you trust it, unpack it yourself and give the .json")
        return b"".join(filter(None, parts))  # of one part, it is that


def _fault(file: TraceFile, error: Exception) -> TracediffError:
    """The one-line form of any error of a medium or a codec: gzip, zstd, zip, bzip2, LZMA and every fsspec file system
    raise errors of their own.
    """
    if isinstance(error, MemoryError):
        return TracediffError(file, "does not fit into memory", "record fewer steps, or use more memory")
    if isinstance(error, OSError) and error.errno is not None:
        return unreadable(file, error)
    if isinstance(error, TimeoutError) or type(error).__module__.startswith(OF_NETWORK):
        return TracediffError(file, f"the connection failed ({one_line(error)})", "try again, or copy the file here")
    if isinstance(error, EOFError):
        remedy = "copy it again, or unpack the rest (gzip -dc FILE > part.json): a cut-off .json is read up to the cut"
        return TracediffError(file, "the compressed file is cut off", remedy)
    return TracediffError(file, f"the compressed data is damaged ({error})", "copy or record it again")


def unreadable(place: TraceFile | str, error: OSError) -> TracediffError:
    """The one-line form of an operating system error."""
    if isinstance(error, FileNotFoundError):
        return TracediffError(display_path(str(place)), "no such file or folder", "check the path")
    reason = (error.strerror or str(error)).lower()
    return TracediffError(display_path(str(place)), f"cannot be read ({reason})", "check the path and its permissions")


@contextmanager
def open_trace(file: TraceFile, on_read: OnRead | None = None) -> Iterator[Unpacked]:
    """The unpacked bytes of ``file``.

    Args:
        on_read: called with the number of stored bytes read so far, in the measure of `stored_size`.

    Raises:
        TracediffError: the file is missing, unreadable, empty, or compressed in an unknown format.
    """
    with _open_packed(file) as packed:
        try:
            first = packed.peek(4)[:4]
        except Exception as error:
            raise _fault(file, error) from None
        if not first:
            raise TracediffError(file, "the file is empty", "record it again")
        report = (lambda: on_read(packed.tell())) if on_read and packed.seekable() else lambda: None
        yield Unpacked(file, _decompressed(packed, first), getattr(packed.raw, "size", None) or 0, report)


def opens_with(file: TraceFile, is_opening: Callable[[bytes], object]) -> bool:
    """Whether ``is_opening`` is true of how ``file`` begins, unpacked; False for URLs, which would be fetched twice,
    and for files that cannot be read.
    """
    if "://" in file.path:
        return False
    try:
        with open_trace(file) as stream:
            return bool(is_opening(stream.read(256)))
    except TracediffError:
        return False


def _open_packed(file: TraceFile) -> io.BufferedReader:
    if "://" in file.path:
        return _open_url(file.path)
    if not file.member:
        return open_file(file.path)
    from tracediff.ingest.files.archive import open_archive

    archive = open_archive(file.path)
    try:
        member: Any = archive.open(file.member)
        member.size = archive.getinfo(file.member).compress_size
    except MemoryError:
        raise
    except Exception as error:  # encrypted, a method unknown here, no such member, damaged in any way
        remedy = "check its name, or unpack the archive and give the folder"
        raise TracediffError(file, f"cannot be opened ({one_line(error)})", remedy) from None
    return io.BufferedReader(member, 1 << 20)


class RegularFile(io.FileIO):
    """A regular file, and ``size`` bytes of it: as many as it had when it was opened, since it may grow without end."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "rb", opener=without_waiting)
        status = os.fstat(self.fileno())
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(errno.EINVAL, f"{kind_of_file(status.st_mode)}, not a file")
        self.size = status.st_size

    def readinto(self, buffer: Any) -> int | None:
        """As that of `io.FileIO`, up to ``size``."""
        return super().readinto(memoryview(buffer)[: max(self.size - self.tell(), 0)])


def without_waiting(path: str, flags: int) -> int:
    """An opener for `open`, under which a pipe without a writer does not block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


KINDS_OF_FILE = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def kind_of_file(mode: int) -> str:
    """What a file that is not regular is, in words."""
    return next((words for is_kind, words in KINDS_OF_FILE if is_kind(mode)), "a file that changed")


def open_file(path: str) -> io.BufferedReader:
    """The regular file at ``path``.

    Raises:
        TracediffError: it cannot be opened, or is another kind of file.
    """
    try:
        return io.BufferedReader(RegularFile(path), 1 << 20)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:  # a NUL in the path
        raise TracediffError(display_path(path), f"cannot be opened ({error})", "check the path") from None


def _open_url(url: str) -> io.BufferedReader:
    with url_errors(url):
        import fsspec

        opened: Any = fsspec.open(url, "rb").open()
        return io.BufferedReader(opened, 1 << 20)


@contextmanager
def url_errors(url: str) -> Iterator[None]:
    """Any error of a file system of fsspec at ``url`` as one line.

    Raises:
        TracediffError: a package is missing, or the file system failed.
    """
    try:
        yield
    except ImportError as error:
        protocol = url.partition("://")[0]
        packages = " ".join(filter(None, (REMOTE, PACKAGE_OF.get(protocol, ""))))
        reason = f"reading {protocol}:// needs a package that is not installed ({one_line(error)})"
        raise TracediffError(url, reason, f"pip install {packages}, or copy the file here") from None
    except Exception as error:  # each file system has errors of its own; a lost connection is a missing file to some
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        reason = one_line(cause)
        if isinstance(cause, FileNotFoundError):
            reason = "no such file there"
        elif status := getattr(cause, "status", None):  # of HTTP; its text repeats the URL
            reason = f"{status} {getattr(cause, 'message', '')}".strip()
        raise TracediffError(url, f"cannot be opened ({reason})", "check the URL and your access to it") from None


def one_line(error: Exception) -> str:
    """The first line of an error's message; its kind if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def stored_size(file: TraceFile) -> int:
    """The size in bytes of a file as it is stored, 0 if unknown; of a member of an archive its own, unpacked."""
    try:
        if file.member:
            from tracediff.ingest.files.archive import open_archive

            return open_archive(file.path).getinfo(file.member).file_size
        return os.path.getsize(file.path)
    except (OSError, KeyError, ValueError, TracediffError):
        return 0


def _decompressed(packed: BinaryIO, first: bytes) -> Any:
    if first[:2] == GZIP:
        try:
            from isal import igzip as gzip
        except ImportError:  # no wheel for this platform
            import gzip
        return gzip.GzipFile(fileobj=packed, mode="rb")
    if first == ZSTD:
        try:
            from compression import zstd  # Python ≥ 3.14
        except ImportError:
            from backports import zstd
        return zstd.ZstdFile(packed, mode="rb")
    return packed
