"""Tables of both sides, row by row."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.set_table import SetTable
from tracediff.profile.tables.schema import TableSchema


@dataclass(frozen=True)
class TableRowDiff:
    """One row; ``control`` and ``test`` are numerators over the comparison's scale, one a column of the schema, 0 where
    a side has no such row.
    """

    key: tuple[str, ...]
    control: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True)
class TableDiff:
    """A table on both sides, the largest change of its first column first."""

    schema: TableSchema
    rows: tuple[TableRowDiff, ...]


def compare_tables(control: dict[str, SetTable], test: dict[str, SetTable], scale: int) -> tuple[TableDiff, ...]:
    """The tables that both sets have, on ``scale``, a multiple of their denominators."""
    return tuple(compare_table(control[name], test[name], scale) for name in control if name in test)


def compare_table(control: SetTable, test: SetTable, scale: int) -> TableDiff:
    """One table of both sets, on ``scale``, a multiple of their denominators."""
    schema = control.schema
    sides = [
        {key: tuple(scale // table.denominator * n for n in row) for key, row in table.rows.items()}
        for table in (control, test)
    ]
    none = (0,) * len(schema.columns)
    rows = [TableRowDiff(key, sides[0].get(key, none), sides[1].get(key, none)) for key in {**sides[0], **sides[1]}]
    return TableDiff(
        schema,
        tuple(sorted(rows, key=lambda r: (-abs(r.test[0] - r.control[0]), -max(r.control[0], r.test[0]), r.key))),
    )
