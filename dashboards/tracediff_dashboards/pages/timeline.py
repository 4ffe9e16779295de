"""What streams and threads did in a step of both sides."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import parts
from tracediff_dashboards.shown import Shown


def page(shown: Shown) -> list[Any]:
    """The typical step of both sides, one above the other, on one axis of time."""
    return [
        html.H1("Timeline"),
        *parts.of_all(shown, "A timeline tells"),
        *parts.other_step(shown),
        parts.chart(shown.whole, "timeline", shown.theme),
        parts.chart(shown.comparison, "launches", shown.theme),
    ]
