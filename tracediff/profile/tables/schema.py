"""`TableSchema`: the keys, columns and rates of a table, and the event arguments it needs."""

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
        name: its key in tables and JSON, without unit. title: its heading. unit: one of UNITS.
    """

    name: str
    title: str
    unit: str = "ns"


@dataclass(frozen=True)
class Rate:
    """A quotient of two columns, computed where it is shown.

    Attributes:
        name, title: as for columns, with the unit in the name. over, under: names of columns. factor: scales the
            quotient.
    """

    name: str
    title: str
    over: str
    under: str
    factor: float = 1.0


@dataclass(frozen=True)
class Part:
    """A share of the device's peak, computed where it is shown.

    Attributes:
        name, title: as of columns.
        compute: (key, values of the columns, names of the GPUs) → the part, None where it is not known.
    """

    name: str
    title: str
    compute: Callable[[tuple[str, ...], Sequence[float], tuple[str, ...]], float | None]


@dataclass(frozen=True)
class TableSchema:
    """The keys, columns and texts of a table.

    Attributes:
        name: stable short name. title: its heading. about: what the columns mean, in a few sentences.
        keys: names of the texts that identify a row, ``_`` for a blank.
        columns: rows are sorted by the first.
        events: the keys that are event names, shown by their display names.
        states: the keys that are states of the step account, shown by their labels. kinds: the keys that are what ran
            in a state, such as ``gpu_compute`` or ``op``, shown likewise.
        rates: quotients of columns. parts: shares of the device's peak.
        arguments: event arguments that it needs beyond those of every profile.
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
    states: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def summed(step: Int64, keys: Sequence[tuple[Int64, Sequence[str]]], columns: Sequence[Int64]) -> TableRows:
    """The table of m occurrences, summed by step and key.

    Args:
        step: int64[m] position of their step; those outside every step (below 0) are left out.
        keys: for each key (int64[m] codes, the texts that the codes index).
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
