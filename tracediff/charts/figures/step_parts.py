"""Where the step of one set goes, by state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.share_bars import share_bars
from tracediff.formatting import part, time
from tracediff.profile.step_states import state_label

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.analysis.analysis import Analysis


def step_parts(analysis: Analysis, *, theme: str = "light") -> go.Figure:
    """Time per step in each state, in their order; they add up to the step."""
    states = [(state_label(s.name, analysis.side.has_gpu), analysis.us(s.ns)) for s in analysis.states if s.ns]
    title = f"A step takes {time(analysis.us(analysis.period))}"
    if states:
        name, us = max(states, key=lambda s: s[1])
        title += f"; “{name}” is {part(us, analysis.us(analysis.period))} of it"
    return share_bars(states, title, "The states add up to the step time.", theme)
