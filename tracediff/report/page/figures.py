"""The report's charts: figures whose titles are headings of the page, light and dark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import field

from tracediff import bounds, charts
from tracediff.charts.marks import marks_text
from tracediff.charts.theme import caption, height_of
from tracediff.report.page.script_data import Drawing, encoded

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Scaled

TOP = 30
"""Pixels above a chart without its title, for the titles of its panels."""


class Chart(Drawing, kw_only=True):
    """One chart of the page; its data are what plotly.js draws, in light colours, and in ``dark`` [path, value] of all
    that differs in dark ones.

    Attributes:
        name: in `tracediff.charts`.
        marks: its largest marks in words.
        height: in pixels. size: bytes of its data as JSON; 0 if the page has none.
        is_too_large: the page does not have its data, with which it would exceed its size limit.
    """

    name: str
    marks: list[str] = field(default_factory=list)
    height: int = 0
    size: int = 0
    is_too_large: bool = False


PageCharts = dict[str, Chart]
"""The charts of a page by name."""


def page_charts(subject: Scaled, names: Iterable[str]) -> PageCharts:
    """The charts called ``names`` of `tracediff.charts`."""
    return charts_within(chart(name, partial(getattr(charts, name), subject)) for name in names)


def charts_within(charts: Iterable[Chart]) -> PageCharts:
    """The charts; one whose data would take more than is left of CHART_BYTES is marked as too large."""
    charts_by_name, room = {}, bounds.CHART_BYTES
    for one in charts:
        fitting = one if one.size <= room else one.replace(size=0, is_too_large=True)
        charts_by_name[one.name] = fitting
        room -= fitting.size
    return charts_by_name


def chart(name: str, draw: Callable[..., go.Figure]) -> Chart:
    """The chart called ``name``, which ``draw`` draws in the colours of a ``theme``."""
    light, dark = draw(theme="light"), draw(theme="dark")
    title, subtitle = caption(light)
    if not light.data:
        return Chart(title, subtitle, name=name)
    marks = marks_text(light)
    for figure in (light, dark):
        remove_title(figure)
    in_light, in_dark = (json.loads(figure.to_json()) for figure in (light, dark))
    data = in_light | {"dark": list(_differences(in_light, in_dark, []))}
    return Chart(title, subtitle, data, name=name, marks=marks, height=height_of(light), size=len(encoded(data)))


def remove_title(figure: go.Figure) -> None:
    """Remove the title, which the page shows as a heading, and its space."""
    height = height_of(figure) - (figure.layout.margin.t or 0) + TOP
    figure.update_layout(title=None, height=int(height), margin={"t": TOP, "l": 4, "r": 4})


def _differences(light: Any, dark: Any, path: list[str | int]) -> Iterator[list[Any]]:
    """[path, dark value] wherever the two differ."""
    if isinstance(light, dict) and isinstance(dark, dict) and light.keys() == dark.keys():
        for key in light:
            yield from _differences(light[key], dark[key], [*path, key])
    elif isinstance(light, list) and isinstance(dark, list) and len(light) == len(dark):
        for k, (light_item, dark_item) in enumerate(zip(light, dark, strict=True)):
            yield from _differences(light_item, dark_item, [*path, k])
    elif light != dark:
        yield [path, dark]
