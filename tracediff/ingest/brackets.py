"""The nesting of a JSON text, followed without decoding it: exact for any layout, any depth and whatever strings
contain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
"""A string, or the start of one where the text is cut off in it."""

NEXT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + STRING + rb")*+(?:([{\[])|[}\]])", re.DOTALL)
"""Everything up to a bracket outside of strings, and the bracket; its group tells an opening one. To be matched, not
searched: where no bracket
follows, a search would try again from every byte."""

NEXT_RUN = re.compile(rb'(?:[^"{}\[\]]++|' + STRING + rb"|\{\s*+\}|\[\s*+\])*+(?:([{\[]++)|([}\]]++))", re.DOTALL)
"""The same up to a run of brackets, its groups the run of opening and of closing ones; over empty values, too."""


def brackets(text: bytes, start: int = 0, stop: int = sys.maxsize) -> Iterator[tuple[int, int]]:
    """(position behind it, depth there) of each bracket outside of strings; the depth is 0 at ``start``, and -1 behind
    the end of a list around it.
    """
    depth = 0
    while match := NEXT_BRACKET.match(text, start, stop):
        start = match.end()
        depth += 1 if match.lastindex else -1
        yield start, depth


def top_level(text: bytes) -> tuple[list[int], int]:
    """The items of a list whose ``[`` lies before ``text``: (positions behind those that end in a bracket, position of
    the list's end or -1).
    """
    ends = []
    for behind, depth in brackets(text):
        if depth == 0:
            ends.append(behind)
        elif depth < 0:
            return ends, behind - 1
    return ends, -1


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
