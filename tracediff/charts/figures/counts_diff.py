"""Counts per operation on both sides, and their difference: the other of the pair of figures that HTA's users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.op_bars import TOP, Bar, draw_op_bars, ops_of, which_device

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison


def counts_diff(
    comparison: Comparison, top: int = TOP, sort: str = "change", device: str | None = None, *, theme: str = "light"
) -> go.Figure:
    """Occurrences of each operation per step on both sides, and the difference. Arguments as `duration_diff`."""
    device = which_device(comparison, device)
    number = comparison.number
    bars = [Bar(op, number(op.control_count), number(op.test_count)) for op in ops_of(comparison, device)]
    what = f"Count of {'GPU events' if device == 'gpu' else 'operators and runtime calls'}"
    return draw_op_bars(comparison, bars, what, None, top=top, sort=sort, theme=theme)
