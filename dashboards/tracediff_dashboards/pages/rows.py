"""The rows of the changes page: the rows of each tab, and the row that a URL names."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Any

from dash import dcc

from tracediff import bounds
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK, HOST_WORK, Op, largest_first
from tracediff.diff.views import VIEWS, Sum, WorkChange, summed_by
from tracediff.present.columns import GRID
from tracediff.report.page.html import WORK_TITLES, text
from tracediff.structs import FrozenStruct
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.state.view import SCHEMAS

TITLES = WORK_TITLES | {"modules": "Modules", "families": "Families"}


class TableRow(FrozenStruct):
    """One row of a tab.

    Attributes:
        key: its identifier in the URL. item: the operator, group or sum. cells: column → value, times in µs, times and
            counts per step.
    """

    key: str
    item: Op | Group | Sum
    cells: dict[str, Any]


def table_rows(comparison: Comparison, tab: str) -> list[TableRow]:
    """The rows of a tab, the largest change first."""
    keys: set[str] = set()
    rows = []
    schema = SCHEMAS[tab]
    names = [column.name for column in schema.of[GRID]]
    for item in islice(_items(comparison, tab), bounds.SEARCHED_ROWS):
        key = _key(_identity(item, tab))
        while key in keys:  # another row has the same identity
            key = _key((key,))
        keys.add(key)
        values = zip(names, map(_cell, schema.values(GRID, comparison, item)), strict=True)
        cells = {"key": key, **{name: value for name, value in values if value is not None}}
        rows.append(TableRow(key, item.group if isinstance(item, WorkChange) else item, cells))
    return rows


def no_modules(context: PageContext) -> list[Any]:
    """That the traces contain no modules, and a link to the annotations that they contain instead."""
    sentence = "the traces contain no modules (with_stack=True records those that Python code calls)"
    if not any(op.category == "user_annotation" for op in context.whole.ops):
        return [sentence]
    link = dcc.Link("Annotations and Python", href=context.address("changes", tab="scopes", row=""))
    return [f"{sentence}; what they annotate instead is in the flame graph and under ", link]


def _items(comparison: Comparison, tab: str) -> Iterable[Op | Sum | WorkChange]:
    """What a tab has rows of, the largest change first."""
    if tab in SUMS:
        return summed_by(comparison.work, SUMS[tab])
    if tab == "groups":
        return comparison.work_changes
    return [op for op in largest_first(comparison.ops) if _tab(op) == tab]


def _identity(item: Op | Sum | WorkChange, tab: str) -> tuple[object, ...]:
    """The identity of a row in its tab, independent of its position."""
    if isinstance(item, Op):
        return item.category, item.raw_name
    if isinstance(item, Sum):
        return tab, item.name
    return item.operator, item.shapes, item.module, *item.short_names


def find_row(comparison: Comparison, tab: str, key: str | None) -> TableRow | None:
    """The row with the key of a URL, None if there is no such row."""
    return next((row for row in table_rows(comparison, tab) if row.key == key), None) if key else None


def row_named(comparison: Comparison, name: str) -> tuple[str, str] | None:
    """(tab, key) of the operator, kernel or matched call with a name, None if it has no row."""
    for op in comparison.ops:
        if name in (op.name, op.raw_name):
            return _tab(op), _key(_identity(op, _tab(op)))
    calls = [(f"{change.operator}{change.shapes}", change) for change in comparison.work_changes]
    candidates = (
        (len(call), change)
        for call, change in calls
        if name == change.name or (call and (name == call or name.startswith(f"{call}:")))
    )
    longest = max(candidates, key=itemgetter(0), default=None)
    return ("groups", _key(_identity(longest[1], "groups"))) if longest else None


def row_of_operator(comparison: Comparison, name: str) -> str | None:
    """The key of the largest change of the matched work of an operator, None if it has none."""
    of_operator = (change for change in comparison.work_changes if change.operator == name)
    largest = max(of_operator, key=lambda change: abs(change.time.delta), default=None)
    return _key(_identity(largest, "groups")) if largest else None


SUMS: dict[str, Callable[[Item], str]] = {
    "modules": VIEWS["module"],
    "families": VIEWS["family"],
}
"""Tab of sums → the row that a piece of work belongs to."""


def _tab(op: Op) -> str:
    return "kernels" if op.category in GPU_WORK else "ops" if op.category in HOST_WORK else "scopes"


def _key(identity: tuple[object, ...]) -> str:
    return blake2b("\x1f".join(map(str, identity)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _cell(value: Any) -> Any:
    return text(value, bounds.CELL) if isinstance(value, str) else value
