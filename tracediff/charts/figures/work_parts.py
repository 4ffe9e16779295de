"""The work of one set, by family, phase, module, operator or kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import choice
from tracediff.charts.share_bars import share_bars
from tracediff.formatting import part, time

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.analysis.analysis import Analysis


MOST = 25
"""Bars; the rest share one."""


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
    what = "GPU time" if analysis.side.has_gpu else "Operator self time"
    whole = analysis.us(analysis.work)
    title = f"{what} by {by}: {time(whole)} per step"
    if lines:
        title += f"; “{lines[0][0][:60]}” is {part(lines[0][1], whole)} of it"
    return share_bars(lines, title, "Events that overlap in time each count in full.", theme)
