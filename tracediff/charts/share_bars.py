"""Bars of the parts of one whole, in the order given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import full_name, label
from tracediff.charts.marks import hovers
from tracediff.charts.rows import name_rows
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import part, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go


def share_bars(lines: list[tuple[str, float]], title: str, subtitle: str, theme: str) -> go.Figure:
    """A figure with one bar per line; times in µs."""
    import plotly.graph_objects as go

    colours = palette(theme)
    if not lines:
        return empty(theme, "No step has a duration.")
    unit = time_unit(us for _, us in lines)
    whole = sum(us for _, us in lines)
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        x=[unit.scaled(us) for _, us in lines],
        y=list(range(len(lines))),
        marker_color=colours.test,
        text=[time(us) for _, us in lines],
        textposition="outside",
        cliponaxis=False,
        **hovers(f"<b>{full_name(name, 240)}</b><br>{time(us)} per step, {part(us, whole)}" for name, us in lines),
        showlegend=False,
    )
    name_rows(figure, [label(name) for name, _ in lines])
    figure.update_xaxes(
        title_text=f"time per step ({unit.name})", range=[0, 1.25 * unit.scaled(max(us for _, us in lines))]
    )
    return finish(figure, theme, title, subtitle, 70 + 28 * len(lines))
