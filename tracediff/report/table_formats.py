"""Tables in the formats of reports: rich for terminals, Markdown, HTML."""

from __future__ import annotations

from html import escape

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tracediff.errors import printable
from tracediff.report.table import Table
from tracediff.report.to_markdown import escaped

LONGEST = 300
"""Characters of a name."""


def to_rich(table: Table) -> RenderableType:
    """For a terminal: names give way, numbers do not."""
    if not table.rows:
        return Group(Text(f"{table.title}: nothing recorded", style="bold"), Text())
    grid = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for k, head in enumerate(table.heads):
        if k < table.texts:
            grid.add_column(head, no_wrap=True, overflow="ellipsis", ratio=3 if k == 0 else 2)
        else:
            grid.add_column(head, justify="right", overflow="fold", min_width=max(len(row[k]) for row in table.rows) if k < table.texts + 3 else None)
    for row in table.rows:
        grid.add_row(*(Text(printable(cell[:LONGEST])) for cell in row))
    more = [Padding(Text(f"{table.more:,} more (--top)", style="dim"), (0, 2))] if table.more else []
    return Group(Text(table.title, style="bold"), Padding(grid, (0, 0, 0, 2)), *more, Text())


def to_markdown(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    if not table.rows:
        return []
    lines = [f"### {escaped(table.title)}", "", *([escaped(table.about), ""] if table.about else [])]
    lines += [f"| {' | '.join(table.heads)} |", f"|{'|'.join([':--'] * table.texts + ['--:'] * (len(table.heads) - table.texts))}|"]
    lines += [f"| {' | '.join(escaped(cell[:LONGEST]) for cell in row)} |" for row in table.rows]
    return [*lines, "", *([f"{table.more:,} more are not shown.", ""] if table.more else [])]


def to_html(table: Table, key: str) -> str:
    """A section's content; ``key`` is its id."""
    if not table.rows:
        return f'<h3 id="{key}">{escape(table.title)}</h3><p class="missing">Nothing of this was recorded.</p>'
    head = "".join(f"<th scope='col'>{escape(h)}</th>" for h in table.heads)
    body = "".join(f"<tr>{_cells(row, table.texts)}</tr>" for row in table.rows)
    more = f"<p class='facts'>{table.more:,} more rows are not shown.</p>" if table.more else ""
    about = f"<p class='facts'>{escape(printable(table.about))}</p>" if table.about else ""
    frame = f"<div class='scroll'><table class='sums wide'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    return f"<h3 id='{key}'>{escape(table.title)}</h3>{about}{frame}{more}"


def _cells(row: tuple[str, ...], texts: int) -> str:
    names = "".join(f"<th scope='row'><bdi>{escape(printable(cell[:LONGEST]))}</bdi></th>" for cell in row[:texts])
    return names + "".join(f"<td>{escape(cell)}</td>" for cell in row[texts:])
