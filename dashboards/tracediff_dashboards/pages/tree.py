"""Both call trees as one."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from tracediff_dashboards import components
from tracediff_dashboards.page_context import Shown

WORDS = {"work": "GPU or operator time", "host": "time on the host", "count": "calls"}


def page(shown: Shown) -> list[Any]:
    """The icicle, and what its boxes are as large as."""
    options = [{"label": words, "value": size} for size, words in WORDS.items()]
    size = dcc.RadioItems(id="size", options=options, value=shown.view.size, inline=True, className="tabs")
    return [
        html.H1("Call tree"),
        html.Div(size, role="group", **components.attributes(aria_label="What the boxes are as large as")),
        html.P("A click on a box goes into it; the bar at the top leads back out.", className="facts"),
        components.chart(shown.comparison, "tree", shown.theme, size=shown.view.size),
    ]
