"""When work ran: one step of each side with its streams and threads, spans of a name in it, its time by step."""

from collections.abc import Sequence
from statistics import median

import numpy as np
import plotly.graph_objects as go

from tracediff import bounds, thresholds
from tracediff.aggregate.averages import TypicalStep
from tracediff.aggregate.samples import StepSum
from tracediff.arrays import Int64, Spans, tuples, union
from tracediff.charts.labels import HOVER_WIDTH, full_name, label, side_names
from tracediff.charts.marks import Panel, data_array, hovers, name_rows, once_in_legend, panels, step_dots
from tracediff.charts.theme import Palette, empty, finish, palette, readable
from tracediff.diff.comparison import Comparison, Scaled
from tracediff.formatting import ARROW, Unit, change, count, plural, time, time_unit
from tracediff.profile.events.step_states import GPU_STATES, state_label
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.model.profile import Timeline
from tracediff.profile.timeline import ANNOTATION, KINDS
from tracediff.structs import SIDES

ROW = 17
"""Pixels of a stream or a level of a thread."""
NO_EVENTS = "A snapshot contains no events: compare the traces to see a timeline."


def timeline(subject: Scaled, *, theme: str = "light") -> go.Figure:
    """The typical step of both sides (or of one set) from completion to completion, beginning at 0: state, streams,
    threads. Short events are put together.
    """
    steps = [(which, side.typical) for which, side in enumerate(subject.sides) if side.typical is not None]
    if not steps:
        return empty(theme, NO_EVENTS)
    colours = palette(theme)
    lengths = [step.period_us for _, step in steps]
    unit = time_unit(lengths)
    heights = [len(step.timeline.rows) + 1 for _, step in steps]
    titles = [f"{side_names(subject)[which]}, rank {step.rank}" for which, step in steps]
    rows = panels(titles, 46 / (ROW * sum(heights) + 46), heights)
    for panel, (which, step) in zip(rows, steps, strict=True):
        _step(panel, which, step.timeline, unit, _colours(colours), subject.has_gpu)
    figure = panel.figure
    figure.update_layout(barmode="overlay", bargap=0.12, hovermode="closest")
    figure.update_xaxes(range=[0, unit.scaled(max(lengths))], showgrid=True, zeroline=False)
    panel.update_xaxes(title_text=f"time ({unit.name})")
    return finish(figure, theme, _title(subject, lengths), _subtitle(subject, steps), ROW * sum(heights) + 100)


def _step(panel: Panel, side: int, of_step: Timeline, unit: Unit, colours: dict[str, str], gpu: bool) -> None:
    """The marks of one step, a trace for each kind; a mark's id is its side and event."""
    marks = of_step.marks
    for code in np.unique(marks.kind).tolist():
        kind = KINDS[code]
        which = np.flatnonzero(marks.kind == code).tolist()
        panel.add_bar(
            name=label(
                "annotation" if kind == ANNOTATION else state_label(kind)
            ),  # rows of threads show them also while the GPU works
            **once_in_legend(panel.figure, kind),
            orientation="h",
            base=[unit.scaled(marks.start[i] / 1000) for i in which],
            x=[unit.scaled((marks.end[i] - marks.start[i]) / 1000) for i in which],
            y=[int(marks.row[i]) for i in which],
            text=[label(_name(of_step, i, gpu), HOVER_WIDTH) if marks.count[i] == 1 else "" for i in which],
            textposition="none",  # the pages write them: `report/page/timeline.js`
            textfont={"color": readable(colours[kind])},
            width=0.86,
            marker={"color": colours[kind], "line": {"width": 0}},
            **hovers(_hover(of_step, i, gpu) for i in which),
            ids=[
                f"{side}:{marks.event[i] if marks.event[i] >= 0 else f'state {i}'}" for i in which
            ],  # equal ids would be drawn once
        )
    name_rows(panel, [label(name, 30) for name in of_step.rows])


def _name(of_step: Timeline, i: int, gpu: bool) -> str:
    """What a mark is called: a state by its label, GPU work as in tables."""
    name, kind = of_step.marks.names[i][0], KINDS[of_step.marks.kind[i]]
    if of_step.rows[of_step.marks.row[i]] == "state":
        return state_label(name, gpu)
    return display_name(name) if kind in GPU_STATES else name


def _hover(of_step: Timeline, i: int, gpu: bool) -> str:
    marks = of_step.marks
    name, count, busy = _name(of_step, i, gpu), int(marks.count[i]), int(marks.busy[i])
    start = f"at {time(marks.start[i] / 1000)}"
    launch = f"<br>launched by {full_name(marks.operator[i], bounds.OTHER_NAME)}" if marks.operator[i] else ""
    if count == 1:
        is_cut = marks.start[i] == marks.start.min() or marks.end[i] == marks.end.max()
        duration = f"{time(busy / 1000)}{' in view' if is_cut else ''}"
        return f"<b>{full_name(name, bounds.OTHER_NAME)}</b><br>{duration}, {start}{launch}"
    return (
        f"<b>{plural(count, 'event')}</b>, {time(busy / 1000)} together, {start}<br>the longest: "
        f"{full_name(name, bounds.OTHER_NAME)}{launch}"
    )


def _colours(theme_colours: Palette) -> dict[str, str]:
    sky, orange, green, yellow, purple, brown, teal, *_ = theme_colours.parts
    quiet, grid, neutral = theme_colours.quiet, theme_colours.grid, theme_colours.neutral
    return dict(zip(KINDS, (green, yellow, sky, quiet, orange, purple, brown, teal, grid, neutral), strict=True))


def _title(subject: Scaled, lengths: list[float]) -> str:
    what = "The whole file" if subject.is_whole_file else "A typical step"
    if len(lengths) == 1 or not isinstance(subject, Comparison):
        return f"{what} takes {time(lengths[0])}"
    medians = subject.verdict.medians
    if all(abs(us - median) <= thresholds.NO_DIFFERENCE * median for us, median in zip(lengths, medians, strict=True)):
        return f"{what}: {change(*lengths)}"
    return f"One step of each side: {change(*lengths)}; the median step: {change(*medians)}"


def _subtitle(subject: Scaled, steps: list[tuple[int, TypicalStep]]) -> str:
    sides = len(subject.sides)
    which = "; ".join(
        f"{f'{SIDES[k]}: ' if sides > 1 else ''}step {step.timeline.step} of {step.run[:40]}, rank {step.rank}"
        for k, step in steps
    )
    typical = (
        "No steps were recorded."
        if subject.is_whole_file
        else f"The step closest to the median period ({which}), from the completion of the step before to its own."
    )
    text = f"{typical} Short events are merged; the hover text gives their number."
    omitted = sum(step.timeline.left_out for _, step in steps)
    return (
        text
        + (f" {plural(omitted, 'less busy stream or thread')} omitted." if omitted else "")
        + ("" if len(steps) == sides else f" {NO_EVENTS}")
    )


NARROWEST = 1 / 1000
"""Part of the longer step that a mark is wide at least; marks that touch are one."""


class StepSpans(Spans, kw_only=True):
    """What ran in one step.

    Attributes:
        where: the step, in words. period_ns: of the step. start, end: int64[n] ns after the start of the step.
        event: int64[n] rows of the trace.
    """

    where: str
    period_ns: int
    event: Int64


def name_spans(sides: Sequence[StepSpans | None], *, theme: str = "light") -> go.Figure:
    """The spans of control and test, each a lane; None for a side whose events are not at hand."""
    if not any(side is not None and len(side.start) for side in sides):
        return empty(theme, "It did not run in the steps that are shown.")
    colours = palette(theme)
    spans = [side for side in sides if side is not None]
    longest = max(side.period_ns for side in spans)
    earliest = min(int(side.start.min(initial=0)) for side in spans)  # the host may run steps ahead of the GPU
    latest = max(longest, *(int(side.end.max(initial=0)) for side in spans))
    unit = time_unit([longest / 1000])
    figure = go.Figure()
    for which, side in enumerate(sides):
        if side is None or not len(side.start):
            continue
        covered = union(side.start, np.maximum(side.end, side.start + int(longest * NARROWEST)))
        first = np.searchsorted(np.sort(side.start), covered.start, side="left")
        count = np.diff(np.append(first, len(side.start)))
        figure.add_bar(
            name=SIDES[which],
            orientation="h",
            y=[which] * len(covered.start),
            base=covered.start / 1000 / unit.size,
            x=(covered.end - covered.start) / 1000 / unit.size,
            width=0.5,
            marker={"color": colours.sides[which]},
            **hovers(
                f"{label(side.where, 60)}<br>{plural(n, 'event')} from {time(start / 1000)} on, {time(took / 1000)}"
                for n, start, took in tuples(count, covered.start, covered.end - covered.start)
            ),
            showlegend=False,
        )
    ends = [unit.scaled(ns / 1000) for ns in (earliest, latest)]
    figure.update_xaxes(title_text=f"time ({unit.name})", range=ends, showgrid=True)
    name_rows(figure, SIDES)
    figure.update_layout(barmode="overlay")
    captions = [
        f"{plural(len(side.start), 'event')}, {time(int(side.ns.sum()) / 1000)}" if side else "unknown"
        for side in sides
    ]
    where = "; ".join(f"{name}: {side.where}" for name, side in zip(SIDES, sides, strict=True) if side)
    ahead = " The host runs ahead: a time before 0 is before the step begins on the GPU." if earliest < 0 else ""
    return finish(figure, theme, ARROW.join(captions), f"{where}.{ahead}", 200)


def name_steps(steps: Sequence[Sequence[StepSum]], *, quantity: str = "self time", theme: str = "light") -> go.Figure:
    """``quantity`` of one operation (`per_step`) or of some work (`work_per_step`) in every used step of control
    and test, a dot per step.
    """
    if not any(step.count for side in steps for step in side):
        return empty(theme, "It did not run in any used step.")
    colours = palette(theme)
    unit = time_unit(step.ns / 1000 for side in steps for step in side)
    figure = go.Figure()
    for which, side in enumerate(steps):
        sample = side[:: max(1, -(-len(side) // bounds.DOTS_OF_SIDE))]
        figure.add_box(
            name=SIDES[which],
            x=data_array([SIDES[which]] * len(sample)),
            y=[unit.scaled(step.ns / 1000) for step in sample],
            **step_dots(colours, which),
            line={"color": colours.text, "width": 1},
            fillcolor="rgba(0,0,0,0)",
            **hovers(
                f"{label(s.run, 40)}, rank {s.rank}, step {s.step}<br>{count(s.count)} ×, {time(s.ns / 1000)}"
                for s in sample
            ),
            showlegend=False,
        )
    figure.update_yaxes(title_text=f"{quantity} per step ({unit.name})", rangemode="tozero")
    figure.update_xaxes(showgrid=False)
    medians = [time(median(step.ns / 1000 for step in side)) if side else "no step" for side in steps]
    return finish(figure, theme, f"Median step: {ARROW.join(medians)}", "Each dot is a step.", 260)
