"""Tables in HTML."""

from __future__ import annotations

from html import escape

from tracediff.errors import printable
from tracediff.report.table import LONGEST, Table


def to_html(table: Table, key: str, titled: bool = True) -> str:
    """A section's content; ``key`` is its id, ``titled`` says whether it has a heading of its own."""
    heading = f'<h3 id="{key}">{escape(table.title)}</h3>' if titled else ""
    if not table.rows:
        return f'{heading}<p class="missing">Nothing of this was recorded.</p>'
    head = "".join(
        f"<th scope='col'{' class=name' if k < table.texts else ''}>{escape(h)}</th>" for k, h in enumerate(table.heads)
    )
    body = "".join(f"<tr>{_cells(row, table.texts)}</tr>" for row in table.rows)
    more = f"<p class='facts'>{table.more:,} more rows are not shown.</p>" if table.more else ""
    about = f"<p class='facts'>{escape(printable(table.about))}</p>" if table.about else ""
    frame = (
        f"<div class='scroll'><table class='sums wide'><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"</table></div>"
    )
    return f"{heading}{about}{frame}{more}"


def _cells(row: tuple[str, ...], texts: int) -> str:
    names = "".join(f"<th scope='row'><bdi>{escape(printable(cell[:LONGEST]))}</bdi></th>" for cell in row[:texts])
    return names + "".join(f"<td>{escape(cell)}</td>" for cell in row[texts:])
