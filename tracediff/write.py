"""Writes every file of ours: whole or not at all, and through what is not a regular file."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from tracediff.errors import TracediffError
from tracediff.process.temporary import temporary_file

StrPath = str | os.PathLike[str]
DESCRIPTORS = "/dev/fd"


def write_text(path: StrPath, text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8, as `write_bytes` does; � replaces what UTF-8 cannot hold, such as bytes of a
    file name that is not UTF-8.

    Raises:
        TracediffError: as for `write_bytes`.
    """
    if os.fspath(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(path, encoded(text))


def write_bytes(path: StrPath, data: bytes) -> None:
    """Write ``data`` to ``path``; ``-`` is standard output. Links are followed. A regular file is replaced once its new
    contents are complete and keeps its permissions; a device or pipe is written to.

    Raises:
        TracediffError: the folder is missing, not writable or full.
        BrokenPipeError: the reader of a pipe has closed it.
    """
    if os.fspath(path) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        if not os.path.basename(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        status = None
        with suppress(FileNotFoundError):
            status = os.stat(path)
        opened = _opened(status) if status else None
        if status is None or (stat.S_ISREG(status.st_mode) and opened is None):
            _replace(Path(os.path.realpath(path)), data, status)
        else:
            sys.stdout.flush()  # it may be the same file
            with open(os.open(path, os.O_WRONLY) if opened is None else os.dup(opened), "wb") as stream:
                stream.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"cannot be written ({(error.strerror or str(error)).lower()})"
        raise TracediffError(path, reason, "check the folder, its permissions and its free space") from None


def make_folder(path: StrPath) -> Path:
    """Make the folder ``path`` if it does not exist, and those above it.

    Raises:
        TracediffError: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        reason = f"cannot be created ({(error.strerror or str(error)).lower()})"
        raise TracediffError(path, reason, "choose a writable folder") from None
    return Path(path)


def encoded(text: str) -> bytes:
    """``text`` as UTF-8, with � for lone surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _replace(target: Path, data: bytes, status: os.stat_result | None) -> None:
    """Write to a temporary file beside ``target`` and rename it, so that nobody ever sees an incomplete file."""
    if status:
        os.close(os.open(target, os.O_WRONLY))  # a file that is not writable is not replaced either
    temporary = temporary_file(target.parent)
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if status:
            with suppress(OSError, AttributeError):  # only root gives files away; Windows has no owners
                os.chown(temporary, status.st_uid, status.st_gid)
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _opened(status: os.stat_result) -> int | None:
    """The descriptor that this process writes to ``status`` with already, as for /dev/stdout; None if there is none."""
    if not os.path.isdir(DESCRIPTORS):
        return None
    import fcntl

    for descriptor in map(int, os.listdir(DESCRIPTORS)):
        with suppress(OSError):  # the one that listed the folder is closed
            writes = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            if writes and os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    return None
