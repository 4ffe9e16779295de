"""Files dropped on the page: kept in a private folder until the dashboard stops, under names that cannot be guessed."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import shutil
import tempfile
import threading
from pathlib import Path

from tracediff.aggregate.snapshot import SUFFIX
from tracediff.errors import TracediffError
from tracediff.ingest.readers import trace_suffixes

MOST_BYTES = 64 << 20
"""Maximum size of a file in bytes."""
MOST_FILES = 16
"""Maximum number of files; the oldest is removed first."""
PREFIX = "dropped"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Uploads:
    """The dropped files."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()

    def add(self, file_name: str, contents: str) -> str:
        """Store a file and return the name of its set.

        Args:
            file_name: as sent by the browser; only plain characters of its last part are used.
            contents: a data URL, ``data:…;base64,…``.

        Raises:
            TracediffError: the file is too large, or its name is not that of a trace or snapshot.
        """
        plain = UNSAFE.sub("_", re.split(r"[\\/]", file_name)[-1])[-120:].lstrip(".") or "trace"
        if not plain.endswith((*trace_suffixes(), ".zip", SUFFIX)):
            raise TracediffError(
                plain,
                "not a trace or snapshot, by its name",
                f"drop a {', '.join(trace_suffixes())}, .zip or {SUFFIX} file",
            )
        if len(contents) * 3 // 4 > MOST_BYTES + 1024:
            raise TracediffError(
                plain, f"larger than {MOST_BYTES >> 20} MB", "start the dashboard with its path instead"
            )
        try:
            data = base64.b64decode(contents.partition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise TracediffError(plain, "the upload is incomplete", "drop the file again") from None
        token = secrets.token_urlsafe(16)
        with self._lock:
            try:
                if (
                    self._folder is None or not self._folder.is_dir()
                ):  # it may have been cleaned up with other temporary files
                    self._folder = Path(tempfile.mkdtemp(prefix="tracediff-"))  # of mode 700
                path = self._folder / token / plain
                path.parent.mkdir()
                path.write_bytes(data)
            except OSError as error:
                raise TracediffError(
                    plain, f"cannot be stored ({error.strerror})", "free space for temporary files"
                ) from None
            name = f"{PREFIX}:{token}/{plain}"
            self._files[name] = path
            while len(self._files) > MOST_FILES:
                shutil.rmtree(self._files.pop(next(iter(self._files))).parent, ignore_errors=True)
        return name

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
