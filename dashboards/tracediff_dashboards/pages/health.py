"""The page of the preflight and the health of the traces."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff.errors import printable
from tracediff.present import sections
from tracediff.report.page.html import versions
from tracediff.report.page.html_sections import set_facts
from tracediff_dashboards.pages import components
from tracediff_dashboards.reading.page_context import PageContext


def page(context: PageContext) -> list[Any]:
    """The components: preflight, health notes, and the sets."""
    whole = context.whole
    reasons = [
        [html.Code(r.code), printable(r.message), components.name(r.control), components.name(r.test)]
        for r in whole.comparability.reasons
    ]
    notes = sections.health_lines(whole)
    sides = [dict(set_facts(side)) for side in (whole.control, whole.test)]
    set_rows = [[key, components.name(sides[0][key]), components.name(sides[1][key])] for key in sides[0]]
    return [
        html.H1("Health"),
        html.H2("Comparability"),
        components.table(["code", "meaning", "control", "test"], reasons, kind="words")
        if reasons
        else html.P("The preflight found no difference that makes the comparison misleading."),
        html.H2("Health of the traces"),
        components.items(notes) if notes else html.P("All events were read; nothing was repaired or dropped."),
        html.H2("Sets"),
        components.table(["", "control", "test"], set_rows, kind="words"),
        html.P(", ".join(f"{what} {value}" for what, value in versions()), className="facts"),
    ]
