"""Memory allocated over the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.labels import in_which, label, side_names, sides_of
from tracediff.charts.marks import hovers
from tracediff.charts.rows import panels
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import byte_unit, size, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.representative_step import TypicalStep
    from tracediff.analysis.analysis import Analysis
    from tracediff.charts.theme import Palette
    from tracediff.diff.comparison import Comparison
    from tracediff.formatting import Unit
    from tracediff.profile.model import Memory

MOST_DEVICES = 8
"""Panels; of more devices those with most memory."""


def memory(subject: Comparison | Analysis, *, theme: str = "light") -> go.Figure:
    """Bytes allocated on each device over the typical step of both sides (or of one set), beginning at 0."""
    shown = [
        (which, side.typical)
        for which, side in enumerate(sides_of(subject))
        if side.typical and side.typical.timeline.memory
    ]
    if not shown:
        return empty(theme, "No memory events: record the traces with profile_memory=True. Snapshots contain none.")
    colours = palette(theme)
    sides = sides_of(subject)
    devices = _devices([step for _, step in shown])
    unit = time_unit((step.timeline.end - step.timeline.start) / 1000 for _, step in shown)
    figure = panels([label(device) for device in devices], 0.3 / len(devices))
    length = max((step.timeline.end - step.timeline.start) / 1000 for _, step in shown)
    for row, device in enumerate(devices, start=1):
        _panel(
            figure,
            row,
            [(which, step, m) for which, step in shown for m in step.timeline.memory if m.device == device],
            unit=unit,
            theme_colours=colours,
            names=side_names(subject),
        )
    figure.update_xaxes(range=[0, unit.scaled(length)])
    figure.update_xaxes(title_text=f"time in the step ({unit.name})", row=len(devices), col=1)
    return finish(
        figure,
        theme,
        _title(shown, devices[0], len(sides)),
        _subtitle([step for _, step in shown]),
        60 + 210 * len(devices),
    )


def _panel(
    figure: go.Figure,
    row: int,
    curves: list[tuple[int, TypicalStep, Memory]],
    *,
    unit: Unit,
    theme_colours: Palette,
    names: tuple[str, ...],
) -> None:
    """The curves of one device."""
    byte = byte_unit(int(m.allocated.max()) for _, _, m in curves)
    for which, step, curve in curves:
        length = (step.timeline.end - step.timeline.start) / 1000
        times, amounts = [*(curve.time / 1000).tolist(), length], [*curve.allocated.tolist(), int(curve.allocated[-1])]
        figure.add_scatter(
            name=names[which],
            legendgroup=str(which),
            showlegend=not any(trace["legendgroup"] == str(which) for trace in figure.data),
            x=[unit.scaled(t) for t in times],
            y=[byte.scaled(a) for a in amounts],
            mode="lines",
            line={"shape": "hv", "width": 2, "color": theme_colours.sides[which]},
            **hovers(
                f"{size(a)}{in_which(which, len(names))} at {time(t)}" for a, t in zip(amounts, times, strict=True)
            ),
            row=row,
            col=1,
        )
    figure.update_yaxes(title_text=byte.name, row=row, col=1)


def _devices(steps: list[TypicalStep]) -> list[str]:
    """Those with a curve on any side: GPUs first, by number; the host last."""
    most: dict[str, int] = {}
    for curve in (m for step in steps for m in step.timeline.memory):
        most[curve.device] = max(most.get(curve.device, 0), int(curve.allocated.max()))
    kept = sorted(most, key=lambda d: -most[d])[:MOST_DEVICES]
    return sorted(kept, key=lambda d: (d == "host", len(d), d))


def _title(shown: list[tuple[int, TypicalStep]], device: str, sides: int) -> str:
    most = [(which, curve) for which, step in shown for curve in step.timeline.memory if curve.device == device]
    parts = [f"{size(int(curve.allocated.max()))}{in_which(which, sides)}" for which, curve in most]
    return f"Peak memory allocated in a typical step ({device}): {', '.join(parts)}"


def _subtitle(steps: list[TypicalStep]) -> str:
    curves = [m for step in steps for m in step.timeline.memory]
    text = "Memory allocated by torch's allocator, without what it only reserves."
    return text + (
        " Where a trace records only changes, the amount at its start is assumed to be 0."
        if not all(m.from_zero for m in curves)
        else ""
    )
