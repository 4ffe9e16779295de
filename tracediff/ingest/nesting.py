"""The nesting of a JSON text, followed without decoding it: exact for any layout, any depth and whatever strings contain."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
"""A string, or the start of one where the text is cut off in it."""

NEXT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + STRING + rb")*+([{}\[\]])", re.DOTALL)
OPENING = b"{["


def brackets(text: bytes, start: int = 0, stop: int = sys.maxsize) -> Iterator[tuple[int, int]]:
    """(position, depth behind it) of each bracket outside of strings; the depth is 0 at ``start``, and -1 behind the end of a list around it."""
    depth = 0
    while match := NEXT_BRACKET.match(text, start, stop):  # no finditer: where no bracket follows it would search again from every byte
        start = match.end()
        at = start - 1
        depth += 1 if text[at] in OPENING else -1
        yield at, depth


def top_level(text: bytes) -> tuple[list[int], int]:
    """The items of a list whose ``[`` lies before ``text``: (positions behind those that end in a bracket, position of the list's end or -1)."""
    ends = []
    for at, depth in brackets(text):
        if depth == 0:
            ends.append(at + 1)
        elif depth < 0:
            return ends, at
    return ends, -1


def value_end(text: bytes, start: int, stop: int = sys.maxsize) -> int:
    """Position behind the object or list that begins at ``start``; -1 where it does not end before ``stop``."""
    return next((at + 1 for at, depth in brackets(text, start, stop) if depth <= 0), -1)
