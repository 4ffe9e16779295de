"""Rows of bars with names, and panels above each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go


def name_rows(figure: go.Figure, names: Sequence[str], **where: Any) -> None:
    """Name the rows of horizontal bars, the first at the top.

    Args:
        where: ``row`` and ``col`` of their panel.
    """
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
        **where,
    )


def panels(titles: Sequence[str], spacing: float, heights: Sequence[int] | None = None) -> go.Figure:
    """A figure of panels above each other with one x axis.

    Args:
        spacing: between two, as a part of the figure's height. heights: relative to each other.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(
        len(titles),
        1,
        shared_xaxes=True,
        vertical_spacing=spacing,
        row_heights=None if heights is None else [float(height) for height in heights],
        subplot_titles=list(titles),
    )
    return figure.update_annotations(font={"size": 13}, x=0, xanchor="left")
