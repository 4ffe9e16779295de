"""A table as rows of texts, the same for every output format."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from tracediff.formatting import plural

LONGEST = 300
"""Characters of a name."""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        title: its heading. about: what its columns mean, may be empty.
        heads: of the columns. texts: how many of the columns, from the left, are texts; the others are numbers.
        rows: texts. more: how many rows were left out.
        together: how many of the first numbers are never omitted.
    """

    title: str
    about: str
    _: KW_ONLY
    heads: tuple[str, ...]
    texts: int
    rows: tuple[tuple[str, ...], ...]
    more: int = 0
    together: int = 1


def no_rows_shown(more: int, otherwise: str) -> str:
    """What stands for a table of which no row is shown: ``27 rows (--top)``; ``otherwise`` if it has none."""
    return f"{plural(more, 'row')} (--top)" if more else otherwise
