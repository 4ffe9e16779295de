"""What a table is: keys, columns that add up, and rates between columns; and what its table is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.model import TableRows

UNITS = ("count", "ns", "bytes", "flop")


@dataclass(frozen=True)
class Column:
    """A quantity per step; over rows, steps and files it adds up.

    Attributes:
        name: its key in tables and JSON, without unit. title: for eyes. unit: one of UNITS.
    """

    name: str
    title: str
    unit: str = "ns"


@dataclass(frozen=True)
class Rate:
    """A quotient of two columns, made where it is shown.

    Attributes:
        name, title: as of columns, with unit in the name. over, under: names of columns. factor: of the quotient.
    """

    name: str
    title: str
    over: str
    under: str
    factor: float = 1.0


@dataclass(frozen=True)
class Part:
    """A part of what the device can do, made where it is shown.

    Attributes:
        name, title: as of columns. of: (key, values of the columns, names of the GPUs) → the part, None where it is not
            known.
    """

    name: str
    title: str
    of: Callable[[tuple[str, ...], Sequence[float], tuple[str, ...]], float | None]


@dataclass(frozen=True)
class TableSchema:
    """What a table tells.

    Attributes:
        name: stable short name. title: its heading. about: what the columns mean, in a sentence or two.
        keys: names of the texts that tell rows apart.
        columns: the first is what rows are sorted by.
        events: those keys that are names of events, which tables show in readable form.
        rates: quotients of columns. parts: parts of what the device can do.
        arguments: arguments of events that it reads beyond those of a profile.
    """

    name: str
    title: str
    about: str
    _: KW_ONLY
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    rates: tuple[Rate, ...] = ()
    arguments: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    events: tuple[str, ...] = ()


def summed(step: Int64, keys: Sequence[tuple[Int64, Sequence[str]]], columns: Sequence[Int64]) -> TableRows:
    """The table of m occurrences, equal ones of a step added.

    Args:
        step: int64[m] position of their step; those outside every step (below 0) are left out.
        keys: of each key (int64[m] codes, the texts that they stand for).
        columns: int64[m] each.
    """
    inside = np.flatnonzero(step >= 0)
    place, codes = step[inside], [code[inside] for code, _ in keys]
    row, first = combined(place, *codes)
    values = np.zeros((len(first), len(columns)), np.int64)
    for k, column in enumerate(columns):
        np.add.at(values[:, k], row, column[inside])
    key, distinct = combined(*(code[first] for code in codes))
    texts = zip(
        *([texts[c] for c in code[first][distinct].tolist()] for code, (_, texts) in zip(codes, keys, strict=True)),
        strict=True,
    )
    return TableRows(tuple(texts), place[first], key, values)
