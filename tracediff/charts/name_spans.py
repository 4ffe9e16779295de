"""When something ran: its spans in one step of each side, on one time axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracediff.charts.labels import SIDES, label
from tracediff.charts.marks import data_array, hovers
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import plural, time, time_unit
from tracediff.ingest.times import Int64
from tracediff.profile.arrays.intervals import union

if TYPE_CHECKING:
    import plotly.graph_objects as go

NARROWEST = 1 / 1000
"""Part of the longer step that a mark is wide at least; marks that touch are one."""


@dataclass(frozen=True)
class StepSpans:
    """What ran in one step.

    Attributes:
        where: the step, in words. period_ns: of the step. start, end: int64[n] ns after the start of the step.
    """

    where: str
    period_ns: int
    start: Int64
    end: Int64


def name_spans(sides: tuple[StepSpans | None, StepSpans | None], *, theme: str = "light") -> go.Figure:
    """The spans of control and test, each a lane; None for a side whose events are not at hand."""
    import plotly.graph_objects as go

    if not any(side is not None and len(side.start) for side in sides):
        return empty(theme, "It did not run in the steps that are shown.")
    colours = palette(theme)
    longest = max(side.period_ns for side in sides if side)
    unit = time_unit([longest / 1000])
    figure = go.Figure()
    for which, side in enumerate(sides):
        if side is None:
            continue
        shown = union(side.start, np.maximum(side.end, side.start + int(longest * NARROWEST)))
        first = np.searchsorted(np.sort(side.start), shown.start, side="left")
        count = np.diff(np.append(first, len(side.start)))
        figure.add_bar(
            name=SIDES[which],
            orientation="h",
            y=data_array([SIDES[which]] * len(shown.start)),
            base=shown.start / 1000 / unit.size,
            x=(shown.end - shown.start) / 1000 / unit.size,
            width=0.5,
            marker={"color": colours.sides[which]},
            **hovers(
                f"{label(side.where, 60)}<br>{plural(n, 'event')} from {time(start / 1000)} on, {time(took / 1000)}"
                for n, start, took in zip(
                    count.tolist(), shown.start.tolist(), (shown.end - shown.start).tolist(), strict=True
                )
            ),
            showlegend=False,
        )
    figure.update_xaxes(title_text=f"time in the step ({unit.name})", range=[0, longest / 1000 / unit.size])
    figure.update_yaxes(categoryorder="array", categoryarray=SIDES[::-1], showgrid=False)
    figure.update_layout(barmode="overlay")
    told = [
        f"{plural(len(side.start), 'event')}, {time(int((side.end - side.start).sum()) / 1000)}" if side else "unknown"
        for side in sides
    ]
    where = "; ".join(f"{name}: {side.where}" for name, side in zip(SIDES, sides, strict=True) if side)
    return finish(figure, theme, f"{told[0]} in the control, {told[1]} in the test", where, 200)
