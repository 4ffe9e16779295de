"""What the environment says, which programs of others set: nobody checks it before."""

from __future__ import annotations

import os

from tracediff.errors import TracediffError, quoted, whole_number

SIZES = ("COLUMNS", "LINES", "JUPYTER_COLUMNS", "JUPYTER_LINES")
"""Variables from which libraries take the size of the screen."""
LARGEST_SIZE = 10_000
"""Of a screen, in columns or lines: what is printed may be as wide."""


def drop_odd_sizes() -> None:
    """Remove the sizes of a screen that no screen has: libraries would divide by them, or fill lines with them."""
    for name in SIZES:
        if name in os.environ and not 0 < (whole_number(os.environ[name]) or 0) <= LARGEST_SIZE:
            del os.environ[name]


def number_of(name: str, default: int) -> int:
    """The whole number in the variable ``name``; ``default`` if it is not set.

    Raises:
        TracediffError: it is anything else.
    """
    text = os.environ.get(name, str(default))
    number = whole_number(text)
    if number is None:
        raise TracediffError(f"environment variable {name}", f"{quoted(text)} is not a whole number", "unset it")
    return number
