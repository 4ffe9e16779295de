"""Files dropped on the page: kept in a private folder until the dashboard ends, each under a name that cannot be
guessed.
"""

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
"""Of a file."""
MOST_FILES = 16
"""Kept at a time; the oldest goes first."""
PREFIX = "dropped"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Uploads:
    """The dropped files."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()

    def add(self, file_name: str, contents: str) -> str:
        """Keep a file; the name of the set that it is.

        Args:
            file_name: as the browser tells it; only its last part is used, and of that plain characters.
            contents: a data URL, ``data:…;base64,…``.

        Raises:
            TracediffError: it is too large, or neither a trace nor a snapshot by its name.
        """
        plain = UNSAFE.sub("_", re.split(r"[\\/]", file_name)[-1])[-120:].lstrip(".") or "trace"
        if not plain.endswith((*trace_suffixes(), ".zip", SUFFIX)):
            raise TracediffError(
                plain, "is no trace by its name", f"drop a {', '.join(trace_suffixes())}, .zip or {SUFFIX} file"
            )
        if len(contents) * 3 // 4 > MOST_BYTES + 1024:
            raise TracediffError(
                plain, f"is larger than {MOST_BYTES >> 20} MB", "start the dashboard with its path instead"
            )
        try:
            data = base64.b64decode(contents.partition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise TracediffError(plain, "did not arrive whole", "drop it again") from None
        token = secrets.token_urlsafe(16)
        with self._lock:
            try:
                if self._folder is None or not self._folder.is_dir():  # what cleans temporary folders may have taken it
                    self._folder = Path(tempfile.mkdtemp(prefix="tracediff-"))  # of mode 700
                path = self._folder / token / plain
                path.parent.mkdir()
                path.write_bytes(data)
            except OSError as error:
                raise TracediffError(
                    plain, f"cannot be kept ({error.strerror})", "make room for temporary files"
                ) from None
            name = f"{PREFIX}:{token}/{plain}"
            self._files[name] = path
            while len(self._files) > MOST_FILES:
                shutil.rmtree(self._files.pop(next(iter(self._files))).parent, ignore_errors=True)
        return name

    def path(self, name: str) -> Path | None:
        """The dropped file called ``name``, None for none."""
        return self._files.get(name)

    def close(self) -> None:
        """Remove all of them."""
        with self._lock:
            self._files.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None
