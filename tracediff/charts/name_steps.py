"""The time of one operation or some work, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from tracediff.aggregate.samples import StepSum
from tracediff.charts.labels import SIDES, label
from tracediff.charts.marks import data_array, hovers, step_dots
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import count, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST = 4000
"""Dots per side; more steps are sampled evenly."""


def name_steps(
    steps: tuple[Sequence[StepSum], Sequence[StepSum]], *, quantity: str = "self time", theme: str = "light"
) -> go.Figure:
    """``quantity`` of one operation (`per_step`) or of some work (`work_per_step`) in every used step of control
    and test, a dot per step.
    """
    import plotly.graph_objects as go

    if not any(step.count for side in steps for step in side):
        return empty(theme, "It did not run in any used step.")
    colours = palette(theme)
    unit = time_unit(step.ns / 1000 for side in steps for step in side)
    figure = go.Figure()
    for which, side in enumerate(steps):
        drawn = side[:: max(1, -(-len(side) // MOST))]
        figure.add_box(
            name=SIDES[which],
            x=data_array([SIDES[which]] * len(drawn)),
            y=[unit.scaled(step.ns / 1000) for step in drawn],
            **step_dots(colours, which),
            line={"color": colours.text, "width": 1},
            fillcolor="rgba(0,0,0,0)",
            **hovers(
                f"{label(s.run, 40)}, rank {s.rank}, step {s.step}<br>{count(s.count)} ×, {time(s.ns / 1000)}"
                for s in drawn
            ),
            showlegend=False,
        )
    figure.update_yaxes(title_text=f"{quantity} per step ({unit.name})", rangemode="tozero")
    figure.update_xaxes(showgrid=False)
    medians = [time(median(step.ns / 1000 for step in side)) if side else "no step" for side in steps]
    return finish(
        figure, theme, f"Median step: {medians[0]} in the control, {medians[1]} in the test", "Each dot is a step.", 260
    )
