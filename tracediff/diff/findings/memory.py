"""Findings of memory: whether a device's peak moved, and what holds more or less of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import part, rose, sizes

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.table_changes import TableDiff, TableRowDiff

PEAK_MOVED = 0.05
"""Part of the larger peak by which the peaks of a device must differ."""
LEAST_MOVED = 1 << 20
"""Bytes by which they must differ."""
MOST_HOLDERS = 5


def peaks(comparison: Comparison) -> list[Finding]:
    """memory-peak, where both sets were loaded with the table ``memory``; what holds the peak is told where they have
    ``memory_holders``, too.
    """
    tables = {of.schema.name: of for of in comparison.tables}
    return memory_peak(tables["memory"], tables.get("memory_holders"), comparison.scale) if "memory" in tables else []


def memory_peak(memory: TableDiff, holders: TableDiff | None, scale: int) -> list[Finding]:
    """Devices whose peak moved; those that one side alone tells of are none. Numbers are over ``scale``."""
    at = [column.name for column in memory.schema.columns].index("reserved")
    found = []
    for row in memory.rows:
        control, test = row.control[0] / scale, row.test[0] / scale
        if not (any(row.control) and any(row.test)) or abs(test - control) < max(
            LEAST_MOVED, PEAK_MOVED * max(control, test)
        ):
            continue
        (device,) = row.key
        reserved = row.control[at] / scale, row.test[at] / scale
        detail = (
            f"Most that is allocated at once in a step, {part(abs(test - control), control)} "
            f"{'more' if test > control else 'less'}"
        )
        detail += f"; reserved {sizes(*reserved)}." if any(reserved) else "."
        moved = _moved(holders.rows, device, scale) if holders else ()
        found.append(
            Finding(
                kinds.MEMORY_PEAK,
                f"peak memory of {device} {rose(control, test)}: {sizes(control, test)}",
                detail,
                evidence=moved,
            )
        )
    return found


def _moved(rows: tuple[TableRowDiff, ...], device: str, scale: int) -> tuple[Evidence, ...]:
    """What holds most more or less at the peak, with its blocks."""
    mine = [row for row in rows if row.key[0] == device and row.control[0] != row.test[0]]
    mine.sort(key=lambda row: (-abs(row.test[0] - row.control[0]), row.key))
    return tuple(_holder(row, scale) for row in mine[:MOST_HOLDERS])


def _holder(row: TableRowDiff, scale: int) -> Evidence:
    _, phase, operator, module = row.key
    place = ", ".join(text for text in (operator, module, phase) if text)
    held = f"{place}: {sizes(row.control[0] / scale, row.test[0] / scale)}"
    blocks = (row.control[1] / scale, row.test[1] / scale) if row.control[1] or row.test[1] else (None, None)
    return Evidence(held, *blocks)


RULES = (peaks,)
