"""The sets that may be read: those given by name, those below one folder, and files dropped on the page; no others,
whatever a URL asks for.
"""

import os
import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import IO

from tracediff import bounds
from tracediff.engine import SetOptions
from tracediff.errors import TracediffError, quoted
from tracediff.ingest.discover import SNAPSHOT_SUFFIX
from tracediff.ingest.read import trace_suffixes
from tracediff.process.temporary import make_temporary_folder
from tracediff.set_folder import REMEDY, SetFolder


class Sets:
    """The sets that the dashboard may read.

    Attributes:
        named_paths: name → path of the sets given on the command line, as for `load_sets`.
        folder: the one below which sets can be selected, None for none.
        options: name → options of a given set. every: options of all other sets.
        uploads: files dropped on the page.
    """

    def __init__(
        self,
        named_paths: Mapping[str, str] | None = None,
        root: str | os.PathLike[str] | None = None,
        *,
        options: Mapping[str, SetOptions] | None = None,
        every: SetOptions | None = None,
    ) -> None:
        self.named_paths = dict(named_paths or {})
        self.options = dict(options or {})
        self.every = every or SetOptions()
        self.folder = SetFolder(root) if root is not None else None
        self.uploads = Uploads()

    def names(self) -> list[str]:
        """Names of the sets: those given, then folders, snapshots and single files below the root, sorted by path."""
        names = filter(is_choosable, self.folder.names() if self.folder else ())
        return [*self.named_paths, *sorted(islice(names, bounds.SETS_LISTED))]

    def where(self, name: str) -> str:
        """The path of the set called ``name``, as for `load_sets`.

        Raises:
            TracediffError: there is no such set, or it would read files outside the folder.
        """
        if name in self.named_paths:
            return self.named_paths[name]
        uploaded = self.uploads.path(name)
        if uploaded is not None:
            return str(uploaded)
        if self.folder is None:
            raise TracediffError(quoted(name), "no such set in this dashboard", REMEDY)
        return str(self.folder.path(name))


def is_choosable(value: str) -> bool:
    """Whether a value can be an option of a dropdown; ``__proto__`` breaks its index in JavaScript."""
    return "__proto__" not in value


MOST_BYTES = 64 << 20
"""Maximum size of a file in bytes."""
CHUNK = 1 << 16
"""Bytes that are in memory at a time."""
PREFIX = "dropped"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Uploads:
    """The dropped files."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(bounds.UPLOADS_AT_ONCE)

    def add(self, file_name: str, content: IO[bytes], length: int) -> str:
        """Store a file and return the name of its set.

        Args:
            file_name: as sent by the browser; only plain characters of its last part are used.
            content: its bytes. length: how many they will be.

        Raises:
            TracediffError: the file is too large, or its name is not that of a trace or snapshot.
        """
        plain = UNSAFE.sub("_", file_name.replace("\\", "/").rpartition("/")[2])[-120:].lstrip(".") or "trace"
        if not plain.endswith((*trace_suffixes(), ".zip", SNAPSHOT_SUFFIX)):
            raise TracediffError(
                plain,
                "not a trace or snapshot, by its name",
                f"drop a {', '.join(trace_suffixes())}, .zip or {SNAPSHOT_SUFFIX} file",
            )
        if length > MOST_BYTES:
            raise TracediffError(
                plain, f"larger than {MOST_BYTES >> 20} MB", "start the dashboard with its path instead"
            )
        if not self._places.acquire(blocking=False):
            raise TracediffError(
                plain, f"{bounds.UPLOADS_AT_ONCE} other files are being received", "drop it again when they are here"
            )
        try:
            path = self._new_path(plain)
            try:
                _store(path, content)
            except BaseException:
                shutil.rmtree(path.parent, ignore_errors=True)
                raise
        finally:
            self._places.release()
        name = f"{PREFIX}:{path.parent.name}/{plain}"
        with self._lock:
            self._files[name] = path
            while len(self._files) > bounds.UPLOADS:
                shutil.rmtree(self._files.pop(next(iter(self._files))).parent, ignore_errors=True)
        return name

    def _new_path(self, plain: str) -> Path:
        """A path in a new folder of its own."""
        with self._lock:
            try:
                if self._folder is None or not self._folder.is_dir():  # cleaned up with other temporary files
                    self._folder = make_temporary_folder()
                path = self._folder / secrets.token_urlsafe(16) / plain
                path.parent.mkdir()
            except OSError as error:
                raise _no_space(plain, error) from None
        return path

    def path(self, name: str) -> Path | None:
        """The path of the dropped file called ``name``, None if there is none."""
        return self._files.get(name)

    def close(self) -> None:
        """Remove all dropped files."""
        with self._lock:
            self._files.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None


def _store(path: Path, content: IO[bytes]) -> None:
    try:
        with path.open("xb") as file:
            shutil.copyfileobj(content, file, CHUNK)
    except OSError as error:  # of the file: those of the connection are errors of HTTP
        raise _no_space(path.name, error) from None


def _no_space(plain: str, error: OSError) -> TracediffError:
    return TracediffError(plain, f"cannot be stored ({error.strerror})", "free space for temporary files")
