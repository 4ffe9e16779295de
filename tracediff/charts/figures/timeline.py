"""One step of each side, one above the other: what streams and threads did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediff.charts.labels import SIDES, full_name, has_gpu, label, side_names, sides_of
from tracediff.charts.marks import hovers
from tracediff.charts.rows import name_rows, panels
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import plural, time, time_unit
from tracediff.profile.step_states import state_label
from tracediff.profile.timeline import ANNOTATION, KINDS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.representative_step import TypicalStep
    from tracediff.analysis.analysis import Analysis
    from tracediff.charts.theme import Palette
    from tracediff.diff.comparison import Comparison
    from tracediff.formatting import Unit
    from tracediff.profile.model import Timeline

ROW = 17
"""Pixels of a stream or a level of a thread."""
LONGEST_NAME = 160
NO_EVENTS = "A snapshot contains no events: compare the traces to see a timeline."


def timeline(subject: Comparison | Analysis, *, theme: str = "light") -> go.Figure:
    """The typical step of both sides (or of one set) from completion to completion, beginning at 0: state, streams,
    threads. Short events are put together.
    """
    shown = [(which, side.typical) for which, side in enumerate(sides_of(subject)) if side.typical is not None]
    if not shown:
        return empty(theme, NO_EVENTS)
    colours = palette(theme)
    lengths = [(step.timeline.end - step.timeline.start) / 1000 for _, step in shown]
    unit = time_unit(lengths)
    heights = [len(step.timeline.rows) + 1 for _, step in shown]
    titles = [side_names(subject)[which] for which, _ in shown]
    figure = panels(titles, 46 / (ROW * sum(heights) + 46), heights)
    in_legend: set[str] = set()
    for k, (which, step) in enumerate(shown):
        _step(
            figure,
            k + 1,
            side=which,
            of_step=step.timeline,
            unit=unit,
            theme_colours=colours,
            gpu=has_gpu(subject),
            in_legend=in_legend,
        )
    figure.update_layout(barmode="overlay", bargap=0.12, hovermode="closest")
    figure.update_xaxes(range=[0, unit.scaled(max(lengths))], showgrid=True, zeroline=False)
    figure.update_xaxes(title_text=f"time in the step ({unit.name})", row=len(shown), col=1)
    return finish(
        figure, theme, _title(shown, lengths), _subtitle(shown, len(sides_of(subject))), ROW * sum(heights) + 100
    )


def _step(
    figure: go.Figure,
    row: int,
    *,
    side: int,
    of_step: Timeline,
    unit: Unit,
    theme_colours: Palette,
    gpu: bool,
    in_legend: set[str],
) -> None:
    """The marks of one step, a trace for each kind; a mark's id is its side and event."""
    marks = of_step.marks
    colours = _colours(theme_colours)
    for code in np.unique(marks.kind).tolist():
        kind = KINDS[code]
        which = np.flatnonzero(marks.kind == code).tolist()
        figure.add_bar(
            name=label(
                "annotation" if kind == ANNOTATION else state_label(kind, False)
            ),  # rows of threads show them also while the GPU works
            legendgroup=kind,
            showlegend=kind not in in_legend,
            orientation="h",
            base=[unit.scaled(marks.start[i] / 1000) for i in which],
            x=[unit.scaled((marks.end[i] - marks.start[i]) / 1000) for i in which],
            y=[int(marks.row[i]) for i in which],
            width=0.86,
            marker={"color": colours[kind], "line": {"width": 0}},
            **hovers(_hover(of_step, i, gpu) for i in which),
            ids=[
                f"{side}:{marks.event[i] if marks.event[i] >= 0 else f'state {i}'}" for i in which
            ],  # equal ids would be drawn once
            row=row,
            col=1,
        )
        in_legend.add(kind)
    name_rows(figure, [label(name, 30) for name in of_step.rows], row=row, col=1)


def _hover(of_step: Timeline, i: int, gpu: bool) -> str:
    marks = of_step.marks
    name, count, busy = marks.name[i], int(marks.count[i]), int(marks.busy[i])
    start = f"at {time(marks.start[i] / 1000)}"
    if of_step.rows[marks.row[i]] == "state":
        name = state_label(name, gpu)
    if count == 1:
        return f"<b>{full_name(name, LONGEST_NAME)}</b><br>{time(busy / 1000)}, {start}"
    return (
        f"<b>{plural(count, 'event')}</b>, {time(busy / 1000)} together, {start}<br>the longest: "
        f"{full_name(name, LONGEST_NAME)}"
    )


def _colours(theme_colours: Palette) -> dict[str, str]:
    sky, orange, green, yellow, purple, brown, teal, *_ = theme_colours.parts
    return dict(
        zip(
            KINDS,
            (
                green,
                yellow,
                sky,
                theme_colours.quiet,
                orange,
                purple,
                brown,
                teal,
                theme_colours.grid,
                theme_colours.neutral,
            ),
            strict=True,
        )
    )


def _title(shown: list[tuple[int, TypicalStep]], lengths: list[float]) -> str:
    if len(shown) == 1:
        return f"A typical step takes {time(lengths[0])}"
    return f"A typical step: {time(lengths[0])} in the control, {time(lengths[1])} in the test"


def _subtitle(shown: list[tuple[int, TypicalStep]], sides: int) -> str:
    which = "; ".join(
        f"{f'{SIDES[k]}: ' if sides > 1 else ''}step {step.timeline.step} of {step.run[:40]}, rank {step.rank}"
        for k, step in shown
    )
    text = (
        f"The step closest to the median period ({which}). Short events are merged; the hover text gives their number."
    )
    left = sum(step.timeline.left_out for _, step in shown)
    return (
        text
        + (f" {plural(left, 'less busy stream or thread')} omitted." if left else "")
        + ("" if len(shown) == sides else f" {NO_EVENTS}")
    )
