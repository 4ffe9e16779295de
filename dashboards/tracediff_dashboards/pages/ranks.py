"""Ranks, runs and steps: where the time of each went."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import parts
from tracediff_dashboards.shown import Shown


def page(shown: Shown) -> list[Any]:
    """Ranks by state, and the period of every used step."""
    return [
        html.H1("Ranks"),
        *parts.of_all(shown, "This is told"),
        parts.chart(shown.whole, "ranks", shown.theme),
        html.H2("Steps and runs"),
        parts.chart(shown.whole, "distributions", shown.theme),
    ]
