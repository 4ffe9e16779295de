"""The page of memory over a step."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards.pages import components
from tracediff_dashboards.reading.page_context import PageContext


def page(context: PageContext) -> list[Any]:
    """The components: bytes allocated per device over the typical step of each side."""
    notes = [
        *components.memory_of_other_step(context),
        *components.missing_events(context),
    ]
    return [html.H1("Memory"), *notes, components.chart(context.whole, "memory", context.theme)]
