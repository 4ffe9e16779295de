"""``tracediff table OUT``: the results of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

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
DROPPED_FIRST = ("runs", "IQR", "build s", "ops", "profiler", "peak MB")
"""Columns that a narrow terminal goes without, in this order; --json and --markdown have all."""


def _print(found: CollectionTable) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tracediff.errors import printable

    console = Console()
    console.print(Text(printable(_title(found)), style="bold"))
    rows = [(row, _cells(row)) for row in found.rows]
    cells = [cells for row, cells in rows if not row.failed]
    shown = [i for i in range(len(HEAD)) if i == 0 or any(c[i] for c in cells)]
    for name in DROPPED_FIRST:
        if sum(max(len(HEAD[i]), *(len(c[i]) for c in cells)) + 2 for i in shown if cells) <= console.width:
            break
        shown = [i for i in shown if HEAD[i] != name]
    grid = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for i in shown:
        grid.add_column(HEAD[i], justify="left" if i == 0 else "right", no_wrap=True, overflow="ellipsis")
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

    lines = [
        f"### {escaped(_title(found))}",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'|'.join([':--'] + ['--:'] * (len(HEAD) - 1))}|",
    ]
    for row in found.rows:
        cells = [row.variant, f"failed: {row.failed}", *[""] * (len(HEAD) - 2)] if row.failed else _cells(row)
        lines.append(f"| {' | '.join(escaped(c) for c in cells)} |")
    return "\n".join(lines) + "\n"


def _title(found: CollectionTable) -> str:
    environment = found.environment
    where = environment.get("gpu") or f"CPU, {environment.get('threads', '?')} thread"
    return " · ".join(str(x) for x in (found.name, found.size, where, f"torch {environment.get('torch', '?')}") if x)


def _cells(row: VariantRow) -> list[str]:
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
