"""`TableRows` ↔ plain lists, as a snapshot stores them."""

from __future__ import annotations

import msgspec
import numpy as np

from tracediff.profile.model import TableRows
from tracediff.profile.tables import OF_FILES, table_schema


class PackedTable(msgspec.Struct, frozen=True):
    """A `TableRows` as JSON writes it."""

    keys: list[list[str]]
    step: list[int]
    key: list[int]
    values: list[list[int]]


def pack_tables(tables: dict[str, TableRows]) -> dict[str, PackedTable]:
    """``tables`` as lists."""
    return {
        name: PackedTable([list(k) for k in t.keys], t.step.tolist(), t.key.tolist(), t.values.tolist())
        for name, t in tables.items()
    }


def unpack_tables(packed: dict[str, PackedTable], steps: int) -> dict[str, TableRows]:
    """The tables again, of ``steps`` steps; those that this version does not know, or has with other columns, are
    passed over.

    Raises:
        ValueError: a row refers to nothing.
    """
    return {name: unpack_table(name, p, steps) for name, p in packed.items() if name in OF_FILES and _fits(name, p)}


def _fits(name: str, packed: PackedTable) -> bool:
    schema = table_schema(name)
    return all(len(key) == len(schema.keys) for key in packed.keys) and all(
        len(row) == len(schema.columns) for row in packed.values
    )


def unpack_table(name: str, packed: PackedTable, steps: int) -> TableRows:
    """One table again, of ``steps`` steps.

    Raises:
        ValueError: it has other columns than this version, or a row refers to nothing.
    """
    if not _fits(name, packed):
        raise ValueError(f"{name} has other columns")
    try:
        step, key = np.array(packed.step, np.int64), np.array(packed.key, np.int64)
        values = np.array(packed.values, np.int64).reshape(len(packed.values), len(table_schema(name).columns))
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None
    if len(step) != len(key) or len(step) != len(values):
        raise ValueError(f"{name} has columns of different lengths")
    if not (((step >= 0) & (step < steps)).all() and ((key >= 0) & (key < len(packed.keys))).all()):
        raise ValueError(f"{name} refers to nothing")
    return TableRows(tuple(tuple(k) for k in packed.keys), step, key, values)
