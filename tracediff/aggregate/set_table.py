"""`SetTable`: a table of a whole set, as reports show it."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.profile.tables.schema import TableSchema


@dataclass(frozen=True)
class SetTable:
    """A table of a set, as that of a schema.

    Attributes:
        schema: what it tells. denominator: of all numerators.
        rows: key → numerators of the columns, per step.
    """

    schema: TableSchema
    denominator: int
    rows: dict[tuple[str, ...], list[int]]
