"""`SetTable`: a table of a whole set, as reports show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    rows: dict[tuple[str, ...], list[int]] = field(default_factory=dict)

    def add(self, key: tuple[str, ...], values: Sequence[int], weight: int) -> None:
        """Add ``weight`` times ``values`` to the row of ``key``."""
        row = self.rows.setdefault(key, [0] * len(values))
        for k, value in enumerate(values):
            row[k] += weight * value
