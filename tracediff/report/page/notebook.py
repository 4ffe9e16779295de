"""`Comparison` → HTML for a cell of a notebook, or for an e-mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from tracediff.present import sections
from tracediff.report.page import html_sections
from tracediff.report.page.flame import FlameGraph, comparison_flame
from tracediff.report.page.html import inline, palettes, resource, sha256
from tracediff.report.page.render import render
from tracediff.report.page.tables import encoded

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

MOST_BYTES = 1_800_000
"""Size of the flame graph's data above which a cell does without it: notebooks keep what their cells show."""
DRAW = 'drawFlame(document.getElementById("flame-graph"), JSON.parse(document.getElementById("data").textContent));'


def to_summary(comparison: Comparison) -> str:
    """The verdict, the explanation and the step's table, without a script."""
    return render(
        "notebook.html.jinja",
        **html_sections.answer(comparison),
        step=None if comparison.was_refused else sections.step_sums(comparison),
        unexplained_ns=sections.unexplained_ns(comparison),
        explanation=html_sections.explanation(comparison),
    )


def to_notebook(comparison: Comparison) -> str:
    """The summary, and the flame graph in a frame of its own, which programs that run no scripts leave out."""
    flame = comparison_flame(comparison)
    if flame.data is None or len(encoded(flame.data)) > MOST_BYTES:
        return to_summary(comparison)
    return to_summary(comparison) + render("flame_frame.html.jinja", flame=flame, document=_document(flame))


def _document(flame: FlameGraph) -> str:
    """A page with nothing but the flame graph."""
    script = inline(resource("flame.js") + DRAW)
    return render(
        "flame_alone.html.jinja",
        flame=flame,
        hash=sha256(script),
        style=Markup(palettes() + resource("flame.css")),
        data=Markup(encoded(flame.data)),
        script=Markup(script),
    )
