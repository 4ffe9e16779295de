"""Durations per operation on both sides, and their difference: one of the pair of figures that HTA's users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import choice
from tracediff.charts.op_bars import TOP, Bar, draw_op_bars, ops_of, which_device
from tracediff.formatting import time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison


def duration_diff(
    comparison: Comparison,
    top: int = TOP,
    sort: str = "change",
    device: str | None = None,
    time: str = "self",
    *,
    theme: str = "light",
) -> go.Figure:
    """Time of each operation per step on both sides, and the difference.

    Args:
        top: how many. sort: one of SORTS.
        device: gpu or cpu; by default gpu where there is any.
        time: ``self`` (without what it calls) or ``total``; on the GPU they are the same.
    """
    device = which_device(comparison, device)
    choice("time", time, ("self", "total"))
    us, is_self = comparison.us, time == "self"
    bars = [
        Bar(op, us(op.control_self if is_self else op.control_total), us(op.test_self if is_self else op.test_total))
        for op in ops_of(comparison, device)
    ]
    what = "GPU time" if device == "gpu" else f"{time} time on the host"
    unit = time_unit(v for b in bars for v in (b.control, b.test))
    return draw_op_bars(comparison, bars, what, unit, top=top, sort=sort, theme=theme)
