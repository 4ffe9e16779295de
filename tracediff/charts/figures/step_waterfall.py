"""From the control's step to the test's, state by state."""

from __future__ import annotations

from itertools import accumulate

import plotly.graph_objects as go
from msgspec import Struct

from tracediff import bounds
from tracediff.charts.labels import basis, label, not_compared, set_names, side_names
from tracediff.charts.marks import data_array, hovers, name_rows
from tracediff.charts.theme import Palette, empty, finish, palette
from tracediff.diff.comparison import Comparison
from tracediff.formatting import Unit, change, signed_percent, signed_time, time, time_unit
from tracediff.pair import Pair, total
from tracediff.profile.events.step_states import state_label

BAR_WIDTH = 0.75
"""Thickness of a bar as a fraction of its row."""


class StateChange(Struct, frozen=True):
    """The change of one state: ``delta`` in µs per step. ``name`` is plain text."""

    name: str
    us: Pair[float]
    delta: float


def step_waterfall(comparison: Comparison, *, theme: str = "light") -> go.Figure:
    """Mean time per step of the control, the change of each state, and the test's; the bars add up."""
    colours = palette(theme)
    refused = not_compared(comparison)
    if refused or not comparison.step_time.period.control:
        return empty(theme, refused or "No step has a duration.")
    us = comparison.us
    ends = comparison.step_time.period.map(us)
    changes = _changes(comparison)
    totals = list(accumulate((c.delta for c in changes), initial=ends[0]))
    unit, names = time_unit(ends), set_names(comparison)
    figure = go.Figure()
    _totals(
        figure,
        ends=ends,
        last=len(changes) + 1,
        unit=unit,
        names=side_names(comparison),
        colours=colours.sides,
    )
    _bars(figure, changes, totals, unit, names, colours)
    _connect(figure, [*totals, ends[1]], unit, colours.muted)
    rows = [f"<b>{names[0]}</b>", *(label(c.name) for c in changes), f"<b>{names[1]}</b>"]
    name_rows(figure, rows)
    low = _start(totals, ends)
    high = max(*totals, *ends)
    note = f" The axis starts at {time(low)}." if low else ""
    figure.update_xaxes(
        title_text=f"time {basis(comparison)} ({unit.name})",
        range=[unit.scaled(low), unit.scaled(high + 0.4 * (high - low))],
    )
    figure.update_layout(barmode="overlay")
    figure.update_traces(width=BAR_WIDTH, selector={"type": "bar"})  # plotly's depends on the rows that a colour has
    return finish(
        figure,
        theme,
        _title(ends, changes),
        f"Each bar starts where the one above ends; together they are the whole change.{note}",
        60 + 34 * len(rows),
    )


def _changes(comparison: Comparison) -> list[StateChange]:
    """The states that changed, in their order; small ones as one at the end."""
    us, step, has_gpu = comparison.us, comparison.step_time, comparison.has_gpu
    least = bounds.SMALL_BAR * max(step.period)
    states = [s for s in step.states if s.delta]
    small = [s for s in states if abs(s.delta) < least]
    if len(small) < 2:
        small = []
    out = [StateChange(state_label(s.name, has_gpu), s.time.map(us), us(s.delta)) for s in states if s not in small]
    if small:
        out.append(
            StateChange(
                f"{len(small)} smaller changes",
                total(s.time for s in small).map(us),
                us(sum(s.delta for s in small)),
            )
        )
    return out


def _start(totals: list[float], ends: tuple[float, float]) -> float:
    """Where the axis begins, in µs."""
    low, high = min(*totals, *ends), max(*totals, *ends)
    span = high - low
    return max(low - span, 0.0) if 0 < span < bounds.FLAT_CHART * high else 0.0


def _totals(
    figure: go.Figure,
    *,
    ends: tuple[float, float],
    last: int,
    unit: Unit,
    names: tuple[str, ...],
    colours: tuple[str, str],
) -> None:
    for place, value, name, colour in zip((0, last), ends, names, colours, strict=True):
        figure.add_bar(
            name=name,
            x=[unit.scaled(value)],
            y=[place],
            orientation="h",
            marker_color=colour,
            showlegend=False,
            cliponaxis=False,
            text=[unit.text(value)],
            textposition="outside",
            **hovers([f"{name}<br>{time(value)}"]),
        )


def _bars(
    figure: go.Figure,
    changes: list[StateChange],
    totals: list[float],
    unit: Unit,
    names: tuple[str, ...],
    colours: Palette,
) -> None:
    for name, colour, sign in (("faster", colours.faster, -1), ("slower", colours.slower, 1)):
        rows = [(k + 1, totals[k], c) for k, c in enumerate(changes) if c.delta * sign > 0]
        figure.add_bar(
            name=name,
            orientation="h",
            marker_color=colour,
            showlegend=False,
            y=[k for k, _, _ in rows],
            base=[unit.scaled(min(start, start + c.delta)) for _, start, c in rows],
            x=[unit.scaled(abs(c.delta)) for _, _, c in rows],
            text=[f"{unit.signed(c.delta)} {unit.name}" for _, _, c in rows],
            textposition="outside",
            cliponaxis=False,
            **hovers(
                f"<b>{label(c.name, 120)}</b><br>{names[0]} {time(c.us.control)}<br>{names[1]} {time(c.us.test)}<br>"
                f"change {signed_time(c.delta, *c.us)}"
                for _, _, c in rows
            ),
        )


def _connect(figure: go.Figure, levels: list[float], unit: Unit, colour: str) -> None:
    """Thin lines from the end of each bar to the next."""
    x: list[float | None] = []
    y: list[float | None] = []
    for k, level in enumerate(levels[:-1]):
        x += [unit.scaled(level), unit.scaled(level), None]
        y += [k, k + 1, None]
    figure.add_scatter(
        x=data_array(x),
        y=data_array(y),
        mode="lines",
        line={"color": colour, "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )


def _title(ends: tuple[float, float], changes: list[StateChange]) -> str:
    head = f"Step time {change(*ends)} ({signed_percent(ends[1] / ends[0] - 1)})"
    if ends[0] == ends[1]:
        head = f"Step time {time(ends[0])} on both sides"
    if not changes:
        return f"{head}; no state changed"
    largest = max(changes, key=lambda c: abs(c.delta))
    return f"{head}; largest change: “{largest.name}”, {signed_time(largest.delta, *ends)}"
