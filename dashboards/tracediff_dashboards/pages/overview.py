"""The first page: verdict, the first answers, why the step changed, where the step went, largest changes."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from tracediff import charts
from tracediff.errors import printable
from tracediff.formatting import plural
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table
from tracediff_dashboards.pages import components, rows
from tracediff_dashboards.pages.answers import answers
from tracediff_dashboards.reading.page_context import PageContext

TOP = 10


def page(context: PageContext) -> list[Any]:
    """The components: verdict, explanation, step, and the largest changes of the filtered work."""
    comparison = context.comparison
    if context.whole.was_refused:
        again = html.P(dcc.Link("Compare anyway", href=context.address("", forced=True)))
        return [
            *_answer(context),
            again,
            components.figure(charts.timeline(comparison, theme=context.theme), "both-steps"),
        ]
    return [
        *_answer(context),
        answers(context),
        html.H2("Why"),
        *_explanation(context),
        html.H2("Where the step went"),
        components.chart(comparison, "step_waterfall", context.theme),
        components.step_table(comparison),
        html.H2("Largest changes"),
        *_changes(context),
    ]


def _answer(context: PageContext) -> list[Any]:
    comparison = context.comparison
    c, t = comparison.control, comparison.test
    whole = answer_of(context.whole, remedy="")
    answer = [
        html.H1([components.name(c.label), " → ", components.name(t.label)]),
        html.P(printable(whole.verdict), className=f"verdict {context.whole.verdict.result}"),
        *(html.P(printable(sentence)) for sentence in (*whole.below, whole.interval) if sentence),
        html.P(printable(whole.setting), className="facts"),
    ]
    cautions = sections.caution_lines(comparison)
    if cautions:
        summary = html.Summary(
            [
                html.Strong(sections.doubt(comparison)),
                f": {plural(len(cautions), 'difference')} that may make the comparison misleading",
            ]
        )
        answer.append(
            html.Details([summary, components.items(cautions)], className="caution", open=context.whole.was_refused)
        )
    return answer


def _explanation(context: PageContext) -> list[Any]:
    """A table that adds up to the step's change."""
    if context.comparison.explanation is None:
        return []
    found = explanation_table(context.comparison.explanation)
    cells = [
        [
            _linked(context, line.find, line.label),
            line.times,
            html.Span(line.step, className="slower" if line.delta_us > 0 else "faster"),
            printable(line.because),
        ]
        for line in (*found.lines, found.total)
    ]
    caption = f"Why the {context.comparison.explanation.period} changed"
    table = html.Div(components.table([*found.heads, ""], cells, caption, kind="sums why"), className="closing")
    return [table]


def _linked(context: PageContext, name: str, label: str = "") -> Any:
    """``label`` or the name itself, as a link to the name's row if it has one."""
    found = rows.row_named(context.comparison, name) if name else None
    shown = components.name(label or name)
    if found is None:
        return shown
    tab, row = found
    return dcc.Link(shown, href=context.address("changes", tab=tab, row=row))


def _changes(context: PageContext) -> list[Any]:
    tables = []
    for shown in sections.changes(context.comparison, context.view.filters.device, "change", TOP):
        if shown.rows:
            lines = sorted(shown.rows, key=lambda line: -line.delta_us)
            names = [_linked(context, line.name) for line in lines]
            tables.append(components.changes(lines, shown.title, names=names))
    if not tables:
        return [
            html.P(
                "The filters leave no work: clear a filter above." if context.is_filtered else "Nothing changed.",
                className="missing",
            )
        ]
    matched = [html.P(sections.matched_line(context.comparison), className="facts")]
    return [
        *tables,
        html.P(dcc.Link("All changes", href=context.address("changes"))),
        *matched,
        components.chart(context.comparison, "families", context.theme),
    ]
