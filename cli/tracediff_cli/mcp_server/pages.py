"""Texts as pages of fewer than 4,000 tokens each.

Tokens are not counted, since every model has a tokenizer of its own, but bounded: the vocabularies in use are of bytes,
so that a token has at least one, and a run of up to 16 spaces is one token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_TOKENS = 4000
LINE_TOKENS = 200
"""Room for the line that says how to get the next page."""
ROOM = MOST_TOKENS - LINE_TOKENS
SPACES = re.compile(r" {2,16}")
BLOCK = re.compile(r"(?<=\n\n)(?=[^\n])")
"""Between a table and the next."""
LINE = re.compile(r"(?<=\n)")


def most_tokens(text: str) -> int:
    """The most tokens that ``text`` can have."""
    return len(SPACES.sub(" ", text).encode())


def pages(text: str) -> list[str]:
    """``text`` in pages, which joined are ``text``; at least one, which may be empty.

    A page ends after a table; inside a table that is longer than a page, after a line; inside a line only if that is.
    """
    found, page, size = [], "", 0
    for piece in _pieces(text):
        piece_size = most_tokens(piece)
        if page and size + piece_size > ROOM:
            found.append(page)
            page, size = "", 0
        page += piece
        size += piece_size
    return [*found, page]


def _pieces(text: str) -> Iterator[str]:
    """``text`` in parts that each fit a page."""
    for block in BLOCK.split(text):
        for line in [block] if most_tokens(block) <= ROOM else LINE.split(block):
            if most_tokens(line) <= ROOM:
                yield line
            else:  # of at most four bytes per character
                yield from (line[k : k + ROOM // 4] for k in range(0, len(line), ROOM // 4))
