"""Pieces of pages. Names out of traces are children of components, which the browser shows as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from tracediff import charts
from tracediff.charts.theme import caption
from tracediff.errors import TracediffError, printable
from tracediff.formatting import counts, time_unit
from tracediff.report import sections
from tracediff.report.page.figures import remove_title

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison
    from tracediff.report.sections import Row
    from tracediff_dashboards.page_context import Shown

LONGEST = 600
"""Characters of a name."""
MOST_ITEMS = 100
GRAPH: dcc.Graph.Config = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "toImage"],
}


def attributes(**values: str) -> dict[str, Any]:
    """``aria_label="x"`` as the attribute ``aria-label``: dash's types know ``aria-*`` and ``data-*`` by no name."""
    return {key.replace("_", "-"): value for key, value in values.items()}


def name(value: str) -> Any:
    """A name out of a trace: one line, in its own direction."""
    if len(value) > LONGEST:
        value = f"{value[: LONGEST // 2]} … {value[-LONGEST // 2 :]}"
    return html.Bdi(printable(value))


def chart(
    comparison: Comparison, which: str, theme: str, config: dcc.Graph.Config | None = None, **options: Any
) -> Any:
    """The chart called ``which`` of `tracediff.charts` under its title; where it has nothing to show, the sentence that
    says so.

    Args:
        config: of plotly besides GRAPH. options: of the chart.
    """
    return figure(getattr(charts, which)(comparison, theme=theme, **options), which, config)


def figure(drawn: go.Figure, key: str, config: dcc.Graph.Config | None = None) -> Any:
    """A figure of `tracediff.charts` with its title as a caption."""
    title, subtitle = caption(drawn)
    if not drawn.data:
        return html.P(title, className="missing")
    remove_title(drawn)
    graph = dcc.Graph(
        id=f"chart-{key}",
        figure=drawn,
        config={**GRAPH, **(config or {})},
        style={"height": f"{drawn.layout.height}px"},
    )
    described = html.Div(graph, role="img", className="chart", **attributes(aria_label=f"{title}. {subtitle}"))
    return html.Figure(
        [
            html.Figcaption([html.Strong(title), html.Span(subtitle)], id=f"caption-{key}"),
            html.Div(described, className="scroll"),
        ]
    )


def of_all(shown: Shown, what: str) -> list[Any]:
    """The sentence that ``what`` is told of all work, where only a part is chosen."""
    return [html.P(f"{what} of all work, whatever is chosen above.", className="facts")] if shown.is_part else []


def other_step(shown: Shown) -> list[Any]:
    """The sentence that a step is shown which is none of those chosen: memory is kept of one step a file."""
    sides = [
        (which, side)
        for which, side in (("control", shown.whole.control), ("test", shown.whole.test))
        if side.typical and not side.whole_file
    ]
    others = [
        f"step {s.typical.timeline.step} of the {which}"
        for which, s in sides
        if s.typical and s.typical.timeline.step not in s.steps_used
    ]
    return (
        [
            html.P(
                f"Shown is {' and '.join(others)}, none of the chosen steps: memory is kept of one step a file.",
                className="facts",
            )
        ]
        if others
        else []
    )


def without_events(shown: Shown) -> list[Any]:
    """The sentence that one side has nothing to draw, where the other has."""
    sides = [("control", shown.whole.control), ("test", shown.whole.test)]
    lacking = [which for which, side in sides if side.typical is None]
    said = (
        f"The {' and the '.join(lacking)} is a snapshot, which holds no events: compare the traces themselves to "
        f"see them here."
    )
    return [html.P(said, className="facts")] if len(lacking) == 1 else []


def told(error: TracediffError) -> Any:
    """An error in a line; without a remedy that is an option of the command line."""
    subject = "steps" if error.subject == "--step" else error.subject
    return alert(f"{subject}: {error.reason}" + (f"; {error.remedy}" if "--" not in error.remedy else ""))


def alert(sentence: str, *more: Any) -> Any:
    """What went wrong, in a line, and what can be done about it here."""
    return html.Div([html.P(printable(sentence)), *more], className="alert", role="alert")


def items(lines: Sequence[str]) -> Any:
    """A list of plain texts."""
    shown = [html.Li(printable(line)) for line in lines[:MOST_ITEMS]]
    shown += (
        [html.Li(f"and {len(lines) - MOST_ITEMS:,} more: `tracediff compare --json` has all")]
        if len(lines) > MOST_ITEMS
        else []
    )
    return html.Ul(shown)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, kind: str = "sums") -> Any:
    """A table whose first column names the rows."""
    header = html.Thead(html.Tr([html.Th(h, scope="col") for h in head]))
    body = html.Tbody([html.Tr([html.Th(row[0], scope="row"), *(html.Td(cell) for cell in row[1:])]) for row in rows])
    return html.Div(
        html.Table([*([html.Caption(title)] if title else []), header, body], className=kind), className="scroll"
    )


def step_table(comparison: Comparison) -> Any:
    """State by state, adding up to the step."""
    us, step = comparison.us, comparison.step_time
    rows = sections.step_rows(comparison)
    total = sections.Row("step", us(step.control), us(step.test), us(step.delta))
    left = f"Adds up: {step.residual / comparison.scale:g} ns left over."
    return html.Div(
        [changes([*rows, total], "Where the step went", counted=False), html.P(left, className="facts")],
        className="closing",
    )


def changes(rows: Sequence[Row], title: str, counted: bool = True) -> Any:
    """Rows of a view: control, test and change with a bar."""
    unit = time_unit([v for r in rows for v in (r.control_us, r.test_us)])
    largest = max((abs(r.delta_us) for r in rows), default=0.0)
    head = ["name", *(["count"] if counted else []), "control", "test", "change", ""]
    cells = [
        [
            name(r.name),
            *([counts(r.control_count, r.test_count)] if counted else []),
            unit.plain(r.control_us),
            unit.plain(r.test_us),
            unit.signed(r.delta_us),
            _bar(r.delta_us, largest),
        ]
        for r in rows
    ]
    return table(head, cells, f"{title}, {unit.name} per step")


def _bar(delta_us: float, largest: float) -> Any:
    width = 100 * abs(delta_us) / largest if largest else 0
    return html.Span(className=f"bar {'slower' if delta_us > 0 else 'faster'}", style={"width": f"{width:.1f}%"})
