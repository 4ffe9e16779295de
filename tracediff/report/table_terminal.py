"""Tables in a terminal, and how a screen is printed."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tracediff.environment import LARGEST_SIZE
from tracediff.errors import printable
from tracediff.present.plain_table import LONGEST, Table, no_rows_shown
from tracediff.present.shorten import shortened
from tracediff.report.escape import log_line

LEAST_NAME, GAP, INDENT = 16, 2, 2
"""Characters: minimum of a name, gap between columns, indentation."""
WITHOUT_VALUE = ("", "–", "unknown")
"""Texts of a cell whose value is unknown."""


@dataclass(frozen=True)
class Fitted:
    """A table as wide as the terminal: names are cut where they must be, numbers never; columns without a value are
    left out, columns that do not fit are omitted with a note.
    """

    table: Table

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, for rich."""
        table = whole = _with_values(self.table)
        room = options.max_width - INDENT
        while table.texts > 1 and not _fits(table, room):
            table = _without_last_text(table)
        widths = _widths(table)
        numbers = widths[table.texts :]
        kept = len(numbers)
        least = sum(min(w, LEAST_NAME) + GAP for w in widths[: table.texts])
        while kept > table.together and least + sum(n + GAP for n in numbers[:kept]) > room:
            kept -= 1
        names = _shared(widths[: table.texts], room - sum(n + GAP for n in numbers[:kept]) - GAP * table.texts)
        columns = [shortened([row[k][:LONGEST] for row in table.rows], width) for k, width in enumerate(names)]
        hidden = (*whole.heads[table.texts : whole.texts], *table.heads[table.texts + kept :])
        grid = RichTable(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        for k, width in enumerate([*names, *numbers[:kept]]):
            grid.add_column(
                table.heads[k],
                width=width,
                no_wrap=True,
                overflow="ellipsis",
                justify="left" if k < table.texts else "right",
            )
        for k, row in enumerate(table.rows):
            cells = [*(column[k] for column in columns), *row[table.texts : table.texts + kept]]
            grid.add_row(*(Text(printable(cell)) for cell in cells))
        yield Padding(grid, (0, 0, 0, INDENT))
        left = [
            *([f"{table.more:,} more (--top)"] if table.more else []),
            *([_columns(hidden)] if hidden else []),
        ]
        if left:
            yield Padding(Text("; ".join(left), style="dim"), (0, INDENT))


def _with_values(table: Table) -> Table:
    """``table`` without the columns in which no row has a value; its first name and first number stay."""
    kept = [
        k
        for k in range(len(table.heads))
        if k in (0, table.texts) or any(row[k] not in WITHOUT_VALUE for row in table.rows)
    ]
    return replace(
        table,
        heads=tuple(table.heads[k] for k in kept),
        texts=sum(k < table.texts for k in kept),
        rows=tuple(tuple(row[k] for k in kept) for row in table.rows),
    )


def _widths(table: Table) -> list[int]:
    """Characters that each column wants."""
    return [max(len(head), *(len(row[k]) for row in table.rows)) for k, head in enumerate(table.heads)]


def _fits(table: Table, room: int) -> bool:
    """Whether the first numbers have room beside names of the least width."""
    widths = _widths(table)
    texts, numbers = widths[: table.texts], widths[table.texts :][: table.together]
    return sum(min(w, LEAST_NAME) + GAP for w in texts) + sum(n + GAP for n in numbers) <= room


def _without_last_text(table: Table) -> Table:
    """``table`` without the last of its names, which says least."""
    last = table.texts - 1
    rows = tuple((*row[:last], *row[last + 1 :]) for row in table.rows)
    return replace(table, heads=(*table.heads[:last], *table.heads[last + 1 :]), texts=last, rows=rows)


def _shared(wanted: list[int], room: int) -> list[int]:
    """Widths of text columns: what each wants, and where that is too much the longest give way."""
    widths = list(wanted)
    while sum(widths) > max(room, sum(min(w, LEAST_NAME) for w in wanted)) and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _columns(heads: tuple[str, ...]) -> str:
    return f"columns omitted: {', '.join(heads)} (widen the terminal or use --markdown)"


def to_rich(table: Table) -> RenderableType:
    """For a terminal of any width."""
    if not table.rows:
        return Group(Text(f"{table.title}: {no_rows_shown(table.more, 'nothing recorded')}", style="bold"), Text())
    return Group(Text(table.title, style="bold"), Fitted(table), Text())


def screen_console() -> Console:
    """The standard output; in a pipe without a width of its own nothing is cut or wrapped."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=LARGEST_SIZE if piped else None, emoji=False)


def print_screen(console: Console, screen: RenderableType) -> None:
    """Print ``screen`` without the blanks that rich puts at the ends of lines, and without workflow commands: names are
    untrusted, and any may come to stand at the start of a line.
    """
    with console.capture() as captured:
        console.print(screen, highlight=False, soft_wrap=False)
    console.file.write("\n".join(log_line(line.rstrip()) for line in captured.get().split("\n")))
    console.file.flush()
