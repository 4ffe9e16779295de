"""Tables in the formats of reports: rich for terminals, Markdown, HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tracediff.errors import printable
from tracediff.report.escape import escaped
from tracediff.report.table import Table

LONGEST = 300
"""Characters of a name."""
LEAST_NAME, GAP, INDENT = 16, 2, 2
"""In a terminal: columns of a name at least, between columns, before the table."""


@dataclass(frozen=True)
class Fitted:
    """A table as wide as the terminal: names are cut where they must be, numbers never; columns for which there is no room are left out and told."""

    table: Table

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, for rich."""
        table = self.table
        room = options.max_width - INDENT
        widths = [max(len(head), *(len(row[k]) for row in table.rows)) for k, head in enumerate(table.heads)]
        numbers = widths[table.texts :]
        kept = len(numbers)
        least = sum(min(w, LEAST_NAME) + GAP for w in widths[: table.texts])
        while kept > 1 and least + sum(n + GAP for n in numbers[:kept]) > room:
            kept -= 1
        names = _shared(widths[: table.texts], room - sum(n + GAP for n in numbers[:kept]) - GAP * table.texts)
        grid = RichTable(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        for k, width in enumerate([*names, *numbers[:kept]]):
            grid.add_column(table.heads[k], width=width, no_wrap=True, overflow="ellipsis", justify="left" if k < table.texts else "right")
        for row in table.rows:
            grid.add_row(*(Text(printable(cell[:LONGEST])) for cell in row[: table.texts + kept]))
        yield Padding(grid, (0, 0, 0, INDENT))
        left = [*([f"{table.more:,} more (--top)"] if table.more else []), *([_columns(table.heads[table.texts + kept :])] if kept < len(numbers) else [])]
        if left:
            yield Padding(Text("; ".join(left), style="dim"), (0, INDENT))


def _shared(wanted: list[int], room: int) -> list[int]:
    """Widths of text columns: what each wants, and where that is too much the longest give way."""
    widths = list(wanted)
    while sum(widths) > max(room, sum(min(w, LEAST_NAME) for w in wanted)) and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _columns(heads: tuple[str, ...]) -> str:
    return f"no room for {', '.join(heads)}: widen the terminal, or --markdown"


def to_rich(table: Table) -> RenderableType:
    """For a terminal of any width."""
    if not table.rows:
        return Group(Text(f"{table.title}: nothing recorded", style="bold"), Text())
    return Group(Text(table.title, style="bold"), Fitted(table), Text())


def to_markdown(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    if not table.rows:
        return []
    lines = [f"### {escaped(table.title)}", "", *([escaped(table.about), ""] if table.about else [])]
    lines += [f"| {' | '.join(table.heads)} |", f"|{'|'.join([':--'] * table.texts + ['--:'] * (len(table.heads) - table.texts))}|"]
    lines += [f"| {' | '.join(escaped(cell[:LONGEST]) for cell in row)} |" for row in table.rows]
    return [*lines, "", *([f"{table.more:,} more are not shown.", ""] if table.more else [])]


def to_html(table: Table, key: str, titled: bool = True) -> str:
    """A section's content; ``key`` is its id, ``titled`` says whether it has a heading of its own."""
    heading = f'<h3 id="{key}">{escape(table.title)}</h3>' if titled else ""
    if not table.rows:
        return f'{heading}<p class="missing">Nothing of this was recorded.</p>'
    head = "".join(f"<th scope='col'{' class=name' if k < table.texts else ''}>{escape(h)}</th>" for k, h in enumerate(table.heads))
    body = "".join(f"<tr>{_cells(row, table.texts)}</tr>" for row in table.rows)
    more = f"<p class='facts'>{table.more:,} more rows are not shown.</p>" if table.more else ""
    about = f"<p class='facts'>{escape(printable(table.about))}</p>" if table.about else ""
    frame = f"<div class='scroll'><table class='sums wide'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    return f"{heading}{about}{frame}{more}"


def _cells(row: tuple[str, ...], texts: int) -> str:
    names = "".join(f"<th scope='row'><bdi>{escape(printable(cell[:LONGEST]))}</bdi></th>" for cell in row[:texts])
    return names + "".join(f"<td>{escape(cell)}</td>" for cell in row[texts:])
