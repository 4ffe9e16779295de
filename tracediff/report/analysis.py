"""The report of one set: its contents in order, for the terminal, in Markdown and as a page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff import bounds, thresholds
from tracediff.aggregate.summary import MISSING, Side
from tracediff.analysis import Analysis, Operation, Share
from tracediff.charts import OF_SET
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.errors import printable
from tracediff.formatting import PERCENT, count, percent, time_unit, with_digits
from tracediff.ingest.model.unread import shortened, unread_devices
from tracediff.present.plain_text import Table
from tracediff.present.sections import BY_TITLES, first_notes
from tracediff.present.setting import facts_of, not_recorded
from tracediff.present.tables import report_table
from tracediff.profile.events.step_states import state_label
from tracediff.report.escape import escaped
from tracediff.report.table_terminal import INDENT, line, print_screen, remarks, to_rich
from tracediff.report.to_markdown import joined, list_lines, section_lines
from tracediff.structs import FrozenStruct

if TYPE_CHECKING:
    import pandas as pd


class Head(FrozenStruct):
    """The lines above the tables: the set's name, its runs and steps, its step time, and a caution or nothing."""

    title: str
    facts: str
    step: str
    caution: str = ""


def head(analysis: Analysis) -> Head:
    """The first lines."""
    side = analysis.side
    period, work, busy = map(analysis.us, (analysis.period, analysis.work, analysis.busy))
    unit = with_digits(time_unit([period]), [busy] if side.has_gpu else ())
    step = f"{unit.text(period)} per step"
    if side.has_gpu:
        busy_too = f", GPU busy {unit.text(busy)}" if unit.text(busy) != unit.text(work) else ""
        step += f"; GPU time {unit.text(work)}{busy_too}"
    if analysis.tensor_cores:
        step += f"; {percent(analysis.tensor_cores)} of kernel time on tensor cores"
    return Head(side.label, facts_of(side), step, _caution(side))


def _caution(side: Side) -> str:
    unread = unread_devices(side.notes)
    rest = "" if side.has_gpu else ": this is the host's side only"
    if unread:
        return f"Caution: device events ({shortened(unread)}) are not read{rest}"
    return f"Caution: {not_recorded(side)}{rest}" if side.unrecorded_launches else ""


def health_lines(analysis: Analysis, codes: Collection[str] | None = None) -> list[str]:
    """Health notes, one line each, of very many the first; with ``codes`` only those."""
    notes = [n for n in analysis.side.notes if codes is None or n.code in codes]
    return first_notes([f"{n.message} ({n.code}: {n.count:,})" for n in notes])


def tables_of(analysis: Analysis, top: int | None = None, names: Sequence[str] = ()) -> dict[str, Table]:
    """Key → table, in order; where ``names`` are given only those."""
    top = bounds.TABLE_ROWS if top is None else top
    out = {"states": _states(analysis)}
    ranks = len(analysis.side.ranks)
    of_ranks = f", mean of {ranks} ranks" if ranks > 1 else ""
    for device, title, work in (
        ("gpu", "Work on the GPU", GPU_WORK),
        ("cpu", "Operators and runtime calls on the host, by self time", HOST_WORK),
    ):
        rows = [o for o in analysis.operations if o.category in work]
        if rows:
            out[device] = _operations(analysis, title + of_ranks, rows, top)
    what = "GPU time" if analysis.side.has_gpu else "Operator self time"
    for view in ("family", "phase", "module", "op"):
        out[view] = _shares(analysis, f"{what} {BY_TITLES[view]}{of_ranks}", view, top)
    for table in analysis.tables:
        rows_of_set = [(key, [values]) for key, values in table.per_step()]
        out[table.schema.name] = report_table(table.schema, rows_of_set, [analysis.side.gpu], top)
    return {key: table for key, table in out.items() if not names or key in names}


def _states(analysis: Analysis) -> Table:
    """In the order of a comparison: families of operators the largest first, the smallest of them in one row."""
    states = [s for s in analysis.states if s.ns]
    families = sorted((s for s in states if s.name.startswith("op:")), key=lambda s: -s.ns)
    others = [s for s in states if s not in families]
    small = [s for s in families if s.ns < thresholds.SMALL_FAMILY * analysis.period]
    if len(small) > 1:
        families[-len(small) :] = [Share(f"op:{len(small)} smaller families", sum(s.ns for s in small))]
    times = [(state_label(s.name, analysis.side.has_gpu), s.ns) for s in (*families, *others)]
    times.append(("step", sum(s.ns for s in states)))
    unit = time_unit([analysis.us(analysis.period)])
    rows = [(name, unit.plain(analysis.us(ns)), _part(ns, analysis.period)) for name, ns in times]
    title = "Where the step goes" + (" (slowest rank)" if len(analysis.side.ranks) > 1 else "")
    return Table(title=title, heads=("state", f"time ({unit.name})", "share"), rows=tuple(rows))


def _operations(analysis: Analysis, title: str, rows: Sequence[Operation], top: int) -> Table:
    unit = time_unit([analysis.us(o.total) for o in rows])
    cells = tuple(
        (
            o.name,
            o.family,
            count(analysis.number(o.count)),
            unit.plain(analysis.us(o.self_ns)),
            unit.plain(analysis.us(o.total)),
            _part(o.self_ns, analysis.period),
        )
        for o in rows[:top]
    )
    return Table(
        title=title,
        heads=("name", "family", "count", f"self ({unit.name})", "total", "share of step"),
        texts=2,
        rows=cells,
        more=len(rows) - len(cells),
    )


def _shares(analysis: Analysis, title: str, view: str, top: int) -> Table:
    rows = analysis.views[view]
    unit = time_unit([analysis.us(s.ns) for s in rows])
    cells = tuple(
        (s.name, count(analysis.number(s.count)), unit.plain(analysis.us(s.ns)), _part(s.ns, analysis.work))
        for s in rows[:top]
    )
    return Table(
        title=title,
        heads=(view, "count", f"time ({unit.name})", "share"),
        rows=cells,
        more=len(rows) - len(cells),
    )


def _part(ns: int, total: int) -> str:
    return PERCENT.text(ns / total) if total else "–"


SUMMARY = ("states", "gpu", "cpu", "family")
"""Tables shown where none is asked for."""


def show(
    analysis: Analysis, console: Console, names: Sequence[str] = (), top: int | None = None, more: Sequence[Table] = ()
) -> None:
    """Print ``more`` and the tables ``names`` with notes on those that are missing; by default findings, a summary and
    health notes.
    """
    first = head(analysis)
    parts = [line(first.title, "bold"), line(first.facts, "dim"), line(), line(first.step, "bold", INDENT)]
    parts += [line(first.caution, indent=INDENT)] if first.caution else []
    parts.append(line())
    parts += [] if names else _findings(analysis)
    tables = tables_of(analysis, top if top is not None or names else 10, names or SUMMARY)
    parts += map(to_rich, (*tables.values(), *more))
    parts += remarks("Health of the traces", health_lines(analysis, [MISSING] if names else None))[:-1]
    print_screen(console, Group(*parts))


def _findings(analysis: Analysis) -> list[RenderableType]:
    if not analysis.findings:
        return []
    parts = [line("Findings", "bold")]
    for finding in analysis.findings:
        parts.append(Padding(Text.assemble((finding.code, "bold"), "  ", printable(finding.title)), (0, INDENT)))
        parts.append(line(finding.detail, "dim", 2 * INDENT))
    return [*parts, line()]


def to_markdown(
    analysis: Analysis, names: Sequence[str] = (), top: int | None = None, more: Sequence[Table] = ()
) -> str:
    """The tables ``names``, by default all, and ``more`` as GitHub-flavoured Markdown."""
    first = head(analysis)
    lines = [f"## {escaped(first.title)}", "", f"**{escaped(first.step)}**", "", escaped(first.facts), ""]
    lines += [escaped(first.caution), ""] if first.caution else []
    for table in (*tables_of(analysis, top, names).values(), *more):
        lines += section_lines(table)
    lines += list_lines(
        "### Findings", [f"**{f.code}**: {escaped(f.title)}. {escaped(f.detail)}" for f in analysis.findings]
    )
    lines += list_lines("### Health of the traces", map(escaped, health_lines(analysis)))
    return joined(lines)


def frame_table(title: str, frame: pd.DataFrame, top: int | None = None) -> Table:
    """``frame`` with its columns in order, those of text first; an index that is more than a row number is a column."""
    import pandas as pd

    whole = (
        frame
        if isinstance(frame.index, pd.RangeIndex)
        else frame.rename_axis(index=str(frame.index.name or "name")).reset_index()
    )
    numbers = [c for c in whole.columns if pd.api.types.is_numeric_dtype(whole[c])]
    texts = [c for c in whole.columns if c not in numbers]
    rows = tuple(
        tuple(_text(value) for value in row)
        for row in whole[[*texts, *numbers]].head(top if top is not None else len(whole)).to_numpy(object)
    )
    return Table(
        title=title,
        heads=tuple(str(c) for c in (*texts, *numbers)),
        texts=len(texts),
        rows=rows,
        more=len(whole) - len(rows),
    )


def _text(value: object) -> str:
    """A number with up to three decimals; a dash where there is none."""
    if isinstance(value, float):
        return "–" if value != value else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def to_html(analysis: Analysis, command: str | None = None, more: Sequence[Table] = ()) -> str:
    """The analysis as one page.

    Args:
        command: the command line that creates it, shown at its end.
        more: further tables, such as HTA's.
    """
    from tracediff.report.page.figures import page_charts
    from tracediff.report.page.html import page, set_facts, versions
    from tracediff.report.page.script_data import analysis_flame

    tables = tables_of(analysis, bounds.PAGE_ROWS)
    return page(
        "analysis.html.jinja",
        f"{analysis.side.label} · tracediff",
        page_charts(analysis, OF_SET),
        flame=analysis_flame(analysis),
        head=head(analysis),
        states=tables.pop("states"),
        tables=[(f"table-{key}", table) for key, table in (*tables.items(), *enumerate(more))],
        findings=analysis.findings,
        health_lines=health_lines(analysis),
        command=command,
        origin=[*versions(), *set_facts(analysis.side)],
    )
