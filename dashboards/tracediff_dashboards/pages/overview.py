"""The first page: verdict, the first answers, findings, where the step went, largest changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import dcc, html

from tracediff import charts
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.errors import printable
from tracediff.formatting import plural, signed_time
from tracediff.report import sections
from tracediff.report.page.html_sections import interval
from tracediff.report.text import asides, coverage_line, evidence_figures, facts, headline
from tracediff_dashboards import components, rows
from tracediff_dashboards.answers import answers
from tracediff_dashboards.page_context import PageContext
from tracediff_dashboards.rows import TITLES

TOP = 10


def page(context: PageContext) -> list[Any]:
    """The components: verdict, step, findings, and the largest changes of the filtered work."""
    comparison = context.comparison
    if context.whole.was_refused:
        again = html.P(dcc.Link("Compare anyway", href=f"/{replace(context.view, forced=True).query()}"))
        return [
            *_answer(context),
            again,
            components.figure(charts.timeline(comparison, theme=context.theme), "both-steps"),
        ]
    return [
        *_answer(context),
        answers(context),
        html.H2("Findings"),
        *_findings(context),
        html.H2("Where the step went"),
        components.chart(comparison, "step_waterfall", context.theme),
        components.step_table(comparison),
        html.H2("Largest changes"),
        *_changes(context),
    ]


def _answer(context: PageContext) -> list[Any]:
    comparison = context.comparison
    c, t = comparison.control, comparison.test
    kind = "refused" if context.whole.was_refused else comparison.verdict.result
    answer = [
        html.H1([components.name(c.label), " → ", components.name(t.label)]),
        html.P(printable(headline(context.whole, remedy="")), className=f"verdict {kind}"),
        *(html.P(sentence) for sentence in (interval(comparison), *asides(comparison)) if sentence),
        html.P(printable(facts(comparison)), className="facts"),
    ]
    cautions = sections.caution_lines(comparison)
    if cautions:
        title = "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
        summary = html.Summary(
            [
                html.Strong(title),
                f": {plural(len(cautions), 'difference')} that may make the comparison misleading",
            ]
        )
        answer.append(
            html.Details([summary, components.items(cautions)], className="caution", open=context.whole.was_refused)
        )
    return answer


def _findings(context: PageContext) -> list[Any]:
    if not context.comparison.findings:
        return [html.P("No cause was found; see the largest changes below.")]
    together = coverage_line(context.comparison)
    found = [_finding(context, finding) for finding in context.comparison.findings]
    return [*found, html.P(printable(together), className="facts")] if together else found


def _finding(context: PageContext, finding: Finding) -> Any:
    change: list[Any] = []
    if finding.delta_us:
        change = [
            " ",
            html.Span(signed_time(finding.delta_us), className="slower" if finding.delta_us > 0 else "faster"),
        ]
    kind = finding.kind
    is_table = kind.page == "changes"
    query = (replace(context.view, tab=kind.tab, row="") if is_table else context.view).query()
    target = (
        f"the {kind.page}" if not is_table else "the matched work" if kind.tab == "groups" else TITLES[kind.tab].lower()
    )
    link = dcc.Link(f"See {target}", href=f"/{kind.page}{query}")
    body = [html.H3([components.name(finding.title), *change]), html.P(printable(finding.detail))]
    if finding.evidence:
        body.append(html.Ul([html.Li(_evidence(context, evidence)) for evidence in finding.evidence]))
    if finding.parts:
        parts = [html.Li(components.name(f"{part.code}: {part.title}")) for part in finding.parts]
        body += [html.P("Part of this:"), html.Ul(parts)]
    return html.Article(
        [*body, html.P([html.Code(finding.code), " · ", link], className="facts")],
        className="finding",
        **components.attributes(data_code=finding.code),
    )


def _evidence(context: PageContext, evidence: Evidence) -> list[Any]:
    """The name, as a link to its row if it has one, and its figures."""
    figures, named = evidence_figures(evidence), _linked(context, evidence.name, evidence.label)
    return [named, f": {figures}"] if figures else [named]


def _linked(context: PageContext, name: str, label: str = "") -> Any:
    """``label`` or the name itself, as a link to the name's row if it has one."""
    found = rows.row_named(context.comparison, name)
    shown = components.name(label or name)
    if found is None:
        return shown
    tab, row = found
    return dcc.Link(shown, href=f"/changes{replace(context.view, tab=tab, row=row).query()}")


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
        html.P(dcc.Link("All changes", href=f"/changes{context.view.query()}")),
        *matched,
        components.chart(context.comparison, "families", context.theme),
    ]
