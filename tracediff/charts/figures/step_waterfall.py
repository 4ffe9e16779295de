"""From the control's step to the test's, state by state."""

from __future__ import annotations

from itertools import accumulate

import plotly.graph_objects as go
from msgspec import Struct

from tracediff import bounds
from tracediff.charts.labels import basis, label, not_compared, set_names
from tracediff.charts.marks import hovers, name_rows
from tracediff.charts.theme import empty, finish, palette
from tracediff.diff.comparison import Comparison
from tracediff.formatting import change, signed_percent, signed_time, time, time_unit
from tracediff.pair import Pair, total
from tracediff.profile.events.step_states import state_label


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
    unit, names = time_unit(ends), set_names(comparison)
    totals = [*accumulate((c.delta for c in changes), initial=ends[0])]
    values = [ends[0], *(c.delta for c in changes), ends[1]]
    figure = go.Figure()
    figure.add_waterfall(
        orientation="h",
        measure=["absolute", *("relative" for _ in changes), "total"],
        x=[unit.scaled(value) for value in values],
        y=list(range(len(values))),
        text=[unit.text(ends[0]), *(f"{unit.signed(c.delta)} {unit.name}" for c in changes), unit.text(ends[1])],
        textposition="outside",
        cliponaxis=False,
        increasing={"marker": {"color": colours.slower}},
        decreasing={"marker": {"color": colours.faster}},
        totals={"marker": {"color": colours.quiet}},
        connector={"mode": "between", "line": {"color": colours.muted, "width": 1, "dash": "dot"}},
        showlegend=False,
        **hovers(_hovers(changes, ends, names)),
    )
    name_rows(figure, [f"<b>{names[0]}</b>", *(label(c.name) for c in changes), f"<b>{names[1]}</b>"])
    low = _start(totals, ends)
    high = max(*totals, *ends)
    note = f" The axis starts at {time(low)}." if low else ""
    figure.update_xaxes(
        title_text=f"time {basis(comparison)} ({unit.name})",
        range=[unit.scaled(low), unit.scaled(high + 0.4 * (high - low))],
    )
    return finish(
        figure,
        theme,
        _title(ends, changes),
        f"Each bar starts where the one above ends; together they are the whole change.{note}",
        60 + 34 * len(values),
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


def _hovers(changes: list[StateChange], ends: tuple[float, float], names: tuple[str, ...]) -> list[str]:
    """What each bar says on hovering: both ends, and between them the states."""
    control, test = (f"{name}<br>{time(us)}" for name, us in zip(names, ends, strict=True))
    states = (
        f"<b>{label(c.name, 120)}</b><br>{names[0]} {time(c.us.control)}<br>{names[1]} {time(c.us.test)}<br>"
        f"change {signed_time(c.delta, *c.us)}"
        for c in changes
    )
    return [control, *states, test]


def _title(ends: tuple[float, float], changes: list[StateChange]) -> str:
    head = f"Step time {change(*ends)} ({signed_percent(ends[1] / ends[0] - 1)})"
    if ends[0] == ends[1]:
        head = f"Step time {time(ends[0])} on both sides"
    if not changes:
        return f"{head}; no state changed"
    largest = max(changes, key=lambda c: abs(c.delta))
    return f"{head}; largest change: “{largest.name}”, {signed_time(largest.delta, *ends)}"
