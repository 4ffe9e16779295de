"""Control against test, a dot an operation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tracediff.charts.data_array import data_array
from tracediff.charts.labels import both_names, label, not_compared, side_names
from tracediff.charts.op_bars import ops_of, which_device
from tracediff.charts.theme import empty, faint, finish, palette
from tracediff.formatting import change, counts, signed_time, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.charts.theme import Palette
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.ops import Op
    from tracediff.formatting import Unit

MOST = 1500
"""Dots drawn; the largest by time."""
LONGEST_HOVER = 240
LEAST_US = 0.001


def scatter(
    comparison: Comparison, device: str | None = None, band: float = 0.05, *, theme: str = "light"
) -> go.Figure:
    """Self time of each operation per step, control against test, both axes logarithmic.

    Args:
        device: gpu or cpu; by default gpu where there is any.
        band: half width of the band of equivalence around the line of equality, as a part (0.05 for ±5 %).
    """
    import plotly.graph_objects as go

    device = which_device(comparison, device)
    us = comparison.us
    ops = sorted(
        (op for op in ops_of(comparison, device) if op.control_self or op.test_self),
        key=lambda op: -max(op.control_self, op.test_self),
    )
    if not ops:
        return empty(theme, not_compared(comparison) or "No operation on this device took any time.")
    shown = ops[:MOST]
    times = [us(t) for op in shown for t in (op.control_self, op.test_self) if t]
    unit = time_unit(times)
    low, high = max(min(times), LEAST_US), max(times)
    edge = 10 ** (math.log10(low) - 0.06 * max(math.log10(high / low), 1))
    ends = 10 ** (math.log10(edge) - 0.15), high * 1.6
    colours = palette(theme)
    figure = go.Figure()
    _equality(figure, (unit.scaled(ends[0]), unit.scaled(ends[1])), band, colours)
    for kind, marker in _markers(colours).items():
        rows = [op for op in shown if _kind(op) == kind]
        if rows:
            _dots(figure, comparison, kind=kind, rows=rows, unit=unit, edge=edge, marker=marker)
    _axes(figure, comparison, unit, ends)
    return finish(figure, theme, _title(shown, device, band), _subtitle(comparison, ops), 560)


def _markers(colours: Palette) -> dict[str, dict[str, Any]]:
    return {
        "faster": {"color": colours.faster, "symbol": "circle"},
        "slower": {"color": colours.slower, "symbol": "circle"},
        "same": {"color": colours.neutral, "symbol": "circle"},
        "unclear": {"color": colours.neutral, "symbol": "diamond-open"},
        "untested": {"color": colours.quiet, "symbol": "circle-open"},
        "only in the control": {"color": colours.quiet, "symbol": "triangle-down"},
        "only in the test": {"color": colours.quiet, "symbol": "triangle-left"},
    }


def _kind(op: Op) -> str:
    if not op.test_self:
        return "only in the control"
    if not op.control_self:
        return "only in the test"
    return "untested" if op.time_change == "untested" else op.time_change


def _dots(
    figure: go.Figure,
    comparison: Comparison,
    *,
    kind: str,
    rows: list[Op],
    unit: Unit,
    edge: float,
    marker: dict[str, Any],
) -> None:
    """Operations of one kind; those of one side only lie on the edge of the other, at ``ground`` µs."""
    us = comparison.us
    figure.add_scatter(
        name=kind,
        mode="markers",
        x=[unit.scaled(max(us(op.control_self), edge)) for op in rows],
        y=[unit.scaled(max(us(op.test_self), edge)) for op in rows],
        marker={"size": 9, "opacity": 0.85, "line": {"width": 1.3, "color": marker["color"]}, **marker},
        customdata=data_array(_hover(comparison, op) for op in rows),
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(comparison: Comparison, op: Op) -> str:
    us, number = comparison.us, comparison.number
    return (
        f"{both_names(op.name, op.raw_name, LONGEST_HOVER)}<br>{label(op.family)}"
        f"<br>{change(us(op.control_self), us(op.test_self))} ({signed_time(us(op.delta))})"
        f"<br>count {counts(number(op.control_count), number(op.test_count))}"
    )


def _equality(figure: go.Figure, ends: tuple[float, float], band: float, colours: Palette) -> None:
    low, high = ends
    figure.add_scatter(
        x=[low, high, high, low],
        y=[low * (1 + band), high * (1 + band), high / (1 + band), low / (1 + band)],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=faint(colours.quiet, 0.45),
        hoverinfo="skip",
        name=f"within ±{100 * band:g} %",
    )
    figure.add_scatter(
        x=[low, high],
        y=[low, high],
        mode="lines",
        line={"color": colours.muted, "width": 1},
        hoverinfo="skip",
        name="equal",
        showlegend=False,
    )


def _axes(figure: go.Figure, comparison: Comparison, unit: Unit, ends: tuple[float, float]) -> None:
    names = side_names(comparison)
    span = [math.log10(unit.scaled(end)) for end in ends]
    common: dict[str, Any] = {
        "type": "log",
        "range": span,
        "dtick": 1,
        "exponentformat": "none",
        "tickformat": ",~g",
        "zeroline": False,
    }
    figure.update_xaxes(**common, title_text=f"{names[0]}, self time per step ({unit.name})")
    figure.update_yaxes(**common, title_text=f"{names[1]}, self time per step ({unit.name})")


def _title(shown: list[Op], device: str, band: float) -> str:
    pairs = [(op.control_self, op.test_self) for op in shown]
    above = sum(t > c * (1 + band) for c, t in pairs)
    below = sum(c > t * (1 + band) for c, t in pairs)
    what = "GPU work" if device == "gpu" else "Operators"
    return (
        f"{what}: {above:,} more than {100 * band:g} % slower in the test, {below:,} faster, "
        f"{len(pairs) - above - below:,} within ±{100 * band:g} %"
    )


def _subtitle(comparison: Comparison, ops: list[Op]) -> str:
    text = "Above the line: slower in the test. Triangles at the edge: on one side only."
    if all(op.time_change == "untested" for op in ops):
        text += " Significance needs at least three runs per side."
    if len(ops) > MOST:
        left = sum(max(op.control_self, op.test_self) for op in ops[MOST:])
        text += (
            f" The {len(ops) - MOST:,} smallest of {len(ops):,} are not drawn ({time(comparison.us(left))} together)."
        )
    return text
