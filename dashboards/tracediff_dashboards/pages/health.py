"""Whether like is compared with like, and what was wrong with the traces."""

from __future__ import annotations

from typing import Any

from dash import html

from tracediff.errors import printable
from tracediff.report import sections
from tracediff.report.page.html import versions
from tracediff.report.page.html_sections import set_facts
from tracediff_dashboards import components
from tracediff_dashboards.page_context import Shown


def page(shown: Shown) -> list[Any]:
    """Preflight, health notes, and what was read."""
    whole = shown.whole
    reasons = [
        [html.Code(r.code), printable(r.message), components.name(r.control), components.name(r.test)]
        for r in whole.comparability.reasons
    ]
    notes = sections.health_lines(whole)
    sides = [dict(set_facts(side)) for side in (whole.control, whole.test)]
    made = [[key, components.name(sides[0][key]), components.name(sides[1][key])] for key in sides[0]]
    return [
        html.H1("Health"),
        *components.of_all(shown, "This is told"),
        html.H2("Is like compared with like?"),
        components.table(["code", "what it means", "control", "test"], reasons, kind="words")
        if reasons
        else html.P("Nothing was found that would make the comparison unfair."),
        html.H2("Health of the traces"),
        components.items(notes) if notes else html.P("Every event was read; nothing was repaired or left out."),
        html.H2("What was read"),
        components.table(["", "control", "test"], made, kind="words"),
        html.P(", ".join(f"{what} {value}" for what, value in versions()), className="facts"),
    ]
