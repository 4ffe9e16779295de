"""The page of ranks, runs and steps."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards.pages import components
from tracediff_dashboards.reading.page_context import PageContext


def page(context: PageContext) -> list[Any]:
    """The components: step time by state per rank, and the period of each used step."""
    return [
        html.H1("Ranks"),
        components.chart(context.whole, "ranks", context.theme),
        html.H2("Steps and runs"),
        components.chart(context.whole, "distributions", context.theme),
    ]
