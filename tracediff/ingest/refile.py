"""Move events of a trace to other categories, with their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracediff.ingest.times import MISSING
from tracediff.ingest.trace import ABSENT_OF, Arguments, Codes, Trace


def category_code(trace: Trace, name: str) -> int:
    """The code of the category ``name``, which the trace gets if it has none of this name."""
    if name not in trace.categories:
        trace.categories.append(name)
    return trace.categories.index(name)


def refile(trace: Trace, category: Codes) -> None:
    """Give each event its new ``category`` (int32[n]), and its arguments to that one."""
    moved = np.flatnonzero(category != trace.category)
    touched = set(np.unique(trace.category[moved]).tolist()) | set(np.unique(category[moved]).tolist())
    pieces: dict[int, list[Arguments]] = {code: [] for code in touched}
    for code in touched & trace.arguments.keys():
        arguments = trace.arguments.pop(code)
        new = category[arguments.rows]
        for to in np.unique(new).tolist():
            pieces[to].append(_taken(arguments, np.flatnonzero(new == to)))
    trace.category = category
    for code, parts in pieces.items():
        if parts:
            trace.arguments[code] = joined(parts)


def _taken(arguments: Arguments, places: Any) -> Arguments:
    return Arguments(
        arguments.rows[places],
        {name: values[places] for name, values in arguments.ints.items()},
        {name: values[places] for name, values in arguments.floats.items()},
        {name: values[places] for name, values in arguments.texts.items()},
    )


def joined(parts: list[Arguments]) -> Arguments:
    """The arguments of several groups of events of one category, which may have different ones, in order of rows."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    whole = Arguments(rows[order])
    for kind in ("ints", "floats", "texts"):
        into = getattr(whole, kind)
        for name in sorted({name for part in parts for name in getattr(part, kind)}):
            columns = [getattr(part, kind).get(name) for part in parts]
            dtype = next(c.dtype for c in columns if c is not None)
            filled = [
                np.full(len(part.rows), ABSENT_OF[dtype.type], dtype) if column is None else column
                for part, column in zip(parts, columns, strict=True)
            ]
            into[name] = np.concatenate(filled)[order]
    return whole


def rename(trace: Trace, rows: Any, names: Sequence[str]) -> None:
    """Give the events at ``rows`` other names; names that no event has any longer are dropped."""
    codes = {name: code for code, name in enumerate(trace.names)}
    new = [codes.setdefault(name, len(codes)) for name in names]
    name = trace.name.copy()
    name[rows] = new
    every = list(codes)
    used, inverse = np.unique(name, return_inverse=True)
    trace.names = [every[code] for code in used.tolist()]
    trace.name = inverse.reshape(-1).astype(np.int32)


def integers(trace: Trace, argument: str) -> Any:
    """int64[n] of an argument of any category that may be spelled as a text, MISSING where an event has none."""
    out = np.full(len(trace), MISSING, np.int64)
    for arguments in trace.arguments.values():
        if argument in arguments.ints:
            out[arguments.rows] = arguments.ints[argument]
        if argument in arguments.texts:
            codes = arguments.texts[argument]
            found, inverse = np.unique(codes, return_inverse=True)
            numbers = [_whole(trace.texts[code]) if code >= 0 else MISSING for code in found.tolist()]
            out[arguments.rows] = np.array(numbers, np.int64)[inverse]
    return out


def texts(trace: Trace, argument: str, rows: Any) -> list[str]:
    """The text argument of the events at ``rows``, empty where an event has none."""
    out = np.full(len(trace), -1, np.int32)
    for arguments in trace.arguments.values():
        if argument in arguments.texts:
            out[arguments.rows] = arguments.texts[argument]
    return [trace.texts[code] if code >= 0 else "" for code in out[rows].tolist()]


def set_integers(trace: Trace, argument: str, rows: Any, values: Any) -> None:
    """Set the integer argument of the events at ``rows`` (int64[m], ascending) to ``values``."""
    for code in np.unique(trace.category[rows]).tolist():
        mine = trace.category[rows] == code
        given = Arguments(rows[mine])
        before = trace.arguments.get(code)
        whole = joined([before, given]) if before and not np.isin(given.rows, before.rows).all() else before or given
        whole = _first_of_each_row(whole)
        column = whole.ints.get(argument)
        column = np.full(len(whole.rows), MISSING, np.int64) if column is None else column.copy()
        column[np.searchsorted(whole.rows, given.rows)] = values[mine]
        whole.ints[argument] = column
        trace.arguments[code] = whole


def _first_of_each_row(arguments: Arguments) -> Arguments:
    _, first = np.unique(arguments.rows, return_index=True)
    return arguments if len(first) == len(arguments.rows) else _taken(arguments, first)


def _whole(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() and text.isascii() and len(text) < 19 else MISSING
