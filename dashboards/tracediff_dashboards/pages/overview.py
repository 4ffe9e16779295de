"""The answer: the verdict, where the step went, what explains it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import dcc, html

from tracediff import charts
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.errors import printable
from tracediff.formatting import signed_time
from tracediff.report import sections
from tracediff.report.page.html_sections import interval
from tracediff.report.text import evidence_figures, facts, headline, unprofiled
from tracediff_dashboards import components, rows
from tracediff_dashboards.page_context import Shown
from tracediff_dashboards.rows import TITLES

TOP = 10


def page(shown: Shown) -> list[Any]:
    """Verdict, step, findings, and the largest changes of the chosen work."""
    comparison = shown.comparison
    if shown.whole.was_refused:
        again = html.P(dcc.Link("Compare all the same", href=f"/{replace(shown.view, forced=True).query()}"))
        return [*_answer(shown), again, components.figure(charts.timeline(comparison, theme=shown.theme), "both-steps")]
    return [
        *_answer(shown),
        *components.of_all(shown, "The step, the verdict and the findings are"),
        html.H2("Where the step went"),
        components.chart(comparison, "step_waterfall", shown.theme),
        components.step_table(comparison),
        html.H2("Findings"),
        *_findings(shown),
        html.H2("Largest changes"),
        *_changes(shown),
    ]


def _answer(shown: Shown) -> list[Any]:
    comparison = shown.comparison
    c, t = comparison.control, comparison.test
    kind = "refused" if shown.whole.was_refused else comparison.verdict.result
    answer = [
        html.H1([components.name(c.label), " → ", components.name(t.label)]),
        html.P(printable(headline(shown.whole, remedy="")), className=f"verdict {kind}"),
        *(html.P(said) for said in (interval(comparison), unprofiled(comparison)) if said),
        html.P(printable(facts(comparison)), className="facts"),
    ]
    cautions = sections.caution_lines(comparison)
    if cautions:
        what = "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
        told = html.Summary(
            [
                html.Strong(what),
                f": {len(cautions)} thing{'s' if len(cautions) > 1 else ''} beside what was meant to differ",
            ]
        )
        answer.append(
            html.Details([told, components.items(cautions)], className="caution", open=shown.whole.was_refused)
        )
    return answer


def _findings(shown: Shown) -> list[Any]:
    if not shown.comparison.findings:
        return [html.P("No rule found a reason that stands out.")]
    return [_finding(shown, finding) for finding in shown.comparison.findings]


def _finding(shown: Shown, finding: Finding) -> Any:
    change: list[Any] = []
    if finding.delta_us:
        change = [
            " ",
            html.Span(signed_time(finding.delta_us), className="slower" if finding.delta_us > 0 else "faster"),
        ]
    kind = finding.kind
    listed = kind.page == "changes"
    query = (replace(shown.view, tab=kind.tab, row="") if listed else shown.view).query()
    called = (
        f"the {kind.page}" if not listed else "the matched work" if kind.tab == "groups" else TITLES[kind.tab].lower()
    )
    link = dcc.Link(f"See {called}", href=f"/{kind.page}{query}")
    body = [html.H3([components.name(finding.title), *change]), html.P(printable(finding.detail))]
    if finding.evidence:
        body.append(html.Ul([html.Li(_evidence(shown, evidence)) for evidence in finding.evidence]))
    return html.Article(
        [*body, html.P([html.Code(finding.code), " · ", link], className="facts")],
        className="finding",
        **components.attributes(data_code=finding.code),
    )


def _evidence(shown: Shown, evidence: Evidence) -> list[Any]:
    """What is named, as a link to its row where it has one, and its figures."""
    figures = evidence_figures(evidence)
    found = rows.row_called(shown.comparison, evidence.name)
    named = components.name(evidence.name)
    if found is not None:
        tab, row = found
        named = dcc.Link(named, href=f"/changes{replace(shown.view, tab=tab, row=row).query()}")
    return [named, f": {figures}"] if figures else [named]


def _changes(shown: Shown) -> list[Any]:
    tables = []
    for device in sections.devices(shown.comparison, shown.view.filters.device):
        lines, _ = sections.change_rows(shown.comparison, device, "change", TOP)
        if lines:
            tables.append(components.changes(lines, "On the GPU" if device == "gpu" else "On the host, self time"))
    if not tables:
        return [
            html.P(
                "No work is left to show: take back a filter above." if shown.is_part else "Nothing changed.",
                className="missing",
            )
        ]
    matched = [html.P(sections.matched_line(shown.comparison), className="facts")]
    return [
        *tables,
        html.P(dcc.Link("All changes", href=f"/changes{shown.view.query()}")),
        *matched,
        components.chart(shown.comparison, "families", shown.theme),
    ]
