"""Counts and durations by name of two sides, as grouped bars: the figures of HTA's TraceDiff, over its frame."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from tracediff.charts.marks import data_array
from tracediff.errors import TracediffError

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

DURATION = "_total_duration"
LONGEST_TICK = 48
"""Characters of a name under its bars; the whole name is in the hover."""


def counts_diff(frame: pd.DataFrame, top: int | None = None) -> go.Figure:
    """Occurrences of each name on both sides, and their difference.

    Args:
        frame: from `tracediff.hta.TraceDiff.compare_traces` (or HTA's own), filtered and ordered at will.
        top: draw only the names whose counts changed most, in the frame's order.

    Raises:
        TracediffError: the frame has not two sides.
    """
    return _grouped_bars(
        frame, suffix="_counts", difference="diff_counts", top=top, title="Counts by name", unit="count"
    )


def duration_diff(frame: pd.DataFrame, top: int | None = None) -> go.Figure:
    """Total duration of each name on both sides in µs, and their difference. Arguments as `counts_diff`."""
    return _grouped_bars(
        frame,
        suffix=DURATION,
        difference="diff_duration",
        top=top,
        title="Total duration by name",
        unit="total duration (µs)",
    )


def _grouped_bars(
    frame: pd.DataFrame, *, suffix: str, difference: str, top: int | None, title: str, unit: str
) -> go.Figure:
    import plotly.graph_objects as go

    labels = _labels(frame)
    shown = _most_changed(frame, difference, top)
    names = [escape(str(name), quote=False) for name in shown.index]
    places = list(range(len(names)))
    columns = {**{label: label + suffix for label in labels}, "Difference": difference}
    bars: list[Any] = [
        go.Bar(
            name=escape(label, quote=False),
            x=places,
            y=shown[column].tolist(),
            customdata=data_array(names),
            hovertemplate="%{customdata}<br>%{y:,}",
        )
        for label, column in columns.items()
    ]
    if len(shown) < len(frame):
        title += f": the {len(shown)} of {len(frame)} that changed most"
    ticks = [escape(_shortened(str(name)), quote=False) for name in shown.index]
    figure = go.Figure(bars)
    figure.update_layout(barmode="group", title_text=title, yaxis_title=unit)
    figure.update_xaxes(tickmode="array", tickvals=places, ticktext=ticks, automargin=True)
    return figure


def _labels(frame: pd.DataFrame) -> list[str]:
    """The two sides' labels, control first."""
    labels = [column.removesuffix(DURATION) for column in frame.columns if column.endswith(DURATION)]
    if len(labels) != 2:
        raise TracediffError(
            "the frame",
            f"has {len(labels)} columns that end in {DURATION}, not 2",
            "give a frame from TraceDiff.compare_traces",
        )
    return labels


def _most_changed(frame: pd.DataFrame, difference: str, top: int | None) -> pd.DataFrame:
    """The ``top`` rows with the largest absolute difference, in the frame's order."""
    if top is None or len(frame) <= top:
        return frame
    order = frame[difference].abs().to_numpy().argsort(kind="stable")[::-1][:top]
    return frame.iloc[sorted(order)]


def _shortened(name: str) -> str:
    half = LONGEST_TICK // 2
    return name if len(name) <= LONGEST_TICK else f"{name[: half - 1]}…{name[-half:]}"
