"""Zip archives of traces; imported for these only, since zipfile imports every compression."""

import io
import os
import zipfile
from functools import lru_cache

from tracediff.errors import TracediffError
from tracediff.ingest.files.source import display_path, one_line, open_file, unreadable


def open_archive(path: str) -> zipfile.ZipFile:
    """The zip archive at ``path``, whose directory is read once per process as long as the file stays as it is.

    Raises:
        TracediffError: it cannot be opened, or is damaged.
    """
    try:
        status = os.stat(path)  # processes share the position in a file, so each has its own
        return _directory(path, (os.getpid(), status.st_ino, status.st_size, status.st_mtime_ns))
    except OSError as error:
        raise unreadable(path, error) from None
    except (TracediffError, MemoryError):
        raise
    except Exception as error:  # zipfile raises several
        raise TracediffError(
            display_path(path), f"the archive is damaged ({one_line(error)})", "copy it again"
        ) from None


class Archive(zipfile.ZipFile):
    """Closed where nothing uses it or a member of it any more."""

    def __init__(self, opened: io.BufferedReader) -> None:
        self._opened = opened
        super().__init__(opened)

    def close(self) -> None:
        super().close()
        self._opened.close()


@lru_cache(maxsize=8)
def _directory(path: str, _state: tuple[int, ...]) -> zipfile.ZipFile:
    return Archive(open_file(path))
