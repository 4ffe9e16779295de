"""Files whose tables have the same rows, added up row by row, so that what follows costs as much as for one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

import numpy as np

from tracediff.profile.columns import columns_of
from tracediff.profile.model import CallTable, OpTable, Profile, TableRows, WorkTable

T = TypeVar("T", OpTable, CallTable, WorkTable, TableRows)
Weighted = Sequence[tuple[Profile, list[int], int]]
"""Profiles with the positions of their used steps and the weight of a step."""

LARGEST, MOST_FILES = 1 << 48, 1 << 14
"""Sums of so many amounts that are no larger fit 64 bits."""


@dataclass
class Alike(Generic[T]):
    """Files whose tables have the same rows, the same used steps and the same weight.

    Attributes:
        profile: the first of them. table: their sum.
        used, weight: see `Weighted`. files: their positions in the set.
    """

    profile: Profile
    table: T
    used: list[int]
    weight: int
    files: list[int]

    def add(self, file: int, table: T) -> None:
        """Add the table of another file."""
        added = {name: getattr(self.table, name) + getattr(table, name) for name in _merged(table, "sum")}
        least = {name: np.minimum(getattr(self.table, name), getattr(table, name)) for name in _merged(table, "least")}
        self.table = replace(self.table, **added, **least)
        self.files.append(file)


def alike(weighted: Weighted, tables: Sequence[T], meanings: Sequence[tuple[object, ...]]) -> list[Alike[T]]:
    """The files of ``weighted`` with the sums of their ``tables``, in order of the first file of each sum.

    Args:
        meanings: of each table, what its codes mean; tables are added if this and their columns are identical
            (`shared_columns`), not only equal.
    """
    found: list[Alike[T]] = []
    last: dict[tuple[object, ...], Alike[T]] = {}
    for file, ((profile, used, weight), table, meaning) in enumerate(zip(weighted, tables, meanings, strict=True)):
        columns = [getattr(table, name) for name in _equal(table)]
        alone = None if _is_small(table) else file
        key = (tuple(map(id, meaning)), tuple(map(id, columns)), tuple(used), weight, alone)
        known = last.get(key)
        if known and len(known.files) < MOST_FILES:
            known.add(file, table)
        else:
            last[key] = Alike(profile, table, used, weight, [file])
            found.append(last[key])
    return found


def _merged(table: T, how: str) -> list[str]:
    return [name for name, column in columns_of(table).items() if column.merged == how]


def _equal(table: T) -> list[str]:
    """The fields in which tables that are added up agree: the keys of a further table are no column."""
    columns = columns_of(table)
    return [f.name for f in fields(table) if f.name not in columns or columns[f.name].merged == "equal"]


def _is_small(table: T) -> bool:
    columns = (getattr(table, name) for name in _merged(table, "sum"))
    return all(max(-int(c.min(initial=0)), int(c.max(initial=0))) < LARGEST for c in columns)
