"""Ranks, runs and steps: where the time of each went."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import components
from tracediff_dashboards.page_context import Shown


def page(shown: Shown) -> list[Any]:
    """Ranks by state, and the period of every used step."""
    return [
        html.H1("Ranks"),
        *components.of_all(shown, "This is told"),
        components.chart(shown.whole, "ranks", shown.theme),
        html.H2("Steps and runs"),
        components.chart(shown.whole, "distributions", shown.theme),
    ]
