"""Memory over a step."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import parts
from tracediff_dashboards.shown import Shown


def page(shown: Shown) -> list[Any]:
    """Bytes allocated on every device over the typical step of both sides."""
    told = [*parts.of_all(shown, "Memory is told"), *parts.other_step(shown), *parts.without_events(shown)]
    return [html.H1("Memory"), *told, parts.chart(shown.whole, "memory", shown.theme)]
