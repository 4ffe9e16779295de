"""``tracediff table OUT``: the results of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracediff.formatting import Unit, byte_unit, count, signed_percent, time_unit

if TYPE_CHECKING:
    from tracediff.report.collection import CollectionTable, VariantRow


@click.command()
@click.argument("out", metavar="OUT")
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON (- is standard output).")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write the table as Markdown (- is standard output).")
def table(out: str, json_file: str | None, markdown_file: str | None) -> None:
    """The table of a collection: build time, step time, speed-up, memory, kernels, graph breaks.

    \b
    Example:
      tracediff table out/
    """
    from tracediff.report.collection import collection_table
    from tracediff.write import write_text

    found = collection_table(Path(out))
    if json_file:
        write_text(json_file, found.to_json())
    if markdown_file:
        write_text(markdown_file, markdown(found))
    if "-" not in (json_file, markdown_file):
        _print(found)


def show(out: str) -> None:
    """Print the table of the collection in ``out``."""
    from tracediff.report.collection import collection_table

    _print(collection_table(Path(out)))


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
DROPPED_FIRST = ("runs", "IQR", "build", "ops", "profiler", "peak")
"""Columns that a narrow terminal goes without, in this order; --json and --markdown have all."""


def _print(found: CollectionTable) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tracediff.errors import printable

    console = Console()
    console.print(Text(printable(_title(found)), style="bold"))
    units = _units(found.rows)
    heads = _heads(units)
    cells = [_cells(row, units) for row in found.rows if not row.failed]
    shown = [i for i in range(len(HEAD)) if i == 0 or any(c[i] for c in cells)]
    for name in DROPPED_FIRST:
        if sum(max(len(heads[i]), *(len(c[i]) for c in cells)) + 2 for i in shown if cells) <= console.width:
            break
        shown = [i for i in shown if HEAD[i] != name]
    grid = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for i in shown:
        grid.add_column(heads[i], justify="left" if i == 0 else "right", no_wrap=True, overflow="ellipsis")
    for of in cells:
        grid.add_row(*(Text(printable(of[i])) for i in shown))
    if cells:
        console.print(grid, highlight=False)
    for row in found.rows:
        if row.failed:
            console.print(Text(printable(f"{row.variant} failed: {row.failed}")))
        if row.contended:
            console.print(
                Text(f"{row.variant}: other processes disturbed {row.contended} of {row.runs} runs"), style="dim"
            )


def markdown(found: CollectionTable) -> str:
    """The table as Markdown."""
    from tracediff.report.escape import escaped

    units = _units(found.rows)
    lines = [
        f"### {escaped(_title(found))}",
        "",
        f"| {' | '.join(_heads(units))} |",
        f"|{'|'.join([':--'] + ['--:'] * (len(HEAD) - 1))}|",
    ]
    for row in found.rows:
        cells = [row.variant, f"failed: {row.failed}", *[""] * (len(HEAD) - 2)] if row.failed else _cells(row, units)
        lines.append(f"| {' | '.join(escaped(c) for c in cells)} |")
    return "\n".join(lines) + "\n"


def _title(found: CollectionTable) -> str:
    environment = found.environment
    where = environment.get("gpu") or f"CPU, {environment.get('threads', '?')} thread"
    return " · ".join(str(x) for x in (found.name, found.size, where, f"torch {environment.get('torch', '?')}") if x)


def _units(rows: Sequence[VariantRow]) -> dict[str, Unit]:
    """Column → its unit; IQR has that of the steps."""
    return {
        "build": time_unit(1e6 * (row.build_s or 0) for row in rows),
        "first": time_unit(1e6 * (row.first_step_s or 0) for row in rows),
        "step": time_unit(row.step_us or 0 for row in rows),
        "peak": byte_unit(row.peak_bytes or 0 for row in rows),
    }


def _heads(units: dict[str, Unit]) -> list[str]:
    return [f"{name} {units[name].name}" if name in units else name for name in HEAD]


def _cells(row: VariantRow, units: dict[str, Unit]) -> list[str]:
    def text(unit: str, value: float | None, factor: float = 1.0) -> str:
        return "" if value is None else units[unit].plain(factor * value)

    interval = "" if row.speedup_low is None else f"{row.speedup_low:.2f}–{row.speedup_high:.2f}"
    return [
        row.variant,
        str(row.runs),
        text("build", row.build_s, 1e6),
        text("first", row.first_step_s, 1e6),
        text("step", row.step_us),
        text("step", row.iqr_us),
        "" if row.speedup is None else f"{row.speedup:.2f}",
        interval,
        text("peak", row.peak_bytes),
        *("" if number is None else count(number) for number in (row.kernels, row.ops, row.graph_breaks)),
        "" if row.overhead is None else signed_percent(row.overhead),
    ]
