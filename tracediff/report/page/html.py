"""`Comparison` → one HTML file that works from disk, without a network."""

from __future__ import annotations

import hashlib
import platform
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tracediff.charts.theme import palette
from tracediff.report import sections
from tracediff.report.page import html_sections
from tracediff.report.page.figures import Chart, chart
from tracediff.report.page.tables import encoded, tables
from tracediff.report.table import further
from tracediff.report.table_html import to_html as table_html
from tracediff.version import VERSION

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

MOST_BYTES = 8_000_000
"""Of the file; plotly.js is 4.8 million of them."""
CHARTS, WORDS = 2_000_000, 200_000
"""Of these the charts' data and the sections' text; tables take what is left."""
LINKS = {
    "step": "Step",
    "changes": "Changes",
    "findings": "Findings",
    "work": "Work",
    "tree": "Tree",
    "timeline": "Timeline",
    "distributions": "Runs",
    "ranks": "Ranks",
    "tables": "Tables",
    "preflight": "Preflight",
    "made": "Origin",
}
"""Section → what the way to it is called."""
ROWS = 30
"""Of each further table."""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src {hashes}">
<meta name="generator" content="tracediff {version}">
<title>{title}</title>
<style>{style}</style>
<noscript><style>.chart, .browse label, #theme {{ display: none; }}</style></noscript>
</head>
<body>
<a class="skip" href="#main">To the answer</a>
<header><strong>tracediff</strong><nav aria-label="Sections">{links}</nav><button type="button" id="theme">Dark</button></header>
<main id="main">
<noscript><p class="caution">Without JavaScript this page shows no charts and no long tables; everything else is here.</p></noscript>
{sections}
</main>
<script type="application/json" id="data">{data}</script>
<script>{plotly}</script>
<script>{script}</script>
</body>
</html>
"""
NOTEBOOK = (
    ".tracediff table{border-collapse:collapse;min-width:36em}.tracediff td{text-align:right}.tracediff "
    "th{text-align:left}"
    ".tracediff td.bar{width:12em;text-align:left}"
    ".tracediff td.bar span{display:inline-block;height:.7em}.tracediff .bar .faster{background:#0072B2}.tracediff "
    ".bar .slower{background:#D55E00}"
    ".tracediff .verdict{font-weight:600}"
)
TABLE = """<div class="browse" data-table="{key}" id="{key}">
<h3>{title}</h3>
<p><label>Search <input type="search" autocomplete="off" spellcheck="false" placeholder="{hint}"></label>
{choice}
<span class="found" role="status" aria-live="polite"></span></p>
<div class="rows" tabindex="-1"></div>
<div class="details" tabindex="-1" hidden></div>
<noscript><p>The whole table needs JavaScript; <code>tracediff export --csv</code> writes it as CSV.</p></noscript>
</div>"""


@dataclass
class Drawn:
    """The charts of the page. Attributes: charts: name → data. size: bytes of them as JSON."""

    charts: dict[str, Any] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, data: dict[str, Any]) -> bool:
        """Whether there was room for it."""
        size = len(encoded(data))
        if self.size + size > CHARTS:
            return False
        self.charts[name], self.size = data, self.size + size
        return True


def to_html(comparison: Comparison, command: str | None = None) -> str:
    """The report as one page.

    Args:
        command: the command line that makes it, to be told at its end.
    """
    from plotly.offline import get_plotlyjs

    drawn = Drawn()
    made = [(key, html_sections.SECTIONS.get(key, ""), it) for key, it in _sections(comparison, command, drawn)]
    data = {"charts": drawn.charts, **tables(comparison, MOST_BYTES - WORDS - len(get_plotlyjs()) - drawn.size)}
    return page_of(f"{comparison.control.label} → {comparison.test.label} · tracediff", made, LINKS, data)


def page_of(title: str, made: Sequence[tuple[str, str, str]], links: Mapping[str, str], data: dict[str, Any]) -> str:
    """A page of sections.

    Args:
        title: plain text. made: (id, title, content as HTML) of the sections. links: section → what the way to it is
            called.
        data: what the page's script reads; where it is empty there is no chart and no plotly.js.
    """
    from plotly.offline import get_plotlyjs

    plotly = _inline(get_plotlyjs()) if data else ""
    script = _inline(_own("page.js"))
    style = _own("page.css").replace("/*palettes*/", palettes())
    return PAGE.format(
        hashes=" ".join(f"'sha256-{_sha256(s)}'" for s in (plotly, script)),
        version=VERSION,
        title=html_sections.text(title, 200),
        style=style,
        links="".join(f'<a href="#{key}">{links[key]}</a>' for key, _, _ in made if key in links),
        sections="\n".join(_section(*one) for one in made),
        data=encoded(data or {"charts": {}}),
        plotly=plotly,
        script=script,
    )


def to_notebook(comparison: Comparison) -> str:
    """The verdict, the step's table and the findings as a piece of HTML that needs no script, for a notebook's cell."""
    body = (
        html_sections.answer(comparison)
        .replace("<h1>", "<h3>")
        .replace("</h1>", "</h3>")
        .replace(html_sections.WHAT_THAT_MEANS, "")
    )
    if not comparison.was_refused:
        body += html_sections.step_table(comparison) + "".join(
            f"<p><b>{html_sections.text(f.code)}</b> {html_sections.name(f.title)}</p>" for f in comparison.findings
        )
    return f'<style>{NOTEBOOK}</style><div class="tracediff">{body}</div>'


def _sections(comparison: Comparison, command: str | None, drawn: Drawn) -> list[tuple[str, str]]:
    """(id, content) in reading order."""

    def figures(*names: str) -> str:
        return "".join(figure_of(name, chart(comparison, name), drawn) for name in names)

    preflight = (
        f"{html_sections.preflight(comparison)}<h3 id='health'>{html_sections.SECTIONS['health']}</h3>"
        f"{html_sections.health(comparison)}"
    )
    ends = [
        ("preflight", preflight),
        ("made", html_sections.made(comparison, command, versions())),
    ]
    if comparison.was_refused:
        return [
            ("answer", html_sections.answer(comparison)),
            ("timeline", figures("timeline", "distributions")),
            *ends,
        ]
    changes = "".join(
        html_sections.largest_changes(comparison, device) for device in sections.devices(comparison, None)
    )
    work = f"<p>{html_sections.text(sections.matched_line(comparison))}</p>" + figures("families", "treemap")
    return [
        ("answer", html_sections.answer(comparison)),
        ("step", figures("step_waterfall") + html_sections.step_table(comparison)),
        (
            "changes",
            changes + figures("duration_diff", "counts_diff") + _table("ops", "All operators, kernels and calls"),
        ),
        ("findings", html_sections.findings(comparison)),
        ("work", work + _table("groups", "All groups") + figures("scatter")),
        ("tree", figures("tree")),
        ("timeline", figures("timeline", "memory", "launches")),
        ("distributions", figures("distributions")),
        ("ranks", figures("ranks")),
        *(
            [
                (
                    "tables",
                    "".join(table_html(t, f"table-{k}") for k, t in enumerate(further(comparison, ROWS))),
                )
            ]
            if comparison.tables
            else []
        ),
        *ends,
    ]


def _section(key: str, title: str, content: str) -> str:
    heading = f"<h2>{html_sections.text(title)}</h2>" if title else ""
    return f'<section id="{key}">{heading}{content}</section>'


def figure_of(name: str, of: Chart, drawn: Drawn) -> str:
    """The place of a chart; what is drawn there goes into ``drawn``. A chart with nothing to show is a sentence."""
    if of.figure is None:
        return f'<p class="missing" data-chart="{name}">{html_sections.text(of.title, 1000)}</p>'
    if not drawn.add(name, {"data": of.figure["data"], "layout": of.figure["layout"], "dark": of.dark}):
        return (
            f'<p class="missing" data-chart="{name}">The chart “{name}” is too large for this page: tracediff '
            f"export --charts draws it.</p>"
        )
    told = html_sections.text(f"{of.title}. {of.subtitle}", 2000)
    below = f"<span>{html_sections.text(of.subtitle, 2000)}</span>" if of.subtitle else ""
    place = (
        f'<div class="chart" id="chart-{name}" data-chart="{name}" role="img" aria-label="{told}" '
        f'style="min-height:{of.height}px"></div>'
    )
    return (
        f"<figure><figcaption><strong>{html_sections.text(of.title, 1000)}</strong>{below}</figcaption><div "
        f'class="scroll">{place}</div></figure>'
    )


def _table(key: str, title: str) -> str:
    choice = '<label><input type="checkbox"> with annotations and Python functions</label>' if key == "ops" else ""
    hint = "name, kind or family" if key == "ops" else "name, operator, module, family or level"
    return TABLE.format(key=key, title=title, hint=hint, choice=choice)


def versions() -> list[tuple[str, str]]:
    """What makes the page."""
    from plotly import __version__ as plotly

    tools = f"tracediff {VERSION}, Python {platform.python_version()}, plotly {plotly}"
    return [("made with", tools), ("made on", date.today().isoformat())]


def palettes() -> str:
    """Both palettes of the charts as CSS variables, so that page and charts agree."""
    keys = ("control", "test", "faster", "slower", "text", "muted", "grid", "paper", "middle")
    rules = []
    for theme in ("light", "dark"):
        of = palette(theme)
        selector = ":root, :root[data-theme=light]" if theme == "light" else ":root[data-theme=dark]"
        rules.append(f"{selector}{{color-scheme:{theme};" + "".join(f"--{k}:{getattr(of, k)};" for k in keys) + "}")
    return "\n".join(rules)


def _own(name: str) -> str:
    return files("tracediff.report.page").joinpath(name).read_text("utf-8")


def _inline(script: str) -> str:
    """``script`` so that it cannot end its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _sha256(script: str) -> str:
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()
