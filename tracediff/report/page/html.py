"""`Comparison` → one HTML file that works from disk, without a network."""

from __future__ import annotations

import gzip
import hashlib
import platform
from base64 import b64encode
from datetime import date
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tracediff.charts.theme import palette
from tracediff.present import sections
from tracediff.present.tables import comparison_tables
from tracediff.report.page import html_sections
from tracediff.report.page.figures import PageCharts, page_charts
from tracediff.report.page.flame import FlameGraph, comparison_flame
from tracediff.report.page.render import render
from tracediff.report.page.tables import encoded, tables
from tracediff.report.perfetto_timeline import timeline_trace
from tracediff.version import VERSION

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

MOST_DATA = 3_000_000
"""Size limit of the page's data as JSON, before it is compressed; tables get what the rest leaves."""
CHARTS = (
    *("step_waterfall", "duration_diff", "counts_diff", "families"),
    *("timeline", "memory", "launches", "distributions", "ranks"),
)
"""Of a comparison, in reading order."""
CHARTS_REFUSED = ("timeline", "distributions")
MOST_TRACE = 1_000_000
"""Size limit of the trace that the page hands to Perfetto, in bytes."""
PLOTLY = "plotly.min.js"
"""The part of plotly.js that draws the pages' charts: `make plotly`."""
SCRIPTS = ("flame.js", "perfetto.js", "page.js")
CHANGES = 10
"""Rows of changed work."""
ROWS = 30
"""Of each further table."""


def to_html(comparison: Comparison, command: str | None = None) -> str:
    """The report as one page.

    Args:
        command: the command line that creates it, shown at its end.
    """
    charts = page_charts(comparison, CHARTS_REFUSED if comparison.was_refused else CHARTS)
    flame = comparison_flame(comparison)
    trace = _trace(comparison)
    room = MOST_DATA - charts.size - len(encoded(flame.data)) - len(trace or "")
    return page(
        "refused.html.jinja" if comparison.was_refused else "comparison.html.jinja",
        f"{comparison.control.label} → {comparison.test.label} · tracediff",
        charts,
        tables(comparison, room),
        flame=flame,
        trace=trace,
        **html_sections.answer(comparison),
        reasons=comparison.comparability.reasons,
        health_lines=sections.health_lines(comparison),
        command=command,
        origin=html_sections.origin(comparison, versions()),
        **({} if comparison.was_refused else _work(comparison)),
    )


def _trace(comparison: Comparison) -> str | None:
    """What the page hands to Perfetto; None where there is nothing, or too much for the page."""
    trace = timeline_trace(comparison)
    return trace if trace and len(trace.encode()) <= MOST_TRACE else None


def _work(comparison: Comparison) -> dict[str, Any]:
    return {
        "step": sections.step_sums(comparison),
        "unexplained_ns": sections.unexplained_ns(comparison),
        "changes": sections.changed_work(comparison, CHANGES),
        "explanation": html_sections.explanation(comparison),
        "changed_code": html_sections.changed_code(comparison),
        "matched": sections.matched_line(comparison),
        "tables": [(f"table-{k}", table) for k, table in enumerate(comparison_tables(comparison, ROWS))],
    }


def page(
    template: str,
    title: str,
    charts: PageCharts,
    data: dict[str, Any],
    *,
    flame: FlameGraph,
    trace: str | None = None,
    **context: Any,
) -> str:
    """A page of sections.

    Args:
        template: extends ``page.html.jinja``. title: plain text.
        data: what the page's script reads besides the data of the charts and of the flame graph.
        trace: what it hands to Perfetto, as JSON.
        context: what the template reads.
    """
    plotly, script = inline(resource(PLOTLY)), inline("".join(map(resource, SCRIPTS)))
    return render(
        template,
        title=title,
        version=VERSION,
        hashes=[sha256(plotly), sha256(script)],
        style=Markup(resource("page.css").replace("/*palettes*/", palettes()) + resource("flame.css")),
        data=packed(encoded({"charts": charts.data, "flame": flame.data, **data})),
        trace=trace and packed(trace),
        plotly=Markup(plotly),
        script=Markup(script),
        charts=charts.charts,
        flame=flame,
        **context,
    )


def versions() -> list[tuple[str, str]]:
    """Versions and date of the page: (name, value)."""
    tools = f"tracediff {VERSION}, Python {platform.python_version()}, plotly {version('plotly')}"
    return [("created with", tools), ("created on", date.today().isoformat())]


def palettes() -> str:
    """Both palettes of the charts as CSS variables, so that page and charts agree."""
    keys = ("control", "test", "faster", "slower", "text", "muted", "grid", "paper", "middle")
    rules = []
    for theme in ("light", "dark"):
        colours = palette(theme)
        selector = ":root, :root[data-theme=light]" if theme == "light" else ":root[data-theme=dark]"
        values = {key: getattr(colours, key) for key in keys} | {f"kind-{k}": c for k, c in colours.kinds.items()}
        rules.append(f"{selector}{{color-scheme:{theme};" + "".join(f"--{k}:{c};" for k, c in values.items()) + "}")
    return "\n".join(rules)


def resource(name: str) -> str:
    """The text of a file of this folder: a script or a style."""
    return files("tracediff.report.page").joinpath(name).read_text("utf-8")


def packed(text: str) -> str:
    """``text`` compressed, as base64, which is no markup whatever the text: the page's script unpacks it."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def inline(script: str) -> str:
    """``script`` so that it cannot end its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def sha256(script: str) -> str:
    """What a content security policy names ``script`` by."""
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()
