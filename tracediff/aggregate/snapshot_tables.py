"""`TableRows` ↔ plain lists, as a snapshot stores them."""

from __future__ import annotations

import msgspec
import numpy as np

from tracediff.aggregate.snapshot_check import require, require_equal_lengths, require_sum
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
    schema = table_schema(name)
    try:
        step, key = np.array(packed.step, np.int64), np.array(packed.key, np.int64)
        values = np.array(packed.values, np.int64).reshape(len(packed.values), len(schema.columns))
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None
    require_equal_lengths(name, (step, key, values))
    require(((step >= 0) & (step < steps)).all(), f"{name} refers to no step")
    require(((key >= 0) & (key < len(packed.keys))).all(), f"{name} refers to no key")
    keys = tuple(tuple(k) for k in packed.keys)
    require(len(set(keys)) == len(keys), f"{name} has a duplicate key")
    require(len(set(zip(packed.step, packed.key, strict=True))) == len(step), f"{name} has a duplicate row")
    for column, amounts in zip(schema.columns, values.T, strict=True):
        require(column.unit == "bytes" or (amounts >= 0).all(), f"{name}.{column.name} is negative")
        require_sum(f"{name}.{column.name}", np.abs(amounts.astype(np.float64)))
    return TableRows(keys, step, key, values)
