"""What streams and threads did in a step of both sides."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff_dashboards import parts
from tracediff_dashboards.shown import Shown


def page(shown: Shown) -> list[Any]:
    """The typical step of both sides, one above the other, on one axis of time."""
    chosen = "A timeline shows all that happens in a step, whatever work is chosen above." if shown.is_part else ""
    return [
        html.H1("Timeline"),
        *([html.P(chosen, className="facts")] if chosen else []),
        parts.chart(shown.whole, "timeline", shown.theme),
        parts.chart(shown.comparison, "launches", shown.theme),
    ]
