"""What streams and threads did in a step of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from tracediff import charts
from tracediff.errors import printable
from tracediff.formatting import time, time_unit
from tracediff.profile.analyses.launch_chain import Linked
from tracediff.report.page.figures import remove_title
from tracediff_dashboards import components
from tracediff_dashboards.filters import Window
from tracediff_dashboards.page_context import Shown
from tracediff_dashboards.step_inspector import Place, places

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.representative_step import TypicalStep
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.diff.comparison import Comparison

MOST_PLACES = 2000
"""Steps that can be chosen on a side."""


def page(shown: Shown) -> list[Any]:
    """A step of each side, one above the other, on one axis of time; the typical ones where none is chosen."""
    return [
        html.H1("Timeline"),
        *components.of_all(shown, "A timeline tells"),
        *components.without_events(shown),
        html.Div(
            [
                _choice("at-control", "step of the control", shown.sets[0], shown.view.at_control),
                _choice("at-test", "step of the test", shown.sets[1], shown.view.at_test),
            ],
            className="filters",
        ),
        html.P(
            "Drag over a part of it to look closer, double click for the whole step; a click on a mark tells what "
            "hangs together with it.",
            className="facts",
        ),
        components.chart(
            shown.whole, "timeline", shown.theme, config={"doubleClick": "autosize"}
        ),  # else it goes back to the range of the step drawn first
        html.Div(id="followed", role="status"),
        dcc.Store(id="window", data=shown.view.window),
        components.chart(shown.whole, "launches", shown.theme),
    ]


def _choice(key: str, label: str, traces: TraceSet, value: str) -> Any:
    options = [{"label": _called(place), "value": place.key} for place in places(traces)[:MOST_PLACES]]
    return html.Div(
        [html.Label(label, htmlFor=key), dcc.Dropdown(options, value or None, id=key, placeholder="the typical one")],
        className="field",
    )


def _called(place: Place) -> str:
    return f"{place.run[:60]}, rank {place.rank}, step {place.step}: {time(place.period / 1000)}"


def unit_us(lengths: Sequence[float | None]) -> float:
    """µs of the unit of the time axis of steps of these lengths (µs)."""
    return time_unit(length for length in lengths if length is not None).size


def closer(whole: Comparison, steps: Sequence[TypicalStep | None], window: Window | None, theme: str) -> go.Figure:
    """The figure of ``steps`` of both sides, its axis on ``window``."""
    sides = [replace(side, typical=step) for side, step in zip((whole.control, whole.test), steps, strict=True)]
    figure = charts.timeline(replace(whole, control=sides[0], test=sides[1]), theme=theme)
    remove_title(figure)
    if window is not None:
        unit = 1000 * unit_us([(s.timeline.end - s.timeline.start) / 1000 for s in steps if s])
        figure.update_xaxes(range=[window[0] / unit, window[1] / unit])
    return figure


def told(steps: Sequence[TypicalStep | None]) -> list[Any]:
    """The caption of chosen steps."""
    sides = [(step, which) for step, which in zip(steps, ("control", "test"), strict=True) if step]
    said = [
        (
            f"step {s.timeline.step} of {s.run[:60]}, rank {s.rank}: "
            f"{time((s.timeline.end - s.timeline.start) / 1000)} in the {which}"
        )
        for s, which in sides
    ]
    return [html.Strong(printable("; ".join(said))), html.Span("Short events are put together; hover tells how many.")]


def followed(found: Sequence[Linked]) -> list[Any]:
    """A table of events that hang together."""
    if not found:
        return [html.P("A state is no event: click a mark of a stream or a thread.", className="facts")]
    first = min(event.start for event in found)
    rows = [
        (components.name(e.name), e.what, e.place, time(e.dur / 1000), f"+{time((e.start - first) / 1000)}")
        for e in found
    ]
    return [
        components.table(("name", "what", "where", "duration", "begins"), rows, "What hangs together with it", "words")
    ]
