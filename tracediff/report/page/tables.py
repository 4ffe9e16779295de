"""The report's long tables as data: operators and kernels, and groups of matched work with their members. Times in µs
per step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from tracediff.diff.work_changes import one_group
from tracediff.errors import printable
from tracediff.formatting import time_unit
from tracediff.profile.kernels.display_names import display_name
from tracediff.report.explain import WHY

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.groups import Member

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
    us, number = comparison.us, comparison.number
    ops = sorted(comparison.ops, key=lambda o: (-abs(o.delta), -(o.control_self + o.test_self), o.raw_name))
    every = (
        [
            names.code(op.name),
            names.code(op.raw_name),
            names.code(op.category),
            names.code(op.family),
            number(op.control_count),
            number(op.test_count),
            *(_rounded(us(v)) for v in (op.control_self, op.test_self, op.delta, op.control_total, op.test_total)),
            names.code("" if op.time_change == "untested" else op.time_change),
            op.p_value,
            op.q_value,
        ]
        for op in ops
    )
    columns = [
        "name",
        "raw",
        "category",
        "family",
        "count_a",
        "count_b",
        "us_a",
        "us_b",
        "delta",
        "total_a",
        "total_b",
        "word",
        "p",
        "q",
    ]
    return _table(columns, _fitting(every, names, room), len(ops), [us(max(o.control_self, o.test_self)) for o in ops])


def _groups(comparison: Comparison, names: Names, room: int) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    changes = comparison.work_changes
    groups = [one_group([comparison.work.groups[k] for k in change.groups]) for change in changes]
    every = (
        [
            names.code(change.kernels or change.operator),
            names.code(group.level),
            names.code(group.family),
            names.code(change.module),
            names.code(group.phase),
            names.code(", ".join(group.lines)),
            number(group.control_count),
            number(group.test_count),
            *(_rounded(us(v)) for v in (group.control_ns, group.test_ns, group.delta)),
            names.code(f"{change.operator}{change.shapes}"),
            *(_rounded(float(part / (comparison.scale * 1000))) for part in group.parts),
            [
                [_member(comparison, m, names) for m in members[:MOST_MEMBERS]]
                for members in (group.control, group.test)
            ],
            [len(group.control), len(group.test)],
        ]
        for change, group in zip(changes, groups, strict=True)
    )
    columns = [
        *("name", "level", "family", "module", "phase", "lines", "count_a", "count_b", "us_a", "us_b", "delta"),
        *("call", "by_count", "by_mean", "members", "all_members"),
    ]
    return _table(
        columns, _fitting(every, names, room), len(groups), [us(max(g.control_ns, g.test_ns)) for g in groups]
    )


def _member(comparison: Comparison, member: Member, names: Names) -> list[Any]:
    codes = names.code(display_name(member.name)), names.code(member.name), names.code(member.op)
    return [*codes, comparison.number(member.count), _rounded(comparison.us(member.ns))]


def _rounded(us: float) -> float:
    """``us`` rounded to the picosecond, to shorten the JSON."""
    return round(us, 6)


def _table(columns: list[str], rows: list[list[Any]], total: int, largest: list[float]) -> dict[str, Any]:
    unit = time_unit(largest)
    return {
        "columns": columns,
        "rows": rows,
        "all": total,
        "unit": {"name": unit.name, "size": unit.size, "decimals": unit.decimals},
    }
