"""Temporary files and folders. Their names contain the process that they belong to, so that a later run removes the
files of a killed one.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

NAME = re.compile(r"\.?tracediff-([0-9a-f]{8})-([0-9]{1,9})-")


def temporary_file(folder: str | os.PathLike[str], suffix: str = "") -> Path:
    """The path of a hidden file in ``folder`` that does not exist yet."""
    _clear(os.path.realpath(folder))
    return Path(folder) / f".{_owner()}-{os.urandom(4).hex()}{suffix}"


def make_temporary_folder() -> Path:
    """A new folder for temporary files, which only this user can read; the caller removes it."""
    _clear(os.path.realpath(tempfile.gettempdir()))
    return Path(tempfile.mkdtemp(prefix=f"{_owner()}-"))


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder for temporary files, removed at the end."""
    folder = make_temporary_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_left(name: str) -> bool:
    """Whether ``name`` is that of a temporary file or folder whose process, of this machine, has ended."""
    parts = NAME.match(name)
    return bool(parts and parts[1] == _machine() and not _runs(int(parts[2])))


def _owner() -> str:
    return f"tracediff-{_machine()}-{os.getpid()}"


@cache
def _machine() -> str:
    """Of this host and its process ids: a folder may be shared with hosts and containers that have the same ones."""
    processes = ""
    with suppress(OSError):
        processes = os.readlink("/proc/self/ns/pid")
    host = os.uname().nodename if hasattr(os, "uname") else ""
    return f"{zlib.crc32(f'{host} {processes}'.encode(errors='replace')):08x}"


@cache
def _clear(folder: str) -> None:
    """Remove what processes that have ended left in ``folder``: once per process, before it makes a file there."""
    if os.name != "posix":  # only there can be asked whether a process runs
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_left(entry.name):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)


def _runs(process: int) -> bool:
    """Whether another process of that id runs; this one has made no file yet."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
