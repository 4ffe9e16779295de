"""From the control's step to the test's, state by state."""

from itertools import accumulate

import plotly.graph_objects as go

from tracediff import bounds
from tracediff.charts.labels import label, not_compared, set_names
from tracediff.charts.marks import hovers, name_rows
from tracediff.charts.theme import empty, finish, palette
from tracediff.diff.comparison import Comparison
from tracediff.formatting import change, signed_percent, signed_time, time, time_unit
from tracediff.profile.events.step_states import state_label
from tracediff.structs import Pair, total


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
    deltas = [times.delta for times in changes.values()]
    totals = [*accumulate(deltas, initial=ends[0])]
    values = [ends[0], *deltas, ends[1]]
    figure = go.Figure()
    figure.add_waterfall(
        orientation="h",
        measure=["absolute", *["relative"] * len(changes), "total"],
        x=[unit.scaled(value) for value in values],
        y=list(range(len(values))),
        text=[unit.text(ends[0]), *map(unit.signed_text, deltas), unit.text(ends[1])],
        textposition="outside",
        cliponaxis=False,
        increasing={"marker": {"color": colours.slower}},
        decreasing={"marker": {"color": colours.faster}},
        totals={"marker": {"color": colours.quiet}},
        connector={"mode": "between", "line": {"color": colours.muted, "width": 1, "dash": "dot"}},
        showlegend=False,
        **hovers(_hovers(changes, ends, names)),
    )
    name_rows(figure, [f"<b>{names[0]}</b>", *map(label, changes), f"<b>{names[1]}</b>"])
    lowest, high = min(*totals, *ends), max(*totals, *ends)
    span = high - lowest
    low = max(lowest - span, 0.0) if 0 < span < bounds.FLAT_CHART * high else 0.0  # where the axis begins
    note = f" The axis starts at {time(low)}." if low else ""
    figure.update_xaxes(
        title_text=f"time {comparison.basis} ({unit.name})",
        range=[unit.scaled(low), unit.scaled(high + 0.4 * (high - low))],
    )
    return finish(
        figure,
        theme,
        _title(ends, changes),
        f"Each bar starts where the one above ends; together they are the whole change.{note}",
        60 + 34 * len(values),
    )


def _changes(comparison: Comparison) -> dict[str, Pair[float]]:
    """State → µs per step on both sides, of those that changed, in their order; small ones as one at the end."""
    us, step = comparison.us, comparison.step_time
    least = bounds.SMALL_BAR * max(step.period)
    states = [s for s in step.states if s.delta]
    small = [s for s in states if abs(s.delta) < least]
    if len(small) < 2:
        small = []
    changes = {state_label(s.name, comparison.has_gpu): s.time.map(us) for s in states if s not in small}
    if small:
        changes[f"{len(small)} smaller changes"] = total(s.time for s in small).map(us)
    return changes


def _hovers(changes: dict[str, Pair[float]], ends: tuple[float, float], names: tuple[str, ...]) -> list[str]:
    """What each bar says on hovering: both ends, and between them the states."""
    control, test = (f"{name}<br>{time(us)}" for name, us in zip(names, ends, strict=True))
    states = (
        f"<b>{label(state, 120)}</b><br>{names[0]} {time(us.control)}<br>{names[1]} {time(us.test)}<br>"
        f"change {signed_time(us.delta, *us)}"
        for state, us in changes.items()
    )
    return [control, *states, test]


def _title(ends: tuple[float, float], changes: dict[str, Pair[float]]) -> str:
    head = f"Step time {change(*ends)} ({signed_percent(ends[1] / ends[0] - 1)})"
    if ends[0] == ends[1]:
        head = f"Step time {time(ends[0])} on both sides"
    if not changes:
        return f"{head}; no state changed"
    state, times = max(changes.items(), key=lambda change: abs(change[1].delta))
    return f"{head}; largest change: “{state}”, {signed_time(times.delta, *ends)}"
