"""`TableSchema`: the keys, columns and rates of a table, and the event arguments it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined, numbered_texts
from tracediff.profile.model import TableRows

UNITS = ("count", "ns", "bytes", "flop")
Key = tuple[NDArray[Any], Sequence[str] | Callable[[int], str]]
"""Codes, and the text of each; codes of the same text are one key."""
Amounts = NDArray[Any] | int
"""A number for each row, or for all."""


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


def summed(step: Int64, keys: Sequence[Key], columns: Sequence[Amounts]) -> TableRows:
    """The table of m occurrences, summed by step and key.

    Args:
        step: int64[m] position of their step; those outside every step (below 0) are left out.
        keys: codes int[m]. columns: int[m] or bool[m] each, or a number.
    """
    inside = np.flatnonzero(step >= 0)
    numbered = [_by_text(codes[inside], texts) for codes, texts in keys]
    row, first = combined(step[inside], *(code for code, _ in numbered))
    values = np.zeros((len(first), len(columns)), np.int64)
    for k, column in enumerate(columns):
        np.add.at(values[:, k], row, column if isinstance(column, int) else column[inside])
    key, distinct = combined(*(code[first] for code, _ in numbered))
    rows = ([texts[c] for c in code[first][distinct].tolist()] for code, texts in numbered)
    return TableRows(tuple(zip(*rows, strict=True)), step[inside][first], key, values)


def _by_text(codes: NDArray[Any], texts: Sequence[str] | Callable[[int], str]) -> tuple[Int64, list[str]]:
    """(code of each text, the distinct texts)."""
    code, first = combined(codes)
    text = texts if callable(texts) else texts.__getitem__
    place, distinct = numbered_texts(text(c) for c in codes[first].tolist())
    return place[code], distinct
