"""The report's long tables as data: operators and kernels, and groups of matched work with their members. Times in µs
per step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tracediff.diff.work_changes import one_group
from tracediff.errors import printable
from tracediff.formatting import time_unit
from tracediff.present.sections import NUMBERS, numbers
from tracediff.report.explain import WHY
from tracediff.report.to_json import group_of, op_of

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.groups import Group
    from tracediff.diff.ops import Op
    from tracediff.diff.work_changes import WorkChange

OP_COLUMNS = (
    *("name", "raw_name", "category", "family", *NUMBERS[:2], "control_self_us", "test_self_us", "delta_self_us"),
    *("control_total_us", "test_total_us", "time_change", "p_value", "q_value"),
)
GROUP_COLUMNS = (
    *("name", "level", "family", "module", "phase", "lines", *NUMBERS, "call"),
    *("count_part_us", "mean_part_us", "control", "test", "all_members"),
)
MEMBER_COLUMNS = ("name", "raw_name", "op", "count", "us")
MOST_ROWS = 10_000
MOST_MEMBERS = 12
"""Of a group and side; the largest."""
LONGEST = 600
"""Characters of a name."""


@dataclass
class Names:
    """Every text once; rows hold its number.

    Attributes:
        texts: in order of number. size: bytes of them as JSON.
    """

    texts: list[str] = field(default_factory=list)
    size: int = 0
    _known: dict[str, int] = field(default_factory=dict)

    def code(self, text: str | None) -> int:
        """The number of ``text``, −1 for None."""
        if text is None:
            return -1
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = len(self.texts)
            self.texts.append(shortened(text))
            self.size += len(encoded(self.texts[-1])) + 1
        return number


def encoded(value: Any) -> str:
    """JSON in ASCII that holds no markup: ``<`` is written as an escape."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def shortened(text: str) -> str:
    """``text`` on one line, its middle left out where it is very long."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}… {len(text) - LONGEST:,} characters …{text[-LONGEST // 2 :]}"
    return printable(text)


def tables(comparison: Comparison, room: int) -> dict[str, Any]:
    """``names``, ``ops`` and ``groups``: each {columns, rows, unit, all}, rows by size of their change, at most
    MOST_ROWS of ``all``.

    Args:
        room: bytes of JSON that all together may take; the smallest changes are left out first.
    """
    names = Names()
    ops = _ops(comparison, names, room // 2)
    groups = _groups(comparison, names, room - names.size - _size(ops["rows"]))
    return {"names": names.texts, "ops": ops, "groups": groups, "why": WHY}


def _size(rows: list[list[Any]]) -> int:
    return sum(len(encoded(row)) for row in rows)


def _fitting(rows: Iterable[list[Any]], names: Names, room: int) -> list[list[Any]]:
    """The first MOST_ROWS of ``rows``, as many as fit into ``room`` bytes with the names that they add."""
    before, size = names.size, 0
    kept: list[list[Any]] = []
    for row in islice(rows, MOST_ROWS):
        size += len(encoded(row))
        if size + names.size - before > room:
            break
        kept.append(row)
    return kept


def _ops(comparison: Comparison, names: Names, room: int) -> dict[str, Any]:
    ops = sorted(comparison.ops, key=lambda o: (-abs(o.delta), -(o.control_self + o.test_self), o.raw_name))
    every = (_cells(OP_COLUMNS, _op(comparison, op), names) for op in ops)
    largest = [comparison.us(max(o.control_self, o.test_self)) for o in ops]
    return _table(OP_COLUMNS, _fitting(every, names, room), len(ops), largest)


def _op(comparison: Comparison, op: Op) -> dict[str, Any]:
    """The columns of the JSON document, and the change of self time."""
    shown = {"time_change": "" if op.time_change == "untested" else op.time_change}
    return {**asdict(op_of(comparison, op)), "delta_self_us": comparison.us(op.delta), **shown}


def _groups(comparison: Comparison, names: Names, room: int) -> dict[str, Any]:
    changes = comparison.work_changes
    groups = [one_group([comparison.work.groups[k] for k in change.groups]) for change in changes]
    every = (
        _cells(GROUP_COLUMNS, _group(comparison, change, group, names), names)
        for change, group in zip(changes, groups, strict=True)
    )
    largest = [comparison.us(max(g.control_ns, g.test_ns)) for g in groups]
    return _table(GROUP_COLUMNS, _fitting(every, names, room), len(groups), largest)


def _group(comparison: Comparison, change: WorkChange, group: Group, names: Names) -> dict[str, Any]:
    """The columns of the JSON document, of the instances of a module together, with what the group is called."""
    written = group_of(comparison, group)
    return {
        **asdict(written),
        **numbers(comparison, group),
        "name": change.kernels or change.operator,
        "module": change.module,
        "call": f"{change.operator}{change.shapes}",
        "lines": ", ".join(group.lines),
        "control": [_cells(MEMBER_COLUMNS, asdict(m), names) for m in written.control[:MOST_MEMBERS]],
        "test": [_cells(MEMBER_COLUMNS, asdict(m), names) for m in written.test[:MOST_MEMBERS]],
        "all_members": [len(group.control), len(group.test)],
    }


def _cells(columns: Sequence[str], row: dict[str, Any], names: Names) -> list[Any]:
    """The values of ``columns``: texts by their numbers, times rounded to the picosecond to shorten the JSON."""
    values = ((name, row[name]) for name in columns)
    return [names.code(v) if isinstance(v, str) else round(v, 6) if name.endswith("us") else v for name, v in values]


def _table(columns: Sequence[str], rows: list[list[Any]], total: int, largest: list[float]) -> dict[str, Any]:
    unit = time_unit(largest)
    return {
        "columns": columns,
        "rows": rows,
        "all": total,
        "unit": {"name": unit.name, "size": unit.size, "decimals": unit.decimals},
    }
