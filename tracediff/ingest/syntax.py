"""Tests whether a text is JSON, and repairs JSON with invalid characters."""

from __future__ import annotations

import re

import msgspec

from tracediff.ingest.brackets import STRING

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of decoding: bad syntax or types, invalid UTF-8, nesting too deep."""

STRING_OR_NUMBER = re.compile(STRING + rb"|-?(?:nan|inf(?:inity)?)\b(?:\(\w*\))?|-?1\.#\w+", re.DOTALL | re.IGNORECASE)
AT_BYTE = re.compile(r"\(byte (\d+)\)$")
CONTROL = re.compile(rb"[\x00-\x1f]")
ESCAPE = re.compile(
    rb"\\(?:(?P<fine>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[\"\\/bfnrt])"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|)",
)


def is_object(text: bytes) -> bool:
    """Whether ``text`` is one JSON object."""
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
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
    """Whether ``text`` begins with a JSON value, whatever follows; None where it ends before one can tell."""
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
    found = match[0]
    if not found.startswith(b'"'):
        return b"null"
    return CONTROL.sub(lambda c: b"\\u%04x" % c[0][0], ESCAPE.sub(_escape, found))


def _escape(match: re.Match[bytes]) -> bytes:
    return match[0] if match["fine"] else b"\\ufffd" if match["half"] else b"\\\\"
