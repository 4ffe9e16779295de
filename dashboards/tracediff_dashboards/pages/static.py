"""The pages without controls: ranks, runs and steps; memory over a step; the preflight and the health of the traces."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff.present import sections
from tracediff.present.setting import side_names
from tracediff.report.page.html import origin
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.markup import rendered
from tracediff_dashboards.reading.comparisons import PageContext


def ranks(context: PageContext) -> list[Any]:
    """The components: the period of each used step, and step time by state per rank."""
    return [
        html.H1("Steps and ranks"),
        components.chart(context, "distributions"),
        html.H2("Ranks"),
        components.chart(context, "ranks"),
    ]


def memory(context: PageContext) -> list[Any]:
    """The components: bytes allocated per device over the typical step of each side."""
    notes = [
        *components.memory_of_other_step(context),
        *components.missing_events(context),
    ]
    return [html.H1("Memory"), *notes, components.chart(context, "memory")]


def health(context: PageContext) -> list[Any]:
    """The components: preflight, health notes, and the sets."""
    whole = context.whole
    return rendered(
        "health.html.jinja",
        reasons=whole.comparability.reasons,
        health_lines=sections.health_lines(whole),
        origin=origin(whole),
        names=side_names(whole),
    )
