"""The columns of the changes: which each tab has, what they are called, and how a reader has arranged them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HEADS = {
    "name": "name",
    "delta_us": "change",
    "control_us": "control",
    "test_us": "test",
    "control_count": "count, control",
    "test_count": "count, test",
    "family": "family",
    "level": "matched by",
    "module": "module",
    "word": "tested",
    "category": "category",
    "phase": "phase",
    "call": "operator",
    "control_total": "total, control",
    "test_total": "total, test",
}
"""Column → its heading, in the order in which they stand."""
HIDDEN = ("control_total", "test_total", "category", "call", "phase")
"""Columns that are there to be chosen."""
TIMES = ("control_us", "test_us", "delta_us", "control_total", "test_total")
NUMBERS = ("delta_us", "control_us", "test_us", "control_count", "test_count")
OF_OPS = ("name", *NUMBERS, "family", "word", "category", "control_total", "test_total")
COLUMNS = {
    "ops": OF_OPS,
    "kernels": OF_OPS,
    "scopes": OF_OPS,
    "modules": ("name", *NUMBERS),
    "families": ("name", *NUMBERS),
    "groups": ("name", *NUMBERS, "family", "level", "module", "phase", "call"),
}
"""Tab → its columns, in order."""
PINNED = ("name",)

ORDERS = ("asc", "desc")
TEXT_CONDITIONS = ("contains", "notContains", "equals", "notEqual", "startsWith", "endsWith", "blank", "notBlank")
NUMBER_CONDITIONS = ("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual", "inRange")
CONDITIONS = frozenset((*TEXT_CONDITIONS, *NUMBER_CONDITIONS))
MOST_CONDITIONS = 5
LONGEST = 200
"""Characters that a filter looks for."""


def usual(tab: str) -> tuple[str, ...]:
    """The columns that a tab shows where nobody chose others."""
    return tuple(column for column in COLUMNS[tab] if column not in HIDDEN)


@dataclass(frozen=True)
class Arranged:
    """How the table is arranged; what is empty is as usual.

    Attributes:
        sort: columns with asc or desc after a colon, the first first. shown, pinned: columns.
        where: the grid's filters as JSON (`where_of`).
    """

    sort: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    where: str = ""

    def order(self) -> dict[str, tuple[str, int]]:
        """Column → (asc or desc, its rank)."""
        return {one.partition(":")[0]: (one.partition(":")[2], k) for k, one in enumerate(self.sort)}

    def filters(self) -> dict[str, Any]:
        """The grid's filter model."""
        found: dict[str, Any] = json.loads(self.where) if self.where else {}
        return found


def arranged(sort: Sequence[str], shown: Sequence[str], pinned: Sequence[str], where: str) -> Arranged:
    """What an address says of it; what no table has is passed over."""
    sorts = [one for one in sort if one.partition(":")[0] in HEADS and one.partition(":")[2] in ORDERS]
    columns = [tuple(one for one in dict.fromkeys(some) if one in HEADS) for some in (shown, pinned)]
    try:
        model = json.loads(where) if where else None
    except (ValueError, RecursionError):
        model = None
    return Arranged(
        tuple({one.partition(":")[0]: one for one in sorts}.values()), columns[0], columns[1], where_of(model)
    )


def sort_of(state: Any) -> tuple[str, ...]:
    """The order that the grid's ``columnState`` tells, as `Arranged` has it."""
    sorted_by = [c for c in state or () if isinstance(c, dict) and c.get("sort") in ORDERS and c.get("colId") in HEADS]
    return tuple(f"{c['colId']}:{c['sort']}" for c in sorted(sorted_by, key=lambda c: c.get("sortIndex") or 0))


def chosen_of(value: Any, as_usual: Sequence[str]) -> tuple[str, ...]:
    """The columns of a list of choices, empty where they are as usual."""
    kept = tuple(column for column in HEADS if column in (value or ()))
    return kept if set(kept) != set(as_usual) else ()


def where_of(model: Any) -> str:
    """The grid's ``filterModel`` as JSON, empty where it filters nothing; what is none of the grid's own conditions is
    left out.
    """
    if not isinstance(model, dict):
        return ""
    kept = {column: condition for column in HEADS if (condition := _condition(model.get(column)))}
    return json.dumps(kept, separators=(",", ":"), sort_keys=True) if kept else ""


def _condition(given: Any) -> dict[str, Any]:
    """One condition of a column, or several joined."""
    if not isinstance(given, Mapping) or not isinstance(given.get("conditions"), list):
        return _single(given)
    parts = [part for one in given["conditions"][:MOST_CONDITIONS] if (part := _single(one))]
    joined = "OR" if given.get("operator") == "OR" else "AND"
    return {"filterType": parts[0]["filterType"], "operator": joined, "conditions": parts} if parts else {}


def _single(given: Any) -> dict[str, Any]:
    if (
        not isinstance(given, Mapping)
        or given.get("filterType") not in ("text", "number")
        or str(given.get("type")) not in CONDITIONS
    ):
        return {}
    kind = str if given["filterType"] == "text" else (int, float)
    values = {key: value for key in ("filter", "filterTo") if isinstance(value := given.get(key), kind)}
    if any(isinstance(value, str) and len(value) > LONGEST for value in values.values()):
        return {}
    return {"filterType": given["filterType"], "type": str(given["type"]), **values}
