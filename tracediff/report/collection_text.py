"""How the table of a collection is worded, for the terminal and Markdown alike."""

from __future__ import annotations

from tracediff.report.collection import CollectionTable, VariantRow

HEAD = (
    "variant",
    "runs",
    "build s",
    "first s",
    "step ms",
    "IQR",
    "speed-up",
    "95 %",
    "peak MB",
    "kernels",
    "ops",
    "breaks",
    "profiler",
)


def title(found: CollectionTable) -> str:
    """What was collected, how large, where, with which torch."""
    environment = found.environment
    where = environment.get("gpu") or f"CPU, {environment.get('threads', '?')} thread"
    return " · ".join(str(x) for x in (found.name, found.size, where, f"torch {environment.get('torch', '?')}") if x)


def cells_of(row: VariantRow) -> list[str]:
    """The texts of a row, one for each of `HEAD`; empty where a value is unknown."""

    def number(value: float | None, digits: int, scale: float = 1.0) -> str:
        return "" if value is None else f"{value / scale:,.{digits}f}"

    step_digits = 3 if (row.step_us or 0) < 10_000 else 1
    interval = "" if row.speedup_low is None else f"{row.speedup_low:.2f}–{row.speedup_high:.2f}"
    return [
        row.variant,
        str(row.runs),
        number(row.build_s, 2),
        number(row.first_step_s, 2),
        number(row.step_us, step_digits, 1000),
        number(row.iqr_us, step_digits, 1000),
        number(row.speedup, 2),
        interval,
        number(row.peak_bytes, 0, 1e6),
        number(row.kernels, 0),
        number(row.ops, 0),
        "" if row.graph_breaks is None else str(row.graph_breaks),
        "" if row.overhead is None else f"{row.overhead:+.0%}",
    ]
