"""Titles and cells of a collection's table, the same for terminal and Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tracediff.formatting import byte_unit, count, plural, signed_percent, time_unit
from tracediff.report.collection import CollectionTable, VariantRow
from tracediff.report.table import ColumnFormat, amount_format

HEAD = (
    "variant",
    "runs",
    "build",
    "first",
    "step",
    "IQR",
    "speed-up",
    "95 %",
    "peak",
    "kernels",
    "ops",
    "breaks",
    "profiler",
)


def title(collection: CollectionTable) -> str:
    """What was collected, how large, where, with which torch."""
    environment = collection.environment
    threads = environment.get("threads")
    where = environment.get("gpu") or ("CPU" if threads is None else f"CPU, {plural(threads, 'thread')}")
    return " · ".join(
        str(x) for x in (collection.name, collection.size, where, f"torch {environment.get('torch', '?')}") if x
    )


def formats_of(rows: Sequence[VariantRow]) -> dict[str, ColumnFormat]:
    """Column of times or bytes → its format."""
    return {
        "build": amount_format(time_unit, [1e6 * (row.build_s or 0) for row in rows]),
        "first": amount_format(time_unit, [1e6 * (row.first_step_s or 0) for row in rows]),
        "step": amount_format(time_unit, [row.step_us or 0 for row in rows]),
        "IQR": amount_format(time_unit, [row.iqr_us or 0 for row in rows]),
        "peak": amount_format(byte_unit, [row.peak_bytes or 0 for row in rows]),
    }


def heads(formats: dict[str, ColumnFormat]) -> list[str]:
    """`HEAD` with units."""
    return [f"{name} {formats[name].unit}".rstrip() if name in formats else name for name in HEAD]


def cells_of(row: VariantRow, formats: dict[str, ColumnFormat]) -> list[str]:
    """The texts of a row, one for each of `HEAD`; empty where a value is unknown."""

    def text(column: str, value: float | None, factor: float = 1.0) -> str:
        return "" if value is None else formats[column].text(factor * value)

    interval = "" if row.speedup_low is None else f"{row.speedup_low:.2f}–{row.speedup_high:.2f}"
    return [
        row.variant,
        str(row.runs),
        text("build", row.build_s, 1e6),
        text("first", row.first_step_s, 1e6),
        text("step", row.step_us),
        text("IQR", row.iqr_us),
        "" if row.speedup is None else f"{row.speedup:.2f}",
        interval,
        text("peak", row.peak_bytes),
        *("" if number is None else count(number) for number in (row.kernels, row.ops, row.graph_breaks)),
        "" if row.overhead is None else signed_percent(row.overhead),
    ]
