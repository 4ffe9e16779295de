"""Small files that are read as a whole, such as manifests and settings: bounded in size and depth; any fault of them is
one line.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tracediff.errors import TracediffError
from tracediff.ingest.source import without_waiting
from tracediff.ingest.syntax import NOT_JSON

S = TypeVar("S")
MOST_JSON, MOST_TOML = 8 << 20, 128 << 10
"""Largest files that are read, in bytes; those of real collections have up to 90 kB."""
LONGEST_REASON = 300
MOST_DOTS = 400
"""Most dots in a line of TOML: reading a dotted key takes memory by the square of its parts."""


def read_json(path: Path, kind: type[S], what: str, remedy: str) -> S:
    """The JSON document of type ``kind`` in ``path``, whose error is that it is not ``what``.

    Raises:
        TracediffError: it cannot be read, is too large, or is no such document; it names the place.
    """
    data = read_whole(path, MOST_JSON, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (*NOT_JSON, ValueError) as error:  # ValueError: a number of thousands of digits
        raise TracediffError(str(path), f"not {what} ({_reason(error)})", remedy) from None


def read_toml(path: Path, remedy: str) -> dict[str, Any]:
    """The TOML document in ``path``.

    Raises:
        TracediffError: it cannot be read, is too large, or is not TOML.
    """
    import tomllib

    try:
        text = read_whole(path, MOST_TOML, remedy).decode()
        if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
            raise ValueError(f"a line with more than {MOST_DOTS} dots")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, not TOML, a number of thousands of digits
        raise TracediffError(str(path), f"not valid TOML ({_reason(error)})", remedy) from None


def read_whole(path: Path, most: int, remedy: str) -> bytes:
    """The bytes of the regular file at ``path``.

    Raises:
        TracediffError: it is missing, of another kind (devices and pipes may never end), unreadable, or larger than
            ``most`` bytes.
    """
    try:
        with open(path, "rb", opener=without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TracediffError(str(path), "not a regular file", remedy)
            data = file.read(most + 1)
    except FileNotFoundError:
        raise TracediffError(str(path), "no such file", remedy) from None
    except IsADirectoryError:
        raise TracediffError(str(path), "a folder, not a file", remedy) from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TracediffError(str(path), f"cannot be read ({reason})", "check the path and its permissions") from None
    if len(data) > most:
        raise TracediffError(str(path), f"larger than {most >> 10} KB, the most that is read of such a file", remedy)
    return data


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    text = str(error)
    return "a number of too many digits" if "set_int_max_str_digits" in text else text[:LONGEST_REASON]
