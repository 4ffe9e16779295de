"""The rows of the changes page: the rows of each tab, and the row that a URL names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import chain
from typing import Any

from msgspec import Struct

from tracediff import bounds
from tracediff.diff.comparison import OPERATOR, Comparison
from tracediff.diff.groups import Group, Member
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK, HOST_WORK, Op
from tracediff.diff.views import VIEWS, Modules, Sum, WorkChange, one_group, summed_by
from tracediff.errors import printable
from tracediff.pair import Pair
from tracediff.present.sections import NUMBERS
from tracediff.profile.kernels.match_names import table_name

TITLES = {
    "groups": "Matched work",
    "ops": "Operators and calls",
    "kernels": "Kernels and copies",
    "scopes": "Annotations and Python",
    "modules": "Modules",
    "families": "Families",
}


class TableRow(Struct, frozen=True):
    """One row of a tab.

    Attributes:
        key: its identifier in the URL. item: the operator, group or sum. cells: column → value, times in µs, times and
            counts per step.
    """

    key: str
    item: Op | Group | Sum
    cells: dict[str, Any]


def table_rows(comparison: Comparison, tab: str) -> list[TableRow]:
    """The rows of a tab, the largest added time first."""
    keys: set[str] = set()
    rows = []
    for identity, item, cells in TAB_ROWS[tab](comparison):
        key = _key(identity)
        while key in keys:  # another row has the same identity
            key = _key((key,))
        keys.add(key)
        rows.append(TableRow(key, item, {"key": key, **{k: _cell(v) for k, v in cells.items()}}))
        if len(rows) == bounds.SEARCHED_ROWS:
            break
    return sorted(rows, key=lambda row: -row.cells["delta_us"])


def find_row(comparison: Comparison, tab: str, key: str | None) -> TableRow | None:
    """The row with the key of a URL, None if there is no such row."""
    return next((row for row in table_rows(comparison, tab) if row.key == key), None) if key else None


def row_named(comparison: Comparison, name: str) -> tuple[str, str] | None:
    """(tab, key) of the operator, kernel or matched call with a name, None if it has no row."""
    for op in comparison.ops:
        if name in (op.name, op.raw_name):
            return _tab(op), _key((op.category, op.raw_name))
    calls = [(f"{change.operator}{change.shapes}", change) for change in comparison.work_changes]
    named = [
        (len(call), change)
        for call, change in calls
        if name == change.name or (call and (name == call or name.startswith(f"{call}:")))
    ]
    return ("groups", _key(_identity(max(named, key=lambda found: found[0])[1]))) if named else None


SUMS: dict[str, Callable[[Member | Item], str]] = {
    "modules": VIEWS["module"],
    "families": VIEWS["family"],
}
"""Tab of sums → the row that a piece of work belongs to."""
INSTANCES: dict[str, Callable[[Member | Item], str]] = SUMS | {"modules": Modules(instances=True)}
"""Tab of sums → the instance of the row."""


def _tab(op: Op) -> str:
    return "kernels" if op.category in GPU_WORK else "ops" if op.category in HOST_WORK else "scopes"


def _key(identity: tuple[object, ...]) -> str:
    return blake2b("\x1f".join(map(str, identity)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return printable(
        value if len(value) <= bounds.CELL else f"{value[: bounds.CELL // 2]} … {value[-bounds.CELL // 2 :]}"
    )


RowData = Iterator[tuple[tuple[object, ...], Any, dict[str, Any]]]
"""(identity, item, cells) per row."""


def _ops(tab: str) -> Callable[[Comparison], RowData]:
    def rows(comparison: Comparison) -> RowData:
        us = comparison.us
        below = _gpu_below(comparison) if tab == "ops" else {}
        for op in sorted(comparison.ops, key=lambda o: (-abs(o.delta), -sum(o.self_time), o.raw_name)):
            if _tab(op) == tab:
                cells = {
                    "name": op.name,
                    "family": op.family,
                    "category": op.category,
                    **_numbers(comparison, op.count, op.self_time),
                    "control_total": us(op.total.control),
                    "test_total": us(op.total.test),
                    "word": op.significance.word,
                }
                if below and op.category == OPERATOR:
                    control, test = below.get(table_name(op.raw_name), (0, 0))
                    cells |= {
                        "gpu_control_us": us(control),
                        "gpu_test_us": us(test),
                        "gpu_delta_us": us(test - control),
                    }
                yield (op.category, op.raw_name), op, cells

    return rows


def _gpu_below(comparison: Comparison) -> dict[str, tuple[int, int]]:
    """Table name of an operator → GPU time of the work that its calls launched, also through others, on both sides;
    empty without a GPU.
    """
    below: dict[str, list[int]] = {}
    if not comparison.gpu_time.groups:
        return {}
    for side, tree in enumerate(comparison.trees):
        factor = comparison.scale // tree.denominator
        names: list[frozenset[str]] = []  # of the operators from the root to each call, each once
        for call in tree.calls:
            above = names[call.parent] if call.parent >= 0 else frozenset()
            names.append(above | {table_name(call.name)} if call.kind == "op" else above)
        for work in tree.work:
            for name in names[work.node] if work.node >= 0 else ():
                below.setdefault(name, [0, 0])[side] += factor * work.ns
    return {name: (control, test) for name, (control, test) in below.items()}


def _sums(tab: str) -> Callable[[Comparison], RowData]:
    def rows(comparison: Comparison) -> RowData:
        instances: dict[str, set[str]] = defaultdict(set)
        for group in comparison.work.groups:
            for member in chain(*group.members):
                instances[SUMS[tab](member)].add(INSTANCES[tab](member))
        for total in summed_by(comparison.work, SUMS[tab]):
            numbers = _numbers(comparison, total.count, total.time)
            yield (tab, total.name), total, {"name": total.name, "instances": len(instances[total.name]), **numbers}

    return rows


def _groups(comparison: Comparison) -> RowData:
    for change in comparison.work_changes:
        groups = [comparison.work.groups[k] for k in change.groups]
        group = one_group(groups)
        cells = {
            "name": change.kernels or change.operator,
            "instances": len(groups),
            "level": group.level,
            "family": group.family,
            "phase": group.phase,
            "module": change.module,
            "call": f"{change.operator}{change.shapes}",
            **_numbers(comparison, change.count, change.time),
        }
        yield _identity(change), group, cells


def _identity(change: WorkChange) -> tuple[object, ...]:
    """What tells a row of matched work from the others, whatever its position."""
    return change.operator, change.shapes, change.module, *change.short_names


def _numbers(comparison: Comparison, count: Pair[int], time: Pair[int]) -> dict[str, float]:
    """The cells that every row has."""
    values = *count.map(comparison.number), *time.map(comparison.us), comparison.us(time.delta)
    return dict(zip(NUMBERS, values, strict=True))


TAB_ROWS: dict[str, Callable[[Comparison], RowData]] = {
    "ops": _ops("ops"),
    "kernels": _ops("kernels"),
    "scopes": _ops("scopes"),
    "modules": _sums("modules"),
    "families": _sums("families"),
    "groups": _groups,
}
