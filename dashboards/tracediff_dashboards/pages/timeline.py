"""The page with the timeline of one step per side."""

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go
from dash import dcc, html

from tracediff import bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Int64
from tracediff.charts.figures.timeline import StepSpans, timeline
from tracediff.diff.comparison import Comparison
from tracediff.errors import printable
from tracediff.formatting import count, plural, time, time_unit
from tracediff.profile.timeline import NO_EVENTS, Linked
from tracediff.report.page.figures import remove_title
from tracediff.structs import SIDES, Pair
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.details import spans_of
from tracediff_dashboards.pages.rows import find_row
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.events import with_steps
from tracediff_dashboards.reading.step_inspector import StepInspector, StepPlace, places
from tracediff_dashboards.state.view import Window

HELP = (
    "Drag to zoom in, double-click to zoom out to the whole step, click an event to see its launch and the operators "
    "around it. The row selected in Changes stands out, else the work that the filters leave."
)


def page(context: PageContext) -> list[Any]:
    """The components: one step per side on a shared time axis, by default the typical ones."""
    return [
        html.Div(
            [
                html.H1("Timeline"),
                _choice("at-control", "control step", context.sets[0], context.view.at_control),
                _choice("at-test", "test step", context.sets[1], context.view.at_test),
                html.Details([html.Summary("How to use it"), html.P(HELP)], className="fold facts"),
            ],
            className="filters head",
        ),
        *components.missing_events(context),
        components.chart(
            context, "timeline", config={"doubleClick": "autosize"}
        ),  # otherwise it resets to the range of the first step
        *_perfetto(context.whole),
        html.Div(id="followed", role="status"),
        dcc.Store(id="window", data=context.view.window),
    ]


def _perfetto(whole: Comparison) -> list[Any]:
    """The button that opens both steps in Perfetto; none where a side has no events."""
    if not all(side.typical for side in whole.sides):
        return []
    return [
        html.P([html.Button("Open in Perfetto", id="perfetto"), " ", html.Span(id="perfetto-status", role="status")]),
        components.note(
            "Both whole steps with all their events in ui.perfetto.dev. The browser loads Perfetto's page and hands it "
            "the trace that this dashboard writes; nothing else is sent."
        ),
    ]


def _choice(key: str, label: str, traces: TraceSet, value: str) -> Any:
    options = [{"label": _label(place), "value": place.key} for place in places(traces)[: bounds.STEPS_LISTED]]
    steps = components.choice(key, label, options=options, value=value or None, placeholder="typical step")
    return html.Div(steps, className="field")


def _label(place: StepPlace) -> str:
    return f"{place.run[:60]}, rank {place.rank}, step {place.step}: {time(place.period / 1000)}"


def unit_us(lengths: Sequence[float | None]) -> float:
    """The unit of the time axis, in µs, for steps of these lengths (µs)."""
    return time_unit(length for length in lengths if length is not None).size


def highlight(context: PageContext, inspector: StepInspector) -> tuple[Pair[Int64], list[Any]]:
    """(events that stand out on control and test, int64[n] rows of the trace; a sentence on them): those of the
    selected row, else of the work that the filters leave, else none. Operators and kernels stand out whichever step
    launched them, since the host may run steps ahead of what the GPU does in the timeline.

    Raises:
        TracediffError: the events can no longer be read.
    """
    row = find_row(context.comparison, context.view.tab, context.view.row)
    if row is None and not context.is_filtered:
        return Pair(NO_EVENTS, NO_EVENTS), []
    spans = spans_of(context, row.item if row else None, inspector, of_every_step=True)
    events = Pair(*(_in_period(side) if side else NO_EVENTS for side in spans))
    what = components.name(row.cells["name"]) if row else "the work that the filters leave"
    clear = [dcc.Link("Clear", id="unmark", href=context.address("timeline", row=""), title="Esc")] if row else []
    numbers = f": {plural(len(events.control), 'event')} in control, {count(len(events.test))} in test. "
    return events, ["Highlighted: ", what, numbers, *clear]


def _in_period(side: StepSpans) -> Int64:
    """The events that run between the borders of the step."""
    return side.event[(side.end > 0) & (side.start < side.period_ns)]


def zoomed(
    whole: Comparison,
    steps: Sequence[TypicalStep | None],
    window: Window | None,
    theme: str,
    events: Pair[Int64],
) -> go.Figure:
    """The timeline of ``steps`` of both sides; the time axis shows ``window``, and ``events`` stand out if any."""
    figure = timeline(with_steps(whole, steps), theme=theme)
    remove_title(figure)
    if window is not None:
        unit = 1000 * unit_us([step.period_us for step in steps if step])
        figure.update_xaxes(range=[window[0] / unit, window[1] / unit])
    marks = {f"{side}:{row}" for side, rows in enumerate(events) for row in rows.tolist()}
    traces: Iterable[Any] = figure.data if marks else ()
    for bars in traces:
        bars.selectedpoints = [k for k, mark in enumerate(bars.ids) if mark in marks]
        bars.unselected.marker.opacity = 0.12  # as in the report
    return figure


def caption(steps: Sequence[TypicalStep | None], sentence: Sequence[Any]) -> list[Any]:
    """The caption of the timeline of the selected steps; ``sentence`` says what stands out."""
    descriptions = [
        f"{which}: step {s.timeline.step} of {s.run[:60]}, rank {s.rank}, {time(s.period_us)}"
        for which, s in zip(SIDES, steps, strict=True)
        if s
    ]
    return [
        html.Strong(printable("; ".join(descriptions))),
        html.Span("From the completion of the step before to its own. Short events are merged; hover to see how many."),
        *([html.Span(sentence, role="status")] if sentence else []),
    ]


def linked_table(events: Sequence[Linked]) -> list[Any]:
    """The table of an event, its launch and the calls around it."""
    if not events:
        return [components.note("Click an event of a stream or thread; states have no details.")]
    first = min(event.at_ns for _, event in events)
    rows = [
        (components.name(e.name), what, e.place, time(e.dur_ns / 1000), f"+{time((e.at_ns - first) / 1000)}")
        for what, e in events
    ]
    return [
        html.Button("Close", id="unfollow", title="Esc"),
        components.table(
            ("name", "kind", "stream or thread", "duration", "start after the first"),
            rows,
            "Event, launch and surrounding calls",
            "words",
        ),
    ]
