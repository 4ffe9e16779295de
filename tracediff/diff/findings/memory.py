"""Findings of memory: whether a device's peak changed, and which operators and modules hold more or less of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import part, rose, sizes

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.table_changes import TableDiff, TableRowDiff

LEAST_RELATIVE = 0.05
"""Smallest change of a peak that is reported, as a fraction of the larger one."""
LEAST_BYTES = 1 << 20
"""Smallest change of a peak that is reported, in bytes."""
MOST_HOLDERS = 5


def peaks(comparison: Comparison) -> list[Finding]:
    """memory-peak, if both sets have the table ``memory``; with the table ``memory_holders``, the evidence names what
    holds the peak.
    """
    tables = {table.schema.name: table for table in comparison.tables}
    return memory_peak(tables["memory"], tables.get("memory_holders"), comparison.scale) if "memory" in tables else []


def memory_peak(memory: TableDiff, holders: TableDiff | None, scale: int) -> list[Finding]:
    """One finding for each device on both sides whose peak changed; numbers of the tables are over ``scale``."""
    reserved_column = [column.name for column in memory.schema.columns].index("reserved")
    found = []
    for row in memory.rows:
        control, test = row.control[0] / scale, row.test[0] / scale
        if not (any(row.control) and any(row.test)) or abs(test - control) < max(
            LEAST_BYTES, LEAST_RELATIVE * max(control, test)
        ):
            continue
        (device,) = row.key
        reserved = row.control[reserved_column] / scale, row.test[reserved_column] / scale
        detail = (
            f"The peak of allocated memory is {part(abs(test - control), control)} "
            f"{'higher' if test > control else 'lower'}"
        )
        detail += f"; reserved memory: {collapsed(sizes(*reserved))}." if any(reserved) else "."
        detail += " Read which operators and modules hold the peak."
        found.append(
            Finding(
                kinds.MEMORY_PEAK,
                f"peak memory of {device} {rose(control, test)}: {sizes(control, test)}",
                detail,
                evidence=_changed_holders(holders.rows, device, scale) if holders else (),
            )
        )
    return found


def _changed_holders(rows: tuple[TableRowDiff, ...], device: str, scale: int) -> tuple[Evidence, ...]:
    """The operators and modules whose memory at the peak changed most, with their numbers of blocks."""
    changed = [row for row in rows if row.key[0] == device and row.control[0] != row.test[0]]
    changed.sort(key=lambda row: (-abs(row.test[0] - row.control[0]), row.key))
    return tuple(_holder(row, scale) for row in changed[:MOST_HOLDERS])


def _holder(row: TableRowDiff, scale: int) -> Evidence:
    _, phase, operator, module = row.key
    place = ", ".join(text for text in (operator, module, phase) if text)
    held = f"{place}: {sizes(row.control[0] / scale, row.test[0] / scale)}"
    blocks = (row.control[1] / scale, row.test[1] / scale) if row.control[1] or row.test[1] else (None, None)
    return Evidence(held, *blocks)


RULES = (peaks,)
