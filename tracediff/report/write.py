"""Text → file, whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tracediff.errors import TracediffError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` under a temporary name beside ``path`` and rename it; ``-`` is standard output.

    Raises:
        TracediffError: the folder is missing, not writable or full.
    """
    if os.fspath(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    target = Path(path)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise TracediffError(str(path), f"cannot be written ({(error.strerror or str(error)).lower()})", "check the folder and its permissions") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
