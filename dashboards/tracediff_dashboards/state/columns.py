"""The columns of the changes page: which columns each tab has, their headings, and the layout a user has chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXT, TIME, COUNT = "text", "time", "count"


@dataclass(frozen=True)
class TableColumn:
    """A column of the table.

    Attributes:
        head: its heading. width: in pixels. kind: TEXT, TIME or COUNT. tooltip: of the heading.
        hidden: whether it is by default.
    """

    head: str
    width: int = 92
    kind: str = TIME
    tooltip: str | None = None
    hidden: bool = False


COLUMNS = {
    "name": TableColumn("name", 230, TEXT),
    "delta_us": TableColumn("change", tooltip="test − control"),
    "control_us": TableColumn("control"),
    "test_us": TableColumn("test"),
    "gpu_delta_us": TableColumn(
        "GPU below, change",
        tooltip="GPU time of what the operator launches, also through the operators below it: test − control",
    ),
    "gpu_control_us": TableColumn("GPU below, control"),
    "gpu_test_us": TableColumn("GPU below, test"),
    "instances": TableColumn("instances", 105, COUNT, "Instances of a module with equal work, which share the row"),
    "control_count": TableColumn("count, control", kind=COUNT),
    "test_count": TableColumn("count, test", kind=COUNT),
    "family": TableColumn("family", 105, TEXT),
    "level": TableColumn(
        "match level",
        105,
        TEXT,
        "Why the work is considered the same on both sides; confidence decreases from exact to family",
    ),
    "module": TableColumn("module", 220, TEXT),
    "word": TableColumn(
        "significance",
        95,
        TEXT,
        "Whether the change of self time is significant; empty without a test, which needs three runs per side and "
        "a time above the noise floor",
    ),
    "category": TableColumn("category", 110, TEXT, hidden=True),
    "phase": TableColumn("phase", 100, TEXT, hidden=True),
    "call": TableColumn("operator", 220, TEXT, hidden=True),
    "control_total": TableColumn("total, control", hidden=True),
    "test_total": TableColumn("total, test", hidden=True),
}
"""The columns of all tabs, in order; the keys are those of a row's cells."""
TIMES = ("delta_us", "control_us", "test_us")
COUNTS = ("control_count", "test_count")
OF_OPS = ("family", "word", "category", "control_total", "test_total")
OF_TABS = {
    "groups": ("name", *TIMES, *COUNTS, "instances", "family", "level", "module", "phase", "call"),
    "ops": ("name", *TIMES, "gpu_delta_us", "gpu_control_us", "gpu_test_us", *COUNTS, *OF_OPS),
    "kernels": ("name", *TIMES, *COUNTS, *OF_OPS),
    "scopes": ("name", *TIMES, *COUNTS, *OF_OPS),
    "modules": ("name", *TIMES, *COUNTS, "instances"),
    "families": ("name", *TIMES, *COUNTS),
}
"""Tab → its columns, in order."""
PINNED = ("name",)

ORDERS = ("asc", "desc")
TEXT_CONDITIONS = ("contains", "notContains", "equals", "notEqual", "startsWith", "endsWith", "blank", "notBlank")
NUMBER_CONDITIONS = ("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual", "inRange")
CONDITIONS = frozenset((*TEXT_CONDITIONS, *NUMBER_CONDITIONS))
MOST_CONDITIONS = 5
LONGEST = 200
"""Maximum length of the text of a filter, in characters."""


def default_columns(tab: str) -> tuple[str, ...]:
    """The columns that a tab shows by default."""
    return tuple(column for column in OF_TABS[tab] if not COLUMNS[column].hidden)


@dataclass(frozen=True)
class TableLayout:
    """Sort order, columns and filters of the table; an empty attribute is the default.

    Attributes:
        sort: columns followed by ``:asc`` or ``:desc``, in order of precedence. visible, pinned: columns.
        where: the filters of the grid as JSON, see `where_of`.
    """

    sort: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    where: str = ""

    def order(self) -> dict[str, tuple[str, int]]:
        """Column → (asc or desc, its position in the sort order)."""
        return {entry.partition(":")[0]: (entry.partition(":")[2], k) for k, entry in enumerate(self.sort)}

    def filters(self) -> dict[str, Any]:
        """The filter model of the grid."""
        found: dict[str, Any] = json.loads(self.where) if self.where else {}
        return found


def parse_layout(sort: Sequence[str], visible: Sequence[str], pinned: Sequence[str], where: str) -> TableLayout:
    """The layout in a URL; unknown columns and invalid filters are ignored."""
    sorts = [entry for entry in sort if entry.partition(":")[0] in COLUMNS and entry.partition(":")[2] in ORDERS]
    columns = [tuple(name for name in dict.fromkeys(names) if name in COLUMNS) for names in (visible, pinned)]
    try:
        model = json.loads(where) if where else None
    except (ValueError, RecursionError):
        model = None
    return TableLayout(
        tuple({entry.partition(":")[0]: entry for entry in sorts}.values()), columns[0], columns[1], where_of(model)
    )


def sort_of(state: Any) -> tuple[str, ...]:
    """The sort order in the grid's ``columnState``, as `TableLayout.sort`."""
    sorted_by = [
        c for c in state or () if isinstance(c, dict) and c.get("sort") in ORDERS and c.get("colId") in COLUMNS
    ]
    return tuple(f"{c['colId']}:{c['sort']}" for c in sorted(sorted_by, key=lambda c: c.get("sortIndex") or 0))


def selected_columns(value: Any, default: Sequence[str]) -> tuple[str, ...]:
    """The columns selected in a dropdown, empty if they are the default."""
    selected = tuple(column for column in COLUMNS if column in (value or ()))
    return selected if set(selected) != set(default) else ()


def where_of(model: Any) -> str:
    """The grid's ``filterModel`` as JSON, empty without filters; unknown conditions are left out."""
    if not isinstance(model, dict):
        return ""
    conditions = {column: condition for column in COLUMNS if (condition := _condition(model.get(column)))}
    return json.dumps(conditions, separators=(",", ":"), sort_keys=True) if conditions else ""


def _condition(model: Any) -> dict[str, Any]:
    """The condition of a column: a single one, or several joined by AND or OR."""
    if not isinstance(model, Mapping) or not isinstance(model.get("conditions"), list):
        return _single(model)
    parts = [part for condition in model["conditions"][:MOST_CONDITIONS] if (part := _single(condition))]
    joined = "OR" if model.get("operator") == "OR" else "AND"
    return {"filterType": parts[0]["filterType"], "operator": joined, "conditions": parts} if parts else {}


def _single(model: Any) -> dict[str, Any]:
    if (
        not isinstance(model, Mapping)
        or model.get("filterType") not in ("text", "number")
        or str(model.get("type")) not in CONDITIONS
    ):
        return {}
    kind = str if model["filterType"] == "text" else (int, float)
    values = {key: value for key in ("filter", "filterTo") if isinstance(value := model.get(key), kind)}
    if any(isinstance(value, str) and len(value) > LONGEST for value in values.values()):
        return {}
    return {"filterType": model["filterType"], "type": str(model["type"]), **values}
