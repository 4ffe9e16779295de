"""The report's charts: figures whose titles are headings of the page, light and dark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from tracediff import bounds, charts
from tracediff.charts.marks import marks_text
from tracediff.charts.theme import caption, height_of
from tracediff.report.page.script_data import Drawing, encoded

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Scaled

TOP = 30
"""Pixels above a chart without its title, for the titles of its panels."""


class Chart(Drawing, frozen=True, kw_only=True):
    """One chart of the page; its data are what plotly.js draws, in light colours, and in ``dark`` [path, value] of all
    that differs in dark ones.

    Attributes:
        name: in `tracediff.charts`.
        marks: its largest marks in words.
        height: in pixels.
        is_too_large: its data are omitted, since the page would exceed its size limit.
    """

    name: str
    marks: list[str] = field(default_factory=list)
    height: int = 0
    is_too_large: bool = False


class PageCharts(Struct, frozen=True):
    """The charts of a page. Attributes: charts: by name. data: of those that have any. size: bytes of them as JSON."""

    charts: dict[str, Chart]
    data: dict[str, Any]
    size: int


def page_charts(subject: Scaled, names: Iterable[str]) -> PageCharts:
    """The charts called ``names`` of `tracediff.charts`."""
    return charts_within(chart(name, partial(getattr(charts, name), subject)) for name in names)


def charts_within(charts: Iterable[Chart]) -> PageCharts:
    """The charts; one whose data would take more than is left of CHART_BYTES is marked as too large."""
    charts_by_name: dict[str, Chart] = {}
    data: dict[str, Any] = {}
    size = 0
    for one in charts:
        charts_by_name[one.name] = one
        if one.data is None:
            continue
        length = len(encoded(one.data))
        if size + length > bounds.CHART_BYTES:
            charts_by_name[one.name] = replace(one, is_too_large=True)
        else:
            data[one.name], size = one.data, size + length
    return PageCharts(charts_by_name, data, size)


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
    return Chart(title, subtitle, data, name=name, marks=marks, height=height_of(light))


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
