"""Whether a text is JSON, its nesting without decoding it, and its repair where characters are invalid; and small files
that are read as a whole, such as manifests and settings: bounded in size and depth, any fault of them is one line.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import without_waiting
from tracediff.patterns import late

STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
"""A string, or the start of one where the text is cut off in it."""

NEXT_BRACKET = late(rb'(?:[^"{}\[\]]++|' + STRING + rb")*+(?:([{\[])|[}\]])", re.DOTALL)
"""Everything up to a bracket outside of strings, and the bracket; its group is an opening one. To be matched, not
searched: where no bracket follows, a search would try again from every byte."""

NEXT_RUN = late(rb'(?:[^"{}\[\]]++|' + STRING + rb"|\{\s*+\}|\[\s*+\])*+(?:([{\[]++)|([}\]]++))", re.DOTALL)
"""The same up to a run of brackets, its groups the run of opening and of closing ones; over empty values, too."""

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of decoding: bad syntax or types, invalid UTF-8, nesting too deep."""

STRING_OR_NUMBER = late(STRING + rb"|-?(?:nan|inf(?:inity)?)\b(?:\(\w*\))?|-?1\.#\w+", re.DOTALL | re.IGNORECASE)
AT_BYTE = late(r"\(byte (\d+)\)$")
CONTROL = late(rb"[\x00-\x1f]")
ESCAPE = late(
    rb"\\(?:(?P<fine>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[\"\\/bfnrt])"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|)",
)


def brackets(text: bytes, start: int = 0, stop: int = sys.maxsize) -> Iterator[tuple[int, int]]:
    """(position behind it, depth there) of each bracket outside of strings, for any layout, any depth and whatever
    strings contain; the depth is 0 at ``start``, and -1 behind the end of a list around it.
    """
    depth = 0
    while match := NEXT_BRACKET.match(text, start, stop):
        start = match.end()
        depth += 1 if match.lastindex else -1
        yield start, depth


def value_end(text: bytes, start: int, stop: int = sys.maxsize) -> int:
    """Position behind the object or list that begins at ``start``; -1 where it does not end before ``stop``."""
    depth, start = 1, start + 1
    while match := NEXT_RUN.match(text, start, stop):
        opened, closed = match.span(1), match.span(2)
        depth += opened[1] - opened[0]
        if closed[1] - closed[0] >= depth:
            return closed[0] + depth
        depth -= closed[1] - closed[0]
        start = match.end()
    return -1


def raw_fields(text: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a JSON object, their values as they are written.

    Raises:
        one of NOT_JSON: ``text`` is no such object.
    """
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def is_object(text: bytes) -> bool:
    """Whether ``text`` is one JSON object."""
    try:
        raw_fields(text)
    except NOT_JSON:
        return False
    return True


def is_malformed(text: bytes) -> bool:
    """Whether ``text`` is neither JSON nor the beginning of JSON."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return "truncated" not in str(error)
    except RecursionError:
        return True
    return False


def begins_with_value(text: memoryview) -> bool | None:
    """Whether ``text`` begins with a JSON value, whatever follows; None where it ends too early to decide."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        if "trailing characters" in str(error):
            return True
        place = AT_BYTE.search(str(error))
        return None if place is None or int(place[1]) >= len(text) else False  # a number may go on: 1e
    except RecursionError:
        return False
    return True


def repaired(text: bytes) -> bytes | None:
    """``text`` as a JSON object with its invalid characters repaired; None if it still is not one.

    Profilers have written bare nan and inf (null here), single backslashes, raw control characters, halves of surrogate
    pairs and invalid UTF-8.
    """
    fixed = STRING_OR_NUMBER.sub(_fixed, text.decode("utf-8", errors="replace").encode())
    return fixed if is_object(fixed) else None


def _fixed(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if not token.startswith(b'"'):
        return b"null"
    return CONTROL.sub(lambda c: b"\\u%04x" % c[0][0], ESCAPE.sub(_escape, token))


def _escape(match: re.Match[bytes]) -> bytes:
    return match[0] if match["fine"] else b"\\ufffd" if match["half"] else b"\\\\"


S = TypeVar("S")
MOST_JSON, MOST_TOML = 8 << 20, 128 << 10
"""Largest files that are read, in bytes; those of real collections have up to 90 kB."""


def read_json(path: Path, kind: type[S], what: str, remedy: str) -> S:
    """The JSON document of type ``kind`` in ``path``, whose error is that it is not ``what``.

    Raises:
        TracediffError: it cannot be read, is too large, or is not such a document; it names the place.
    """
    data = read_whole(path, MOST_JSON, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (*NOT_JSON, ValueError) as error:  # ValueError: a number of thousands of digits
        raise TracediffError(path, f"not {what} ({_reason(error)})", remedy) from None


def read_toml(path: Path, remedy: str) -> dict[str, Any]:
    """The TOML document in ``path``.

    Raises:
        TracediffError: it cannot be read, is too large, or is not TOML.
    """
    import tomllib

    try:
        text = read_whole(path, MOST_TOML, remedy).decode()
        if any(line.count(".") > bounds.TOML_DOTS for line in text.splitlines()):
            raise ValueError(f"a line with more than {bounds.TOML_DOTS} dots")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, not TOML, a number of thousands of digits
        raise TracediffError(path, f"not valid TOML ({_reason(error)})", remedy) from None


def read_whole(path: Path, most: int, remedy: str) -> bytes:
    """The bytes of the regular file at ``path``.

    Raises:
        TracediffError: it is missing, of another kind (devices and pipes may never end), unreadable, or larger than
            ``most`` bytes.
    """
    try:
        with open(path, "rb", opener=without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TracediffError(path, "not a regular file", remedy)
            data = file.read(most + 1)
    except FileNotFoundError:
        raise TracediffError(path, "no such file", remedy) from None
    except IsADirectoryError:
        raise TracediffError(path, "a folder, not a file", remedy) from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TracediffError(path, f"cannot be read ({reason})", "check the path and its permissions") from None
    if len(data) > most:
        raise TracediffError(path, f"larger than {most >> 10} KB, the most that is read of such a file", remedy)
    return data


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    text = str(error)
    return "a number of too many digits" if "set_int_max_str_digits" in text else text[: bounds.LONG_REASON]
