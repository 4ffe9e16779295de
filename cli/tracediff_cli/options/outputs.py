"""Refuses outputs that would replace what a command reads, or each other, before anything is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

from tracediff.errors import TracediffError

LOCAL = ("file://", "local://")
"""URLs of files on this machine."""
STANDARD_OUTPUT = "-"
Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    Attributes:
        option: what names it, such as ``--json``.
        path: as given; ``-`` is standard output.
        names: of the files that are written into a folder; empty for a file, and for files that no command reads.
    """

    option: str
    path: str
    names: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """The paths that are written."""
        return [os.path.join(self.path, name) for name in self.names] or [self.path]


def check_outputs(outputs: Iterable[Output], inputs: Iterable[str]) -> None:
    """Check that no output is an input, lies in a folder that is read, or is another output.

    Args:
        inputs: files, folders, globs, archives, members of archives and URLs that are read; those that do not exist are
            left to the reader.

    Raises:
        TracediffError: one of ``outputs`` does.
    """
    written = [(output, _local(path)) for output in outputs for path in output.files]
    written = [(output, path) for output, path in written if "://" not in path and not _is_stream(path)]
    read, patterns = _read(inputs) if written else ([], [])
    files = {i: path for path in read for i, path in _files(path)} if any(_file(path) for _, path in written) else {}
    folders = {identity: path for path in read if os.path.isdir(path) for identity in _identity(path)}
    earlier: dict[str | Identity, str] = {}
    for output, path in written:
        where = os.path.realpath(path)
        for identity in _file(path):
            if identity in files:
                raise _refusal(output, path, f"is the input {files[identity]}", "write to another file")
        if path != STANDARD_OUTPUT:
            for folder in (folders[i] for i in _above(where) if i in folders):
                raise _refusal(output, path, f"lies in {folder}, which is read", "write to another folder")
            for pattern in (p for p in patterns if _would_match(where, p, read)):
                raise _refusal(output, path, f"matches {pattern}, which is read", "write to another folder")
        keys: list[str | Identity] = [where, *_file(path)]
        for key in keys:
            if earlier.setdefault(key, output.option) != output.option:
                raise _refusal(output, path, f"is also the output of {earlier[key]}", "write to another file")


def _refusal(output: Output, path: str, reason: str, remedy: str) -> TracediffError:
    return TracediffError(f"{output.option} {path}", reason, remedy)


def _read(inputs: Iterable[str]) -> tuple[list[str], list[str]]:
    """(the files and folders that are read, the patterns among ``inputs``)."""
    read, patterns = [], []
    for path in map(_local, inputs):
        archive, mark, _ = path.partition(".zip/")
        if os.path.lexists(path) or "://" in path:
            read.append(path)
        elif mark:
            read.append(f"{archive}.zip")
        else:
            read += glob.glob(path, recursive=True)
            patterns.append(path)
    return read, patterns


def _local(path: str) -> str:
    """The path of a URL of this machine."""
    return next((path.removeprefix(scheme) for scheme in LOCAL if path.startswith(scheme)), path)


def _files(path: str) -> Iterator[tuple[Identity, str]]:
    """The files at and below ``path``; links to folders are not followed, as when a set is read."""
    below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return ((identity, file) for file in chain([path], below) for identity in _file(file))


def _file(path: str) -> list[Identity]:
    """The identity of the regular file that ``path`` leads to; empty if there is none."""
    return _identity(path) if path != STANDARD_OUTPUT and os.path.isfile(path) else []


def _identity(path: str) -> list[Identity]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return []
    return [(found.st_dev, found.st_ino)]


def _is_stream(path: str) -> bool:
    """Whether ``path`` is a device or a pipe, which several outputs may share."""
    return path != STANDARD_OUTPUT and os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _above(where: str) -> Iterator[Identity]:
    """The identities of ``where`` and of the folders above it."""
    for path in (where, *map(str, Path(where).parents)):
        yield from _identity(path)


def _would_match(where: str, pattern: str, read: Iterable[str]) -> bool:
    """Whether ``pattern`` matches the file ``where`` once it exists; its folders are those of what is ``read``."""
    folder, name = os.path.split(where)
    is_beside = any(os.path.realpath(os.path.dirname(path) or os.curdir) == folder for path in read)
    return is_beside and fnmatchcase(name, os.path.basename(pattern))
