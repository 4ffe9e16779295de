"""The work of both sides by family, as parts of a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import SIDES, label, not_compared
from tracediff.charts.marks import hovers
from tracediff.charts.theme import empty, finish, palette, readable
from tracediff.diff.views import Sum, summed
from tracediff.formatting import change, signed_time, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison


def families(comparison: Comparison, *, theme: str = "light") -> go.Figure:
    """GPU time (without a GPU self time of operators) per step by family, control above test; the parts add up to the
    account.
    """
    import plotly.graph_objects as go

    colours = palette(theme)
    parts = _parts(comparison, len(colours.parts))
    if not parts:
        return empty(theme, not_compared(comparison) or "The traces contain no work in the used steps.")
    us = comparison.us
    whole = us(sum(p.control for p in parts)), us(sum(p.test for p in parts))
    unit = time_unit(whole)
    words = {f.name: f.time_change for f in comparison.families if f.time_change != "untested"}
    figure = go.Figure()
    for k, part in enumerate(parts):
        colour = (*colours.parts, colours.quiet)[min(k, len(colours.parts))]
        values = us(part.control), us(part.test)
        significance = f"<br>significance: {words[part.name]}" if part.name in words else ""
        hover = (
            f"<b>{label(part.name, 80)}</b><br>{change(values[0], values[1])} "
            f"({signed_time(values[1] - values[0])}) per step{significance}"
        )
        figure.add_bar(
            name=label(part.name, 28),
            orientation="h",
            y=[0, 1],
            x=[unit.scaled(v) for v in values],
            marker={
                "color": colour,
                "line": {"color": colours.paper, "width": 1},
            },
            text=[label(part.name, 28)] * 2,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": readable(colour)},
            **hovers([hover] * 2),
        )
    labels = [label(side.label, 24) for side in (comparison.control, comparison.test)]
    ticks = [f"<b>{which}</b><br>{name}<br>{time(v)}" for which, name, v in zip(SIDES, labels, whole, strict=True)]
    figure.update_yaxes(tickmode="array", tickvals=[0, 1], ticktext=ticks, range=[1.5, -0.5], showgrid=False)
    figure.update_xaxes(title_text=f"time per step ({unit.name})")
    figure.update_layout(barmode="stack", legend={"entrywidth": 110})
    finish(figure, theme, _title(comparison, parts, whole), "Events that overlap in time each count in full.", 340)
    return figure.update_layout(legend={"y": -0.38})  # where it has many rows the bars get low


def _parts(comparison: Comparison, most: int) -> list[Sum]:
    """Families by size; beyond ``most``, the smallest as one; then unattributed work."""
    lines = sorted(
        (s for s in summed(comparison.work, "family") if s.control or s.test),
        key=lambda s: (-max(s.control, s.test), s.name),
    )
    cut = most if len(lines) > most + 1 else len(lines)
    rest = lines[cut:]
    work = comparison.work
    parts = lines[:cut]
    if rest:
        parts.append(Sum(f"{len(rest)} smaller families", sum(s.control for s in rest), sum(s.test for s in rest)))
    if work.unattributed_control or work.unattributed_test:
        parts.append(Sum("unattributed", work.unattributed_control, work.unattributed_test))
    return parts


def _title(comparison: Comparison, parts: list[Sum], whole: tuple[float, float]) -> str:
    what = "GPU time" if comparison.gpu_time.groups else "Operator self time"
    largest = max(parts, key=lambda p: abs(p.delta))
    head = f"{what} per step: {change(whole[0], whole[1])}"
    return (
        f"{head}; {largest.name} changed most ({signed_time(comparison.us(largest.delta))})"
        if largest.delta
        else f"{head}; no family changed"
    )
