"""The pages without controls: ranks, runs and steps; memory over a step; the preflight and the health of the traces."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff.errors import printable
from tracediff.present import sections
from tracediff.present.setting import side_names
from tracediff.report.page.html import origin, versions
from tracediff_dashboards.pages import components
from tracediff_dashboards.reading.comparisons import PageContext


def ranks(context: PageContext) -> list[Any]:
    """The components: step time by state per rank, and the period of each used step."""
    return [
        html.H1("Ranks"),
        components.chart(context.whole, "ranks", context.theme),
        html.H2("Steps and runs"),
        components.chart(context.whole, "distributions", context.theme),
    ]


def memory(context: PageContext) -> list[Any]:
    """The components: bytes allocated per device over the typical step of each side."""
    notes = [
        *components.memory_of_other_step(context),
        *components.missing_events(context),
    ]
    return [html.H1("Memory"), *notes, components.chart(context.whole, "memory", context.theme)]


def health(context: PageContext) -> list[Any]:
    """The components: preflight, health notes, and the sets."""
    whole = context.whole
    reasons = [
        [html.Code(r.code), printable(r.message), components.name(r.control), components.name(r.test)]
        for r in whole.comparability.reasons
    ]
    notes, names = sections.health_lines(whole), side_names(whole)
    facts = [[what, *map(components.name, sides)] for what, *sides in origin(whole, versions())]
    return [
        html.H1("Health"),
        html.H2("Comparability"),
        components.table(["code", "meaning", *names], reasons, kind="words")
        if reasons
        else html.P("The preflight found no difference that could make the comparison misleading."),
        html.H2("Health of the traces"),
        components.items(notes) if notes else html.P("Every event was read; nothing was repaired or left out."),
        html.H2("Sets"),
        components.table(["", *names], facts, kind="words"),
    ]
