"""Components that several pages use, some from the report's templates, so that what both show is laid out once. Names
from traces are children of components, which browsers show as text.
"""

from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from itertools import starmap
from typing import Any

import plotly.graph_objects as go
from dash import dcc, html

from tracediff import bounds, charts
from tracediff.aggregate.summary import Side
from tracediff.charts.marks import marks_text
from tracediff.charts.theme import caption
from tracediff.errors import TracediffError, printable
from tracediff.present.setting import side_names
from tracediff.report.page.figures import remove_title
from tracediff.report.page.html import render, text
from tracediff_dashboards.reading.comparisons import PageContext

GRAPH: dcc.Graph.Config = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "toImage"],
}


def attributes(**values: str) -> dict[str, Any]:
    """Attributes such as ``aria-label``, from ``aria_label="x"``: dash's types have no parameters for them."""
    return {key.replace("_", "-"): value for key, value in values.items()}


def name(value: str) -> Any:
    """A name from a trace: on one line, shortened, and isolated from the direction of the text around it."""
    return html.Bdi(text(value, bounds.PAGE_CELL))


def missing(sentence: Any) -> Any:
    """A sentence in the place of what a page has nothing of."""
    return html.P(sentence, className="missing")


def note(sentence: Any) -> Any:
    """A sentence on what is beside it."""
    return html.P(sentence, className="facts")


def row_link(context: PageContext, tab: str, row: str, children: Any) -> Any:
    """A link to a row of the changes page; to the tab where ``row`` is empty."""
    return dcc.Link(children, href=context.address("changes", tab=tab, row=row))


def choice(key: str, label: str, **options: Any) -> list[Any]:
    """A dropdown with its label; ``options`` are those of `dcc.Dropdown`."""
    return [html.Label(label, htmlFor=key), dcc.Dropdown(id=key, **options)]


def chart(context: PageContext, which: str, config: dcc.Graph.Config | None = None) -> Any:
    """The chart ``which`` of `tracediff.charts` of all work with its title; if it has no data, a sentence that says so.

    Args:
        config: options of plotly in addition to GRAPH.
    """
    return figure(getattr(charts, which)(context.whole, theme=context.theme), which, config)


def figure(chart: go.Figure, key: str, config: dcc.Graph.Config | None = None) -> Any:
    """A figure of `tracediff.charts` with its title as a caption."""
    title, subtitle = caption(chart)
    marks = marks_text(chart)
    if not chart.data:
        return missing(title)
    remove_title(chart)
    graph = dcc.Graph(
        id=f"chart-{key}",
        figure=chart,
        config={**GRAPH, **(config or {})},
        style={"height": f"{chart.layout.height}px"},
    )
    described = html.Div(graph, role="group", className="chart", **attributes(aria_label=f"Chart: {title}"))
    words = html.Details([html.Summary("The largest values as text"), items(marks)], className="marks")
    return html.Figure(
        [
            html.Figcaption([html.Strong(title), html.Span(subtitle)], id=f"caption-{key}"),
            html.Div(described, className="scroll"),
            *([words] if marks else []),
        ]
    )


def _named_sides(context: PageContext) -> Iterable[tuple[str, Side]]:
    return zip(side_names(context.whole), context.whole.sides, strict=True)


def memory_of_other_step(context: PageContext) -> list[Any]:
    """A sentence that the step shown is not one of the selected steps: memory is kept for one step per file."""
    others = [
        f"step {typical.timeline.step} of {which}"
        for which, side in _named_sides(context)
        if (typical := side.typical) and not side.whole_file and typical.timeline.step not in side.steps_used
    ]
    if not others:
        return []
    sentence = f"The chart shows {' and '.join(others)}, not a selected step: memory is kept for one step per file."
    return [note(sentence)]


def missing_events(context: PageContext) -> list[Any]:
    """A sentence that one side has no events; nothing if both sides or neither side has them."""
    sides_without = [which for which, side in _named_sides(context) if side.typical is None]
    sentence = f"{' and '.join(sides_without)} is a snapshot without events: compare the traces to see them here."
    return [note(sentence)] if len(sides_without) == 1 else []


def error_alert(error: TracediffError) -> Any:
    """An error as an alert; without what of the remedy is an option of the command line."""
    subject = "steps" if error.subject == "--step" else error.subject
    remedies = [remedy for remedy in error.remedy.split("; ") if "--" not in remedy]
    return alert("; ".join([f"{subject}: {error.reason}", *remedies]))


def alert(sentence: str, *more: Any) -> Any:
    """An alert with one sentence, and components such as a button."""
    return html.Div([html.P(printable(sentence)), *more], className="alert", role="alert")


def items(lines: Sequence[Any]) -> Any:
    """A list of plain texts or components, at most MEMBERS, and how many more there are."""
    entries = [html.Li(printable(line) if isinstance(line, str) else line) for line in lines[: bounds.MEMBERS]]
    if len(lines) > bounds.MEMBERS:
        entries.append(html.Li(f"and {len(lines) - bounds.MEMBERS:,} more"))
    return html.Ul(entries)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, kind: str = "sums") -> Any:
    """A table; its first column contains the row headers."""
    header = html.Thead(html.Tr([html.Th(h, scope="col") for h in head]))
    body = html.Tbody([html.Tr([html.Th(row[0], scope="row"), *(html.Td(cell) for cell in row[1:])]) for row in rows])
    return html.Div(
        html.Table([*([html.Caption(title)] if title else []), header, body], className=kind), className="scroll"
    )


class _Parser(HTMLParser):
    """Makes components of elements; texts stay texts, whatever they contain.

    Attributes:
        children: of each element that is open, the outermost first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.children: list[list[Any]] = [[]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind: Any = dcc.Link if tag == "a" else getattr(html, tag.capitalize())
        children: list[Any] = []
        self.children[-1].append(kind(children, **dict(starmap(_property, attrs))))
        self.children.append(children)

    def handle_endtag(self, _tag: str) -> None:
        self.children.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() or "\n" not in data:  # not what only indents elements
            self.children[-1].append(data)


def rendered(template: str, **context: Any) -> list[Any]:
    """The elements of ``template`` with ``context`` filled in, as components; links are those of the dashboard."""
    parser = _Parser()
    parser.feed(render(template, **context))
    parser.close()
    return parser.children[0]


def _property(attribute: str, value: str | None) -> tuple[str, Any]:
    """The property of a component that has this attribute."""
    if attribute == "style":
        rules = (rule.split(":") for rule in (value or "").split(";"))
        return attribute, {name.replace("margin-left", "marginLeft"): size for name, size in rules}
    return "className" if attribute == "class" else attribute, True if value is None else value
