"""Bytes of one trace file: plain, gzip, zstd, a member of a zip archive, or any fsspec URL.

Compression is recognised by the first bytes, never by the name.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from tracediff.errors import TracediffError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BOMB_BYTES, BOMB_RATIO = 1 << 30, 300
"""A stream that unpacks to more than BOMB_BYTES at over BOMB_RATIO : 1 is refused (real traces pack 16–35 : 1)."""

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


@dataclass(frozen=True, order=True)
class TraceFile:
    """The location of one trace.

    Attributes:
        path: file path or URL.
        member: name inside the zip archive at ``path``, else ``""``.
    """

    path: str
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else self.path

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return os.path.basename(self.member or self.path)

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the folders above it, outermost first."""
        return tuple(p for p in os.path.dirname(str(self)).split("/") if p)


class Unpacked:
    """A stream of unpacked bytes, used as ``read(n)``; errors of the medium become one-line `TracediffError`s.

    ``on_read`` is called after each `read`.
    """

    def __init__(
        self, file: TraceFile, stream: Any, packed_size: int, on_read: Callable[[], None] = lambda: None
    ) -> None:
        self.file = file
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
            part = self._read_some(missing)
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        self.bytes_read += size - missing
        self._on_read()
        if self.bytes_read > BOMB_BYTES and self.packed_size and self.bytes_read > BOMB_RATIO * self.packed_size:
            reason = f"unpacks to more than {BOMB_RATIO} times its size"
            raise TracediffError(str(self.file), reason, "if you trust it, unpack it yourself and give the .json")
        return b"".join(parts)

    def _read_some(self, size: int) -> bytes:
        try:
            return bytes(self.stream.read(size))
        except Exception as error:
            raise _fault(self.file, error) from None


def _fault(file: TraceFile, error: Exception) -> TracediffError:
    """The one-line form of any error of a medium or a codec: gzip, zstd, zip, bzip2, LZMA and every fsspec file system
    raise errors of their own.
    """
    if isinstance(error, MemoryError):
        return TracediffError(str(file), "does not fit into memory", "record fewer steps, or use more memory")
    if isinstance(error, OSError) and error.errno is not None:
        return unreadable(str(file), error)
    if isinstance(error, TimeoutError) or type(error).__module__.startswith(OF_NETWORK):
        return TracediffError(
            str(file), f"the connection failed ({one_line(error)})", "try again, or copy the file here"
        )
    if isinstance(error, EOFError):
        remedy = "copy it again, or unpack the rest (gzip -dc FILE > part.json): a cut-off .json is read up to the cut"
        return TracediffError(str(file), "the compressed file is cut off", remedy)
    return TracediffError(str(file), f"the compressed data is damaged ({error})", "copy or record it again")


def unreadable(subject: str, error: OSError) -> TracediffError:
    """The one-line form of an operating system error."""
    reason = (error.strerror or str(error)).lower()
    return TracediffError(subject, f"cannot be read ({reason})", "check the path and its permissions")


@contextmanager
def open_trace(file: TraceFile, on_read: OnRead | None = None) -> Iterator[Unpacked]:
    """The unpacked bytes of ``file``.

    Args:
        on_read: called with the number of stored bytes read so far, in the measure of `stored_sizes`.

    Raises:
        TracediffError: the file is missing, unreadable, empty, or compressed in an unknown format.
    """
    with _open_packed(file) as packed:
        try:
            first = packed.peek(4)[:4]
        except Exception as error:
            raise _fault(file, error) from None
        if not first:
            raise TracediffError(str(file), "the file is empty", "record it again")
        report = (lambda: on_read(packed.tell())) if on_read and packed.seekable() else lambda: None
        yield Unpacked(file, _decompressed(packed, first), _packed_size(file, packed), report)


def _open_packed(file: TraceFile) -> Any:
    if "://" in file.path:
        return _open_url(file.path)
    try:
        if file.member:
            member: Any = zipfile.ZipFile(file.path).open(file.member)  # noqa: SIM115  # the member keeps its archive open
            return io.BufferedReader(member, 1 << 20)
        return open(file.path, "rb", buffering=1 << 20)
    except OSError as error:
        raise unreadable(str(file), error) from None
    except (
        zipfile.BadZipFile,
        KeyError,
        RuntimeError,
        ValueError,
    ) as error:  # RuntimeError: encrypted, or a method unknown here; ValueError: not UTF-8
        raise TracediffError(
            str(file), f"cannot be opened ({error})", "check its name, or unpack the archive and give the folder"
        ) from None


def _open_url(url: str) -> io.BufferedReader:
    protocol = url.partition("://")[0]
    try:
        import fsspec

        opened: Any = fsspec.open(url, "rb").open()
        return io.BufferedReader(opened, 1 << 20)
    except ImportError as error:
        packages = " ".join(filter(None, (REMOTE, PACKAGE_OF.get(protocol, ""))))
        reason = f"reading {protocol}:// needs a package that is not installed ({one_line(error)})"
        raise TracediffError(url, reason, f"pip install {packages}, or copy the file here") from None
    except Exception as error:  # each file system has errors of its own; a lost connection is no file to some
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


def _packed_size(file: TraceFile, packed: io.BufferedReader) -> int:
    """Compressed size in bytes, 0 if unknown."""
    if "://" in file.path:
        return getattr(packed.raw, "size", None) or 0
    if file.member:
        with zipfile.ZipFile(file.path) as archive:
            return archive.getinfo(file.member).compress_size
    return os.path.getsize(file.path)


def stored_sizes(files: Sequence[TraceFile]) -> list[int]:
    """The size in bytes of each file as it is stored, 0 if unknown; of a member of an archive its own, unpacked."""
    archives: dict[str, dict[str, int]] = {}
    return [_stored_size(file, archives) for file in files]


def _stored_size(file: TraceFile, archives: dict[str, dict[str, int]]) -> int:
    try:
        if not file.member:
            return os.path.getsize(file.path)
        if file.path not in archives:  # listing the members takes longer than looking one up
            with zipfile.ZipFile(file.path) as archive:
                archives[file.path] = {member.filename: member.file_size for member in archive.infolist()}
        return archives[file.path].get(file.member, 0)
    except (OSError, zipfile.BadZipFile, ValueError):
        return 0


def _decompressed(packed: BinaryIO, first: bytes) -> Any:
    if first[:2] == GZIP:
        try:
            from isal import igzip as gzip
        except ImportError:  # no wheel for this platform
            import gzip
        return gzip.GzipFile(fileobj=packed, mode="rb")
    if first == ZSTD:
        return _zstd().ZstdFile(packed, mode="rb")
    return packed


def _zstd() -> Any:
    try:
        from compression import zstd  # Python ≥ 3.14
    except ImportError:
        from backports import zstd
    return zstd
