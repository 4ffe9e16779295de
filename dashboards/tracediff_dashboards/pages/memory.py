"""Memory over a step."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import components
from tracediff_dashboards.page_context import Shown


def page(shown: Shown) -> list[Any]:
    """Bytes allocated on every device over the typical step of both sides."""
    told = [
        *components.of_all(shown, "Memory is told"),
        *components.other_step(shown),
        *components.without_events(shown),
    ]
    return [html.H1("Memory"), *told, components.chart(shown.whole, "memory", shown.theme)]
