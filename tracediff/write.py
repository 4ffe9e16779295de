"""Atomic file writes of text and bytes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tracediff.errors import TracediffError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8, completely or not at all; ``-`` is standard output.

    Raises:
        TracediffError: the folder is missing, not writable or full.
    """
    if os.fspath(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        _replace(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path``, completely or not at all; ``-`` is standard output."""
    if os.fspath(path) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        _replace(path, data)


def _replace(path: str | os.PathLike[str], data: bytes) -> None:
    """Write under a temporary name beside ``path`` and rename it, so that no reader sees an incomplete file."""
    target = Path(path)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise TracediffError(
                str(path),
                f"cannot be written ({(error.strerror or str(error)).lower()})",
                "check the folder and its permissions",
            ) from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
