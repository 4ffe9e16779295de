"""The report's charts: figures whose titles are headings of the page, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediff import charts
from tracediff.charts.theme import caption

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.analysis.analysis import Analysis
    from tracediff.diff.comparison import Comparison

TOP = 30
"""Pixels above a chart without its title, for the titles of its panels."""


@dataclass(frozen=True)
class Chart:
    """One chart of the page.

    Attributes:
        title, subtitle: plain text; where the chart has nothing to show, the title says why.
        figure: what plotly.js draws, in light colours; None where there is nothing to show.
        dark: [path, value] of all that differs in dark colours.
        height: in pixels.
    """

    title: str
    subtitle: str
    figure: dict[str, Any] | None
    dark: list[list[Any]]
    height: int


def chart(of: Comparison | Analysis, name: str) -> Chart:
    """The chart called ``name`` of `tracediff.charts`."""
    draw = getattr(charts, name)
    light, dark = draw(of, theme="light"), draw(of, theme="dark")
    if not light.data:
        return Chart(*caption(light), None, [], 0)
    title, subtitle = caption(light)
    for figure in (light, dark):
        untitled(figure)
    both = [json.loads(figure.to_json()) for figure in (light, dark)]
    return Chart(title, subtitle, both[0], list(_differences(both[0], both[1], [])), light.layout.height)


def untitled(figure: go.Figure) -> None:
    """Take away the title, which the page tells as a heading, and its room."""
    figure.update_layout(
        title=None, height=int(figure.layout.height - figure.layout.margin.t + TOP), margin={"t": TOP, "l": 4, "r": 4}
    )


def _differences(light: Any, dark: Any, path: list[str | int]) -> Iterator[list[Any]]:
    """[path, dark value] wherever the two differ."""
    if isinstance(light, dict) and isinstance(dark, dict) and light.keys() == dark.keys():
        for key in light:
            yield from _differences(light[key], dark[key], [*path, key])
    elif isinstance(light, list) and isinstance(dark, list) and len(light) == len(dark):
        for k, (one, other) in enumerate(zip(light, dark, strict=True)):
            yield from _differences(one, other, [*path, k])
    elif light != dark:
        yield [path, dark]
