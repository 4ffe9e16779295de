"""A history: the step time of each commit with its interval, the levels between changes, families and memory."""

import math
from itertools import pairwise
from statistics import fmean

import plotly.graph_objects as go

from tracediff import bounds
from tracediff.charts.labels import label
from tracediff.charts.marks import Panel, data_array, hovers, named_ticks, panels
from tracediff.charts.theme import Palette, finish, palette
from tracediff.formatting import Unit, byte_unit, plural, signed_percent, size, time, time_unit
from tracediff.history.series import Point, Series

PANEL = 220
"""Pixels of a panel."""
SUBTITLE = (
    "Dots: mean of the runs of a commit, with the 95 % interval. Lines: levels between change points. "
    "Band: commits with which a change may have come."
)


def commits(series: Series, *, theme: str = "light") -> go.Figure:
    """Panels above each other, by commit: step time, time of the families, peak memory where it is recorded."""
    colours = palette(theme)
    titles = ["step", "families", *(["peak memory"] if series.has_memory else [])]
    steps, families, *memory = panels(titles, 0.09)
    _steps(steps, series, colours)
    _families(families, series, colours)
    for panel in memory:
        _memory(panel, series, colours)
    figure = steps.figure
    figure.update_xaxes(
        **named_ticks([label(point.commit[:9]) for point in series.points], max(1, math.ceil(len(series.points) / 24))),
        tickangle=-40,
        range=[-0.6, len(series.points) - 0.4],
        showgrid=False,
        zeroline=False,
    )
    return finish(figure, theme, _title(series), SUBTITLE, 60 + PANEL * len(titles))


def _steps(panel: Panel, series: Series, colours: Palette) -> None:
    points, effects = series.points, {change.first: change.estimate.effect for change in series.changes}
    intervals = [series.interval_us(point) or (point.step_us, point.step_us) for point in points]
    unit = time_unit(high for _, high in intervals)
    for start, end in pairwise([0, *effects, len(points)]):
        level = math.exp(fmean(log for point in points[start:end] for log in point.logs))
        panel.add_scatter(
            x=[start - 0.4, end - 0.6],
            y=[unit.scaled(level)] * 2,
            mode="lines",
            line={"color": colours.neutral, "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
    panel.add_scatter(
        x=list(range(len(points))),
        y=[unit.scaled(point.step_us) for point in points],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [unit.scaled(high - p.step_us) for p, (_, high) in zip(points, intervals, strict=True)],
            "arrayminus": [unit.scaled(p.step_us - low) for p, (low, _) in zip(points, intervals, strict=True)],
            "color": colours.quiet,
            "thickness": 1,
            "width": 2,
        },
        mode="markers",
        marker={
            "size": 7,  # the first commit after a change has the colour of its direction
            "color": [colours.change(effects[k]) if k in effects else colours.test for k in range(len(points))],
        },
        **hovers([_hover(point, interval) for point, interval in zip(points, intervals, strict=True)]),
        showlegend=False,
    )
    for change in series.changes:
        panel.add_vrect(
            change.earliest - 0.75,
            change.latest - 0.25,
            fillcolor=colours.change(change.estimate.effect),
            opacity=0.25,
            line_width=0,
        )
    panel.update_yaxes(title_text=unit.name)


def _hover(point: Point, interval: tuple[float, float]) -> str:
    subject = f"<br>{label(point.subject, 80)}" if point.subject else ""
    return (
        f"<b>{label(point.commit[:12])}</b>{subject}<br>{time(point.step_us)} per step "
        f"({time(interval[0])} to {time(interval[1])}; {plural(len(point.runs_us), 'run')})"
    )


def _families(panel: Panel, series: Series, colours: Palette) -> None:
    families = series.families[: bounds.PANELS]
    unit = time_unit(us for point in series.points for us in point.families.values())
    for name, colour in zip(families, colours.parts, strict=False):
        amounts = [point.families.get(name, 0.0) for point in series.points]
        _line(panel, label(name, 28), amounts, unit, colour, [f"{label(name, 80)}: {time(us)}" for us in amounts])
    panel.update_yaxes(title_text=unit.name, rangemode="tozero")


def _memory(panel: Panel, series: Series, colours: Palette) -> None:
    amounts = [point.memory for point in series.points]
    unit = byte_unit(amount for amount in amounts if amount is not None)
    texts = ["" if amount is None else f"peak memory: {size(amount)}" for amount in amounts]
    _line(panel, "", amounts, unit, colours.test, texts)
    panel.update_yaxes(title_text=unit.name, rangemode="tozero")


def _line(
    panel: Panel,
    name: str,
    amounts: list[float] | list[float | None],
    unit: Unit,
    colour: str,
    texts: list[str],
) -> None:
    panel.add_scatter(
        name=name,
        showlegend=bool(name),
        x=list(range(len(amounts))),
        y=data_array(None if amount is None else unit.scaled(amount) for amount in amounts),
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 5, "color": colour},
        **hovers(texts),
    )


def _title(series: Series) -> str:
    largest = max(series.changes, key=lambda change: abs(change.estimate.effect), default=None)
    head = f"Step time over {plural(len(series.points), 'commit')}"
    if largest is None:
        return f"{head}: no change beyond the noise"
    change_count = plural(len(series.changes), "change point")
    size_of_change = signed_percent(math.expm1(largest.estimate.effect))
    return f"{head}: {change_count}, the largest {size_of_change} at {series.points[largest.first].commit[:9]}"
