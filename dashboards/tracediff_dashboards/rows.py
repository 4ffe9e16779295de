"""The rows of the changes page: the rows of each tab, and the row that a URL names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.ops import GPU_WORK, HOST_WORK, Op
from tracediff.diff.views import Sum, summed
from tracediff.errors import printable

MOST = 10_000
"""Maximum number of rows of a tab: those with the largest changes."""
LONGEST = 300
"""Maximum length of a name in a cell, in characters."""
TITLES = {
    "ops": "Operators and calls",
    "kernels": "Kernels and copies",
    "scopes": "Annotations and Python",
    "modules": "Modules",
    "families": "Families",
    "groups": "Matched groups",
}


@dataclass(frozen=True)
class TableRow:
    """One row of a tab.

    Attributes:
        key: its identifier in the URL. item: the operator, group or sum. cells: column → value, times in µs, times and
            counts per step.
    """

    key: str
    item: Op | Group | Sum
    cells: dict[str, Any]


def table_rows(comparison: Comparison, tab: str) -> list[TableRow]:
    """The rows of a tab, largest change first."""
    keys: set[str] = set()
    rows = []
    for identity, item, cells in TAB_ROWS[tab](comparison):
        key = _key(identity)
        while key in keys:  # another row has the same identity
            key = _key((key,))
        keys.add(key)
        rows.append(TableRow(key, item, {"key": key, **{k: _cell(v) for k, v in cells.items()}}))
        if len(rows) == MOST:
            break
    return rows


def find_row(comparison: Comparison, tab: str, key: str) -> TableRow | None:
    """The row with the key of a URL, None if there is no such row."""
    return next((row for row in table_rows(comparison, tab) if row.key == key), None) if key else None


def row_named(comparison: Comparison, name: str) -> tuple[str, str] | None:
    """(tab, key) of the operator, kernel or matched call that a finding names, None if it has no row."""
    for op in comparison.ops:
        if name in (op.name, op.raw_name):
            return _tab(op), _key((op.category, op.raw_name))
    calls = [
        (len(g.call), g) for g in comparison.work.groups if g.call and (name == g.call or name.startswith(f"{g.call}:"))
    ]
    if not calls:
        return None
    group = max(calls, key=lambda found: found[0])[1]
    return "groups", _key(_identity(group))


def _tab(op: Op) -> str:
    return "kernels" if op.category in GPU_WORK else "ops" if op.category in HOST_WORK else "scopes"


def _key(identity: tuple[object, ...]) -> str:
    return blake2b("\x1f".join(map(str, identity)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return printable(value if len(value) <= LONGEST else f"{value[: LONGEST // 2]} … {value[-LONGEST // 2 :]}")


RowData = Iterator[tuple[tuple[object, ...], Any, dict[str, Any]]]
"""(identity, item, cells) per row."""


def _ops(tab: str) -> Callable[[Comparison], RowData]:
    def rows(comparison: Comparison) -> RowData:
        us, number = comparison.us, comparison.number
        for op in sorted(comparison.ops, key=lambda o: (-abs(o.delta), -(o.control_self + o.test_self), o.raw_name)):
            if _tab(op) == tab:
                cells = {
                    "name": op.name,
                    "family": op.family,
                    "category": op.category,
                    **_numbers(
                        number(op.control_count),
                        number(op.test_count),
                        us(op.control_self),
                        us(op.test_self),
                        us(op.delta),
                    ),
                    "control_total": us(op.control_total),
                    "test_total": us(op.test_total),
                    "word": "" if op.time_change == "untested" else op.time_change,
                }
                yield (op.category, op.raw_name), op, cells

    return rows


def _view(view: str) -> Callable[[Comparison], RowData]:
    def rows(comparison: Comparison) -> RowData:
        us, number = comparison.us, comparison.number
        for item in summed(comparison.work, view):
            yield (
                (view, item.name),
                item,
                {
                    "name": item.name,
                    **_numbers(
                        number(item.control_count),
                        number(item.test_count),
                        us(item.control),
                        us(item.test),
                        us(item.delta),
                    ),
                },
            )

    return rows


def _groups(comparison: Comparison) -> RowData:
    us, number = comparison.us, comparison.number
    for group in comparison.work.groups:
        counts = [number(n) for n in (group.control_count, group.test_count)]
        cells = {
            "name": group.name,
            "level": group.level,
            "family": group.family,
            "phase": group.phase,
            "module": group.module or "",
            "call": group.call or "",
            **_numbers(counts[0], counts[1], us(group.control_ns), us(group.test_ns), us(group.delta)),
        }
        yield _identity(group), group, cells


def _identity(group: Group) -> tuple[object, ...]:
    return (group.level, group.call, group.phase, group.module, *((m.name, m.op) for side in group.sides for m in side))


def _numbers(
    control_count: float, test_count: float, control_us: float, test_us: float, delta_us: float
) -> dict[str, float]:
    return {
        "control_count": control_count,
        "test_count": test_count,
        "control_us": control_us,
        "test_us": test_us,
        "delta_us": delta_us,
    }


TAB_ROWS: dict[str, Callable[[Comparison], RowData]] = {
    "ops": _ops("ops"),
    "kernels": _ops("kernels"),
    "scopes": _ops("scopes"),
    "modules": _view("module"),
    "families": _view("family"),
    "groups": _groups,
}
