"""The page of the merged call tree."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from tracediff_dashboards import components
from tracediff_dashboards.page_context import PageContext

WORDS = {"work": "GPU or operator time", "host": "time on the host", "count": "calls"}


def page(context: PageContext) -> list[Any]:
    """The components: the icicle chart, and the choice of the size of its boxes."""
    options = [{"label": words, "value": size} for size, words in WORDS.items()]
    size = dcc.RadioItems(id="size", options=options, value=context.view.size, inline=True, className="tabs")
    return [
        html.H1("Call tree"),
        html.Div(size, role="group", **components.attributes(aria_label="Size of the boxes")),
        html.P("Click a box to zoom in, and the bar at the top to zoom out.", className="facts"),
        components.chart(context.comparison, "tree", context.theme, size=context.view.size),
    ]
