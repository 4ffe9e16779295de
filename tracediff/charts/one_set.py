"""One set: the parts of its step and of its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import choice, full_name, label, state_label, time_text, unit_for
from tracediff.charts.theme import empty, finish, palette

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.analysis.analysis import Analysis

MOST = 25
"""Bars; the rest share one."""


def step_parts(analysis: Analysis, *, theme: str = "light") -> go.Figure:
    """Time per step in each state, in their order; they add up to the step."""
    states = [(state_label(s.name, analysis.side.has_gpu), analysis.us(s.ns)) for s in analysis.states if s.ns]
    title = f"A step takes {time_text(analysis.us(analysis.period))}"
    if states:
        name, us = max(states, key=lambda s: s[1])
        title += f"; {100 * us / analysis.us(analysis.period):.0f} % of it is “{name}”"
    return _bars(states, title, "States add up to the step.", theme)


def work_parts(analysis: Analysis, by: str = "family", *, theme: str = "light") -> go.Figure:
    """The work of a step.

    Args:
        by: ``family``, ``phase``, ``module``, ``op`` or ``kernel``.
    """
    choice("by", by, analysis.views)
    lines = [(s.name, analysis.us(s.ns)) for s in analysis.views[by] if s.ns]
    rest = lines[MOST:]
    if len(rest) > 1:
        lines = [*lines[:MOST], (f"{len(rest):,} smaller", sum(us for _, us in rest))]
    what = "GPU time" if analysis.side.has_gpu else "Self time of operators"
    whole = analysis.us(analysis.work)
    title = f"{what} by {by}: {time_text(whole)} per step"
    if lines:
        title += f", {100 * lines[0][1] / whole:.0f} % of it “{lines[0][0][:60]}”"
    return _bars(lines, title, "Events that run at the same time count each.", theme)


def _bars(lines: list[tuple[str, float]], title: str, subtitle: str, theme: str) -> go.Figure:
    """A bar a line; times in µs."""
    import plotly.graph_objects as go

    of = palette(theme)
    if not lines:
        return empty(theme, "No step has any time: there is nothing to show.")
    unit = unit_for(us for _, us in lines)
    whole = sum(us for _, us in lines)
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        x=[unit.of(us) for _, us in lines],
        y=list(range(len(lines))),
        marker_color=of.test,
        text=[time_text(us) for _, us in lines],
        textposition="outside",
        cliponaxis=False,
        customdata=[f"<b>{full_name(name, 240)}</b><br>{time_text(us)} per step, {100 * us / whole:.1f} %" for name, us in lines],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(lines))), ticktext=[label(name) for name, _ in lines], range=[len(lines) - 0.4, -0.6])
    figure.update_yaxes(showgrid=False, zeroline=False)
    figure.update_xaxes(title_text=f"time per step ({unit.name})", range=[0, 1.25 * unit.of(max(us for _, us in lines))])
    return finish(figure, theme, title, subtitle, 70 + 28 * len(lines))
