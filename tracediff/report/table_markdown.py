"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracediff.formatting import Unit, time_unit
from tracediff.present.plain_table import LONGEST, Table, no_rows_shown
from tracediff.present.sections import Row
from tracediff.report.escape import escaped


def to_markdown(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    heading = [f"### {escaped(table.title)}", ""]
    if not table.rows:
        return [*heading, f"{no_rows_shown(table.more, '')}.", ""] if table.more else []
    lines = [*heading, *([escaped(table.about), ""] if table.about else [])]
    aligned = "l" * table.texts + "r" * (len(table.heads) - table.texts)
    lines += table_lines(table.heads, aligned, [[escaped(cell[:LONGEST]) for cell in row] for row in table.rows])
    return [*lines, "", *([f"{table.more:,} more rows are not shown.", ""] if table.more else [])]


def table_lines(heads: Sequence[str], aligned: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that are Markdown; ``aligned`` has l or r for each column."""
    sides = "|".join(":--" if side == "l" else "--:" for side in aligned)
    head, *lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return [head, f"|{sides}|", *lines]


def time_heads(unit: Unit) -> list[str]:
    """The heads of the columns of times."""
    return [f"{name} ({unit.name})" for name in ("control", "test", "change")]


def rows_table(title: str, rows: Sequence[Row], unit: Unit | None = None) -> list[str]:
    """``rows`` below ``title``, without one in the unit of their largest time."""
    unit = unit or time_unit([us for row in rows for us in (row.control_us, row.test_us)])
    return table_lines(
        [title, "count", *time_heads(unit)], "lrrrr", [[escaped(row.name), *row.cells(unit)] for row in rows]
    )
