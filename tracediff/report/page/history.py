"""A history → one HTML file that works from disk, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tracediff.charts.figures.commits import commits
from tracediff.history.explain import ExplainedSeries
from tracediff.present.history import BY, change_texts, commits_table, noise_line, series_title
from tracediff.report.page.figures import chart, charts_within
from tracediff.report.page.flame import FlameGraph
from tracediff.report.page.html import page, versions


def to_html(explained: Sequence[ExplainedSeries], unread: Sequence[str], command: str | None = None) -> str:
    """All series as one page.

    Args:
        unread: one line for each entry that cannot be read. command: the command line that creates it.
    """
    charts = charts_within(chart(f"commits-{k}", partial(commits, one.series)) for k, one in enumerate(explained))
    return page(
        "history.html.jinja",
        "history · tracediff",
        charts,
        {},
        flame=FlameGraph("", ""),
        series=[
            {
                "key": f"commits-{k}",
                "title": series_title(one.series),
                "noise": noise_line(one.series),
                "changes": change_texts(one.series, one.explanations),
                "tables": {by: commits_table(one.series, by, None) for by in BY if by != "memory" or _has_memory(one)},
            }
            for k, one in enumerate(explained)
        ],
        unread=unread,
        command=command,
        origin=versions(),
    )


def _has_memory(one: ExplainedSeries) -> bool:
    return any(point.memory is not None for point in one.series.points)
