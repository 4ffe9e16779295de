"""Parts of a whole: the work of both sides by family; of one set the step by state, and its work."""

import plotly.graph_objects as go

from tracediff import bounds
from tracediff.analysis import Analysis
from tracediff.charts.labels import choice, full_name, label, not_compared
from tracediff.charts.marks import hovers, name_rows, split
from tracediff.charts.theme import empty, finish, palette, readable
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import Sum, summed
from tracediff.formatting import change, part, signed_time, time, time_unit
from tracediff.profile.events.step_states import state_label
from tracediff.structs import SIDES, total


def families(comparison: Comparison, *, theme: str = "light") -> go.Figure:
    """GPU time (without a GPU self time of operators) per step by family, control above test; the parts add up to the
    account.
    """
    colours = palette(theme)
    parts = _parts(comparison, len(colours.parts))
    if not parts:
        return empty(theme, not_compared(comparison) or "The traces contain no work in the used steps.")
    whole = total(p.time for p in parts).map(comparison.us)
    unit = time_unit(whole)
    words = {f.name: f.significance.word for f in comparison.families if f.significance.word}
    figure = go.Figure()
    for k, family in enumerate(parts):
        colour = (*colours.parts, colours.quiet)[min(k, len(colours.parts))]
        values = family.time.map(comparison.us)
        significance = f"<br>significance: {words[family.name]}" if family.name in words else ""
        hover = (
            f"<b>{label(family.name, 80)}</b><br>{change(*values)} "
            f"({signed_time(values.delta)}) {comparison.basis}{significance}"
        )
        figure.add_bar(
            name=label(family.name, 28),
            orientation="h",
            y=[0, 1],
            x=[unit.scaled(v) for v in values],
            marker={
                "color": colour,
                "line": {"color": colours.paper, "width": 1},
            },
            text=[label(family.name, 28)] * 2,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": readable(colour)},
            **hovers([hover] * 2),
        )
    labels = [label(side.label, 24) for side in comparison.sides]
    ticks = [f"<b>{which}</b><br>{name}<br>{time(v)}" for which, name, v in zip(SIDES, labels, whole, strict=True)]
    name_rows(figure, ticks)
    figure.update_xaxes(title_text=f"time {comparison.basis} ({unit.name})")
    figure.update_layout(barmode="stack", legend={"entrywidth": 110})
    finish(figure, theme, _title(comparison, parts, whole), "Events that overlap in time each count in full.", 340)
    return figure.update_layout(legend={"y": -0.38})  # where it has many rows the bars get low


def _parts(comparison: Comparison, most: int) -> list[Sum]:
    """Families by size; beyond ``most``, the smallest as one; then unattributed work."""
    lines = sorted(
        (s for s in summed(comparison.work, "family") if any(s.time)),
        key=lambda s: (-max(s.time), s.name),
    )
    parts, rest = split(lines, most)
    if rest:
        parts.append(Sum(total(s.time for s in rest), name=f"{len(rest)} smaller families"))
    if any(comparison.work.unattributed):
        parts.append(Sum(comparison.work.unattributed, name="unattributed"))
    return parts


def _title(comparison: Comparison, parts: list[Sum], whole: tuple[float, float]) -> str:
    what = "GPU time" if comparison.gpu_time.groups else "Operator self time"
    largest = max(parts, key=lambda p: abs(p.delta))
    head = f"{what} {comparison.basis}: {change(*whole)}"
    if not largest.delta:
        return f"{head}; no family changed"
    return f"{head}; {largest.name} changed most ({signed_time(comparison.us(largest.delta), *whole)})"


def step_parts(analysis: Analysis, *, theme: str = "light") -> go.Figure:
    """Time per step in each state, in their order; they add up to the step."""
    states = [(state_label(s.name, analysis.side.has_gpu), analysis.us(s.ns)) for s in analysis.states if s.ns]
    title = f"A step takes {time(analysis.us(analysis.period))}"
    if states:
        name, us = max(states, key=lambda s: s[1])
        title += f"; “{name}” is {part(us, analysis.us(analysis.period))} of it"
    return share_bars(states, title, "The states add up to the step time.", theme)


def work_parts(analysis: Analysis, by: str = "family", *, theme: str = "light") -> go.Figure:
    """The work of a step.

    Args:
        by: ``family``, ``phase``, ``module``, ``op`` or ``kernel``.
    """
    choice("by", by, analysis.views)
    lines = [(s.name, analysis.us(s.ns)) for s in analysis.views[by] if s.ns]
    first, rest = split(lines, bounds.WORK_BARS)
    if rest:
        lines = [*first, (f"{len(rest):,} smaller", sum(us for _, us in rest))]
    what = "GPU time" if analysis.side.has_gpu else "Operator self time"
    whole = analysis.us(analysis.work)
    title = f"{what} by {by}: {time(whole)} per step"
    if lines:
        title += f"; “{lines[0][0][:60]}” is {part(lines[0][1], whole)} of it"
    return share_bars(lines, title, "Events that overlap in time each count in full.", theme)


def share_bars(lines: list[tuple[str, float]], title: str, subtitle: str, theme: str) -> go.Figure:
    """A figure with one bar per line; times in µs."""
    colours = palette(theme)
    if not lines:
        return empty(theme, "No step has a duration.")
    unit = time_unit(us for _, us in lines)
    whole = sum(us for _, us in lines)
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        x=[unit.scaled(us) for _, us in lines],
        y=list(range(len(lines))),
        marker_color=colours.test,
        text=[time(us) for _, us in lines],
        textposition="outside",
        cliponaxis=False,
        **hovers(f"<b>{full_name(name, 240)}</b><br>{time(us)} per step, {part(us, whole)}" for name, us in lines),
        showlegend=False,
    )
    name_rows(figure, [label(name) for name, _ in lines])
    figure.update_xaxes(
        title_text=f"time per step ({unit.name})", range=[0, 1.25 * unit.scaled(max(us for _, us in lines))]
    )
    return finish(figure, theme, title, subtitle, 70 + 28 * len(lines))
