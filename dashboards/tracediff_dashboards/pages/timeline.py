"""The page with the timeline of one step per side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dash import dcc, html
from msgspec.structs import replace

from tracediff import bounds
from tracediff.charts.figures.timeline import timeline
from tracediff.errors import printable
from tracediff.formatting import time, time_unit
from tracediff.profile.timeline import Linked
from tracediff.report.page.figures import remove_title
from tracediff_dashboards.pages import components
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.step_inspector import StepPlace, places
from tracediff_dashboards.state.view import Window

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.averages import TypicalStep
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.diff.comparison import Comparison


def page(context: PageContext) -> list[Any]:
    """The components: one step per side on a shared time axis (by default the typical ones), and the launches."""
    return [
        html.H1("Timeline"),
        *components.missing_events(context),
        html.Div(
            [
                _choice("at-control", "control step", context.sets[0], context.view.at_control),
                _choice("at-test", "test step", context.sets[1], context.view.at_test),
            ],
            className="filters",
        ),
        html.P(
            "Drag to zoom in, double-click to zoom out to the whole step, click an event to see its launch and the "
            "operators around it.",
            className="facts",
        ),
        components.chart(
            context.whole, "timeline", context.theme, config={"doubleClick": "autosize"}
        ),  # otherwise it resets to the range of the first step
        *_perfetto(context.whole),
        html.Div(id="followed", role="status"),
        dcc.Store(id="window", data=context.view.window),
        components.chart(context.whole, "launches", context.theme),
    ]


def _perfetto(whole: Comparison) -> list[Any]:
    """The button that opens both steps in Perfetto; none where a side has no events."""
    if whole.control.typical is None or whole.test.typical is None:
        return []
    return [
        html.P([html.Button("Open in Perfetto", id="perfetto"), " ", html.Span(id="perfetto-status", role="status")]),
        html.P(
            "Both whole steps with all their events in ui.perfetto.dev. The browser loads Perfetto's page and hands it "
            "the trace that this dashboard writes; nothing else is sent.",
            className="facts",
        ),
    ]


def _choice(key: str, label: str, traces: TraceSet, value: str) -> Any:
    options = [{"label": _label(place), "value": place.key} for place in places(traces)[: bounds.STEPS_LISTED]]
    return html.Div(
        [html.Label(label, htmlFor=key), dcc.Dropdown(options, value or None, id=key, placeholder="typical step")],
        className="field",
    )


def _label(place: StepPlace) -> str:
    return f"{place.run[:60]}, rank {place.rank}, step {place.step}: {time(place.period / 1000)}"


def unit_us(lengths: Sequence[float | None]) -> float:
    """The unit of the time axis, in µs, for steps of these lengths (µs)."""
    return time_unit(length for length in lengths if length is not None).size


def zoomed(whole: Comparison, steps: Sequence[TypicalStep | None], window: Window | None, theme: str) -> go.Figure:
    """The timeline of ``steps`` of both sides; the time axis shows ``window``."""
    sides = [replace(side, typical=step) for side, step in zip((whole.control, whole.test), steps, strict=True)]
    figure = timeline(replace(whole, control=sides[0], test=sides[1]), theme=theme)
    remove_title(figure)
    if window is not None:
        unit = 1000 * unit_us([(s.timeline.end - s.timeline.start) / 1000 for s in steps if s])
        figure.update_xaxes(range=[window[0] / unit, window[1] / unit])
    return figure


def caption(steps: Sequence[TypicalStep | None]) -> list[Any]:
    """The caption of the timeline of the selected steps."""
    sides = [(step, which) for step, which in zip(steps, ("control", "test"), strict=True) if step]
    descriptions = [
        (
            f"{which}: step {s.timeline.step} of {s.run[:60]}, rank {s.rank}, "
            f"{time((s.timeline.end - s.timeline.start) / 1000)}"
        )
        for s, which in sides
    ]
    return [
        html.Strong(printable("; ".join(descriptions))),
        html.Span("Short events are merged; hover to see how many."),
    ]


def linked_table(events: Sequence[Linked]) -> list[Any]:
    """The table of an event, its launch and the calls around it."""
    if not events:
        return [html.P("Click an event of a stream or thread; states have no details.", className="facts")]
    first = min(event.start for event in events)
    rows = [
        (components.name(e.name), e.what, e.place, time(e.dur / 1000), f"+{time((e.start - first) / 1000)}")
        for e in events
    ]
    return [
        components.table(
            ("name", "kind", "stream or thread", "duration", "start"),
            rows,
            "Event, launch and surrounding calls",
            "words",
        )
    ]
