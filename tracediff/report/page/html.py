"""`Comparison` → one HTML file that works from disk, without a network, and HTML for a cell of a notebook."""

from __future__ import annotations

import gzip
import hashlib
import platform
from base64 import b64encode
from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tracediff import __version__, bounds
from tracediff.charts.theme import palette
from tracediff.errors import printable
from tracediff.explain.leaves import HOST
from tracediff.formatting import ARROW, browser_format
from tracediff.present import sections
from tracediff.present.answer import answer_of, where
from tracediff.present.explanation_lines import ExplanationTable, direction, explanation_table
from tracediff.present.setting import hardware, side_names
from tracediff.present.tables import comparison_tables
from tracediff.present.terms import meaning
from tracediff.report.page.figures import PageCharts, page_charts
from tracediff.report.page.script_data import Drawing, comparison_flame, encoded, tables
from tracediff.report.to_perfetto import timeline_trace

if TYPE_CHECKING:
    from tracediff.aggregate.summary import Side
    from tracediff.diff.comparison import Comparison


CHARTS = ("families", "timeline", "memory", "distributions", "ranks", "duration_diff", "counts_diff", "launches")
"""Of a comparison, in reading order."""
CHARTS_REFUSED = ("timeline", "distributions")
WORK_TITLES = {
    "groups": "Matched work",
    "ops": "Operators and calls",
    "kernels": "Kernels and copies",
    "scopes": "Annotations and Python",
}
"""The lists of all work, as the report and the dashboard call them."""
PLOTLY = "plotly.min.js"
"""The part of plotly.js that draws the pages' charts: `make plotly`."""
STYLES = ("page.css", "tables.css", "flame.css")
SCRIPTS = ("numbers.js", "flame.js", "perfetto.js", "timeline.js", "page.js")


def to_html(comparison: Comparison, command: str | None = None, following: str | None = None) -> str:
    """The report as one page.

    Args:
        command: the command line that creates it, shown at its end. following: what to do, or to run, next.
    """
    charts = page_charts(comparison, CHARTS_REFUSED if comparison.was_refused else CHARTS)
    flame = comparison_flame(comparison)
    trace = _trace(comparison)
    room = bounds.PAGE_BYTES - sum(c.size for c in charts.values()) - len(encoded(flame.data)) - len(trace or "")
    return page(
        "refused.html.jinja" if comparison.was_refused else "comparison.html.jinja",
        f"{ARROW.join(comparison.labels)} · tracediff",
        charts,
        data=tables(comparison, room),
        flame=flame,
        trace=trace,
        **answer(comparison),
        health_lines=sections.health_lines(comparison),
        command=command,
        following=following,
        origin=origin(comparison),
        **({} if comparison.was_refused else _work(comparison)),
    )


def _trace(comparison: Comparison) -> str | None:
    """What the page hands to Perfetto; None where there is nothing, or too much for the page."""
    trace = timeline_trace(comparison)
    return trace if trace and len(trace.encode()) <= bounds.TRACE_BYTES else None


def _work(comparison: Comparison) -> dict[str, Any]:
    return {
        "step": sections.step_sums(comparison),
        "unexplained_ns": sections.unexplained_ns(comparison),
        "changes": sections.changed_work(comparison, bounds.PAGE_CHANGES),
        "explanation": explanation(comparison),
        # whether the first cause is on the host, while the GPU is idle
        "is_of_host": any(cause.chain[0] == HOST for cause in comparison.causes[:1]),
        "link": link,
        "where": where,
        "matched": sections.matched_line(comparison),
        "work_titles": WORK_TITLES,
        "module": sections.changed_module(comparison),
        "tables": [(f"table-{k}", table) for k, table in enumerate(comparison_tables(comparison, bounds.PAGE_ROWS))],
    }


NO_FLAME_GRAPH = Drawing("")


def page(
    template: str,
    title: str,
    charts: PageCharts,
    *,
    data: dict[str, Any] | None = None,
    flame: Drawing = NO_FLAME_GRAPH,
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
    drawn_data = {name: chart.data for name, chart in charts.items() if chart.size}
    return render(
        template,
        title=title,
        version=__version__,
        hashes=[sha256(plotly), sha256(script)],
        style=Markup("".join(map(resource, STYLES)).replace("/*palettes*/", palettes())),
        data=packed(encoded({"charts": drawn_data, "flame": flame.data, **(data or {})})),
        trace=trace and packed(trace),
        plotly=Markup(plotly),
        script=Markup(script),
        charts=charts,
        flame=flame,
        **context,
    )


def versions() -> list[tuple[str, str]]:
    """Versions and date of the page: (name, value)."""
    tools = f"tracediff {__version__}, Python {platform.python_version()}, plotly {version('plotly')}"
    return [("created with", tools), ("created on", date.today().isoformat())]


def palettes() -> str:
    """Both palettes of the charts as CSS variables, so that page and charts agree."""
    keys = ("control", "test", "faster", "slower", "text", "muted", "grid", "paper", "middle")
    rules = []
    for theme, selector in (("light", ":root, :root[data-theme=light]"), ("dark", ":root[data-theme=dark]")):
        colours = palette(theme)
        values = {key: getattr(colours, key) for key in keys} | {f"kind-{k}": c for k, c in colours.kinds.items()}
        rules.append(f"{selector}{{color-scheme:{theme};" + "".join(f"--{k}:{c};" for k, c in values.items()) + "}")
    return "\n".join(rules)


def resource(name: str) -> str:
    """The text of a file of this folder: a script or a style."""
    text = files("tracediff.report.page").joinpath(name).read_text("utf-8")
    return text.replace("/*browser_format*/", browser_format()) if name == "numbers.js" else text


def packed(text: str) -> str:
    """``text`` compressed, as base64, which is not markup whatever the text: the page's script unpacks it."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def inline(script: str) -> str:
    """``script`` so that it cannot end its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def sha256(script: str) -> str:
    """What a content security policy names ``script`` by."""
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()


def answer(comparison: Comparison) -> dict[str, Any]:
    """The comparison, what its columns are called, the answer, and why there is no comparison."""
    return {
        "comparison": comparison,
        "names": side_names(comparison),
        "answer": answer_of(comparison),
        "cautions": sections.caution_lines(comparison) if comparison.was_refused else [],
    }


def explanation(comparison: Comparison) -> ExplanationTable | None:
    """Lines that add up to the step's change; what a line names is a link to its work."""
    if comparison.explanation is None:
        return None
    return explanation_table(comparison.explanation, bounds.CAUSE_ROWS)


def origin(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Rows (name, control, test) on how the report was made; versions are in the control column."""
    sides = zip(*map(set_facts, comparison.sides), strict=True)
    ranks = [("ranks recorded", r.control, r.test) for r in comparison.comparability.reasons if r.code == "ranks"]
    return [*((what, value, "") for what, value in versions()), *((what, c, t) for (what, c), (_, t) in sides), *ranks]


def set_facts(side: Side) -> list[tuple[str, str]]:
    """What the origin section says about a set: (name, value)."""
    more = len(side.files) - 8
    return [
        ("torch in the traces", side.torch or "not recorded"),
        ("CUDA or HIP", side.driver or "not recorded"),
        ("devices", ", ".join(side.gpu) or ("not recorded" if side.has_gpu else hardware(side))),
        ("runs", str(side.runs)),
        ("files", ", ".join(side.files[:8]) + (f" and {more:,} more" if more > 0 else "")),
    ]


def render(template: str, **context: Any) -> str:
    """``template`` of the folder ``templates`` with ``context`` filled in; HTML in it is escaped unless it is `Markup`.

    Raises:
        jinja2.UndefinedError: the template uses a name that ``context`` does not have.
    """
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("tracediff.report.page"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"text": text, "direction": direction, "meaning": meaning}
    environment.globals["LONGEST_CELL"] = bounds.CELL
    return environment


def text(value: str, longest: int = bounds.PAGE_NAME) -> str:
    """``value`` on one line, in its own direction, its middle left out where it is longer than ``longest``."""
    if len(value) > longest:
        value = f"{value[: longest // 2]} … {value[-longest // 2 :]}"
    return printable(value)


def link(table: str, words: Sequence[str]) -> dict[str, str]:
    """Attributes of a link to the rows of ``table`` that contain ``words``; none without either."""
    if not (table and words):
        return {}
    return {"href": f"#{table}", "data-table": table, "data-find": printable(" ".join(words)[: bounds.REASON])}


DRAW = 'drawFlame(document.getElementById("flame-graph"), JSON.parse(document.getElementById("data").textContent));'


def to_summary(comparison: Comparison) -> str:
    """The verdict, the explanation and the step's table, without a script."""
    return render(
        "notebook.html.jinja",
        **answer(comparison),
        step=None if comparison.was_refused else sections.step_sums(comparison),
        unexplained_ns=sections.unexplained_ns(comparison),
        explanation=explanation(comparison),
        link=lambda *_: {},
    )


def to_notebook(comparison: Comparison) -> str:
    """The summary, and the flame graph in a frame of its own, which programs that run no scripts leave out."""
    flame = comparison_flame(comparison)
    if flame.data is None or len(encoded(flame.data)) > bounds.NOTEBOOK_BYTES:
        return to_summary(comparison)
    script = inline(resource("numbers.js") + resource("flame.js") + DRAW)
    document = render(
        "flame_alone.html.jinja",
        flame=flame,
        hash=sha256(script),
        style=Markup(palettes() + resource("flame.css")),
        data=Markup(encoded(flame.data)),
        script=Markup(script),
    )
    return to_summary(comparison) + render("flame_frame.html.jinja", flame=flame, document=document)
