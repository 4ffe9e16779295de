"""Titles and cells of a collection's table, the same for terminal and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracediff.collected.fx_nodes import FxNode
from tracediff.collected.variants import CollectionTable, VariantRow
from tracediff.formatting import Unit, byte_unit, count, percent, plural, signed_percent, time_unit
from tracediff.present.tables import ColumnFormat, amount_format

SHOWN = 10
"""FX nodes of a variant."""
HEAD = (
    "variant",
    "runs",
    "build",
    "first",
    "warm",
    "step",
    "IQR",
    "items/s",
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
    """Column of times or bytes → its format; without those that no row has."""
    amounts: dict[str, tuple[Callable[[Iterable[float]], Unit], Sequence[float | None], float]] = {
        "build": (time_unit, [row.build_s for row in rows], 1e6),
        "first": (time_unit, [row.first_step_s for row in rows], 1e6),
        "warm": (time_unit, [row.warm_first_step_s for row in rows], 1e6),
        "step": (time_unit, [row.step_us for row in rows], 1.0),
        "IQR": (time_unit, [row.iqr_us for row in rows], 1.0),
        "peak": (byte_unit, [row.peak_bytes for row in rows], 1.0),
    }
    formats = {}
    for name, (unit_of, values, factor) in amounts.items():
        if known := [factor * value for value in values if value is not None]:
            formats[name] = amount_format(unit_of, known)
    return formats


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
        text("warm", row.warm_first_step_s, 1e6),
        text("step", row.step_us),
        text("IQR", row.iqr_us),
        "" if row.items_per_s is None else count(row.items_per_s),
        "" if row.speedup is None else f"{row.speedup:.2f}",
        interval,
        text("peak", row.peak_bytes),
        *("" if number is None else count(number) for number in (row.kernels, row.ops, row.graph_breaks)),
        "" if row.overhead is None else signed_percent(row.overhead),
    ]


def notes_of(row: VariantRow) -> list[str]:
    """What is to be known of a row besides its cells."""
    notes = []
    if row.failed:
        reason = row.failed.replace(f"--variant {row.variant}: ", "", 1)
        notes.append(f"{row.variant} failed: {reason}")
    if row.contended:
        notes.append(f"{row.variant}: other processes disturbed {row.contended} of {row.runs} runs")
    if row.clocks_error:
        notes.append(f"{row.variant}: whether the GPU was throttled is unknown: {row.clocks_error}")
    if row.not_finite:
        notes.append(f"{row.variant}: the result or the gradients of the {row.not_finite} step are not finite")
    if row.different:
        notes.append(f"{row.variant} does not do the same work: {row.different}")
    if row.lost_format:
        lost = ", ".join(f"{name} ({count(times)})" for name, times in row.lost_format.items())
        notes.append(f"{row.variant}: the channels_last format is lost at {lost} per step")
    return notes


def fx_lines(variant: str, nodes: Sequence[FxNode]) -> list[str]:
    """The first `SHOWN` nodes in aligned columns; nothing without nodes."""
    if not nodes:
        return []
    unit = time_unit([node.us for node in nodes])
    rows = [(n.node, n.calls, unit.text(n.us), percent(n.share)) for n in nodes[:SHOWN]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left_out = [f"… and {count(len(nodes) - SHOWN)} more"] if len(nodes) > SHOWN else []
    return [
        f"FX nodes of {variant}, per step",
        *(
            f"  {node:{widths[0]}}  {called:{widths[1]}}  {time:>{widths[2]}}  {share:>{widths[3]}}"
            for node, called, time, share in rows
        ),
        *left_out,
    ]
