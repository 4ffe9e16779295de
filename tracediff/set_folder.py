"""The sets below one folder, by name: what a server may read, and no other file, whatever it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from tracediff import bounds
from tracediff.errors import TracediffError, quoted
from tracediff.ingest.discover import NOT_TRACES, RUN, SNAPSHOT_SUFFIX, captures_beside, find_traces, logs_beside
from tracediff.ingest.read import trace_suffixes

REMEDY = "choose a listed set, or start with the folder that contains it"

FileState = tuple[str, int, int, int]
"""Path, inode, size in bytes and time of the last change in ns."""


class SetFolder:
    """The sets below a folder.

    Attributes:
        root: the folder, without links in its path.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()

    def names(self) -> Iterator[str]:
        """Names of the sets, as found: folders with traces (or run folders), and files that are sets themselves. Names
        that cannot be printed are left out.
        """
        holders = set()
        for folder, files in self._walk():
            traces = [n for n in files if n.endswith(trace_suffixes())]
            holder = folder.parent if RUN.match(folder.name) and folder != self.root else folder
            sets = [holder] if traces and holder not in holders else []
            holders.update(sets)
            sets += [folder / n for n in files if (n not in traces or len(traces) > 1) and (folder / n).is_file()]
            yield from filter(str.isprintable, (path.relative_to(self.root).as_posix() for path in sets))

    def links_outside(self) -> list[str]:
        """Names of the links in the folder that lead out of it, sorted: what they lead to cannot be read."""
        links = (entry for entry in os.scandir(self.root) if entry.is_symlink() and entry.name.isprintable())
        return sorted(link.name for link in links if not self._is_open(Path(os.path.realpath(link.path))))

    def files(self) -> tuple[FileState, ...]:
        """All files that may belong to sets, as they are now."""
        return _states(os.path.join(folder, name) for folder, files in self._walk() for name in files)

    def _walk(self) -> Iterator[tuple[Path, list[str]]]:
        """(folder, names of the files in it that may be sets or parts of sets), of the first FILES_SEARCHED files."""
        searched = 0
        for parent, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            yield Path(parent), sorted(filter(_may_be_set, names))
            searched += len(names)
            if searched > bounds.FILES_SEARCHED:
                return

    def path(self, name: str) -> Path:
        """The path of the set called ``name``.

        Raises:
            TracediffError: there is no such set below the folder, or it would read files outside.
        """
        return self._checked(name)[0]

    def state(self, name: str) -> tuple[FileState, ...]:
        """The files that reading the set called ``name`` reads, as they are now: equal as long as none changes.

        Raises:
            TracediffError: as for `path`.
        """
        return _states(self._checked(name)[1])

    def _checked(self, name: str) -> tuple[Path, list[str]]:
        """The path of a set and the files it consists of; checks that links do not lead to files outside."""
        plain = PurePosixPath(name)
        try:
            is_plain = not plain.is_absolute() and ".." not in plain.parts and plain.as_posix() == name
            path = (self.root / name).resolve(strict=True) if is_plain else None
        except (OSError, ValueError, RuntimeError):  # absent, a null byte, a loop of links
            path = None
        if path is None or not self._is_open(path) or not (path.is_dir() or path.is_file()):
            raise TracediffError(quoted(name), "no such set below the folder", REMEDY)
        traces = find_traces(path)
        captures = [capture for trace in traces for capture in captures_beside(trace)]
        files = [
            *dict.fromkeys(file.path for file in (*traces, *captures, *logs_beside(traces))),
            os.path.join(path, "manifest.json"),
        ]
        if not all(self._is_open(Path(member).resolve()) for member in files):
            raise TracediffError(
                quoted(name), "contains a link to a file outside the folder", "replace the link by the file"
            )
        return path, files

    def _is_open(self, path: Path) -> bool:
        """Whether a resolved path is below the root and not in a hidden folder."""
        return path.is_relative_to(self.root) and not any(
            part.startswith(".") for part in path.relative_to(self.root).parts
        )


def _may_be_set(name: str) -> bool:
    return (
        not name.startswith(".")
        and not name.endswith(NOT_TRACES)
        and name.endswith((*trace_suffixes(), ".zip", SNAPSHOT_SUFFIX))
    )


def _states(files: Iterable[str]) -> tuple[FileState, ...]:
    """The states of those of ``files`` that exist."""
    states = []
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            states.append((file, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(states)
