"""A history → terminal, Markdown, a page, and the JSON document of schema ``tracediff.history/1``
(docs/reference/history.md).
"""

import math
import shlex
from collections.abc import Sequence
from functools import partial

from rich.console import Console, Group, RenderableType

from tracediff.history.bisect import Bisected
from tracediff.history.series import ExplainedChange, Point, Series
from tracediff.present.history import (
    BY,
    ChangeText,
    bisect_command,
    cause_text,
    change_texts,
    commits_table,
    noise_line,
    series_title,
)
from tracediff.report.escape import escaped
from tracediff.report.json_text import JsonObject, filled, json_text
from tracediff.report.table_terminal import INDENT, line, print_screen, to_rich
from tracediff.report.to_markdown import joined, section_lines


def show(
    where: str,
    series: Sequence[Series],
    unread: Sequence[str],
    console: Console,
    *,
    view: str = "step",
    last: int | None = None,
) -> None:
    """Print every series: its commits, then what explains each change.

    Args:
        where: the history, for the command that looks closer.
        by: what the table of commits shows. last: how many commits it shows; None for all.
    """
    parts = [line(f"not read: {entry}", "dim") for entry in unread]
    for one in series:
        parts += [
            line(series_title(one), "bold"),
            line(noise_line(one), indent=INDENT),
            line(),
            to_rich(commits_table(one, view, last)),
        ]
        for text, explanation in zip(change_texts(one), one.explanations, strict=True):
            parts += _change_block(text)
            command = bisect_command(shlex.quote(where), explanation)
            parts += [line(f"next: {command}", indent=INDENT)] if command else []
            parts.append(line())
    print_screen(console, Group(*parts))


def _change_block(text: ChangeText) -> list[RenderableType]:
    lines = [
        line(text.title, "bold"),
        line(text.significance, "dim", INDENT),
        line(f"commits: {text.commits}", indent=INDENT),
    ]
    lines += [line(fact, indent=INDENT) for fact in (text.cause, text.code) if fact]
    lines += [line(operator, "dim", 2 * INDENT) for operator in text.operators]
    return [*lines, *([line(f"compare with caution: {text.cautions}", "dim", INDENT)] if text.cautions else [])]


def show_bisected(bisected: Bisected, subjects: dict[str, str], console: Console) -> None:
    """Print the first bad commit, what that rests on and what explains it; or the commits that it may be, and why."""
    titles = [f"{commit} {subjects.get(commit, '')}".rstrip() for commit in bisected.suspects]
    if bisected.comparison is None:
        which = "The first bad commit is one of these" if len(titles) > 1 else "The first bad commit may be this one"
        heading = line(f"inconclusive: {bisected.inconclusive or 'commits were skipped'}", "bold")
        listed = [line(title, indent=INDENT) for title in titles]
        print_screen(console, Group(heading, line(f"{which}:"), *listed))
        return
    causes = [cause for cause in bisected.comparison.causes if cause.delta_us > 0][:1]  # it is slower
    why = line(f"against the commit before it: {bisected.why}", indent=INDENT)
    listed = [line(cause_text(cause), indent=INDENT) for cause in causes]
    print_screen(console, Group(line(f"first bad commit: {titles[0]}", "bold"), why, *listed))


def to_markdown(series: Sequence[Series], unread: Sequence[str], *, view: str = "step", last: int | None = None) -> str:
    """All series as GitHub-flavoured Markdown; the arguments are those of `show`."""
    lines = [f"- not read: {escaped(line)}" for line in unread] + ([""] if unread else [])
    for one in series:
        lines += [f"## {escaped(series_title(one))}", "", escaped(noise_line(one)), ""]
        for text in change_texts(one):
            lines += _change_lines(text)
        lines += section_lines(commits_table(one, view, last))
    return joined(lines)


def _change_lines(text: ChangeText) -> list[str]:
    lines = [f"**{escaped(text.title)}** ({escaped(text.significance)})", "", f"- commits: {escaped(text.commits)}"]
    lines += [f"- {escaped(line)}" for line in (text.cause, text.code) if line]
    lines += [f"- {escaped(operator)}" for operator in text.operators]
    lines += [f"- compare with caution: {escaped(text.cautions)}"] if text.cautions else []
    return [*lines, ""]


class HistoryPoint(JsonObject):
    """One commit."""

    commit: str
    """hash or other name of the commit"""
    committed: int
    """time of the commit, in s since 1970"""
    message: str
    """first line of the commit's message; empty where unknown"""
    runs_us: list[float]
    """median step of each run, in µs"""
    step_us: float
    """geometric mean of the runs, in µs"""
    ci95_us: tuple[float, float] | None
    """95 % interval of step_us, from the noise of the series; null where unknown"""
    families: dict[str, float]
    """family of work → median over runs, µs per step"""
    memory_bytes: float | None
    """peak memory of the median run; null where not recorded"""


class HistoryOperator(JsonObject):
    """Work that changed with the step."""

    operator: str
    """operator and kernels; `control → test` where they differ"""
    delta_us: float
    """after − before, µs per step"""


class HistoryChange(JsonObject):
    """One change point."""

    commit: str
    """first commit at the new level, by the best estimate"""
    good: str
    """last recorded commit that is before the change with 95 %"""
    bad: str
    """first recorded commit that is after the change with 95 %"""
    commits: int | None
    """number of commits after good, up to bad; null where the repository lacks them"""
    change: float
    """relative change of the step time"""
    ci95: tuple[float, float] | None
    """95 % interval of change; null where untested"""
    p_value: float
    """p-value, corrected for the search"""
    finding: str | None
    """effect that is most of the first cause; null without one"""
    statement: str | None
    """the first cause in a sentence; null without one"""
    operators: list[HistoryOperator]


class HistorySeries(JsonObject):
    """The commits of one machine and configuration."""

    machine: str
    """what the sets ran on"""
    configuration: str
    """what ran"""
    is_in_git_order: bool
    """whether points are in the repository's order, else by time"""
    sd: float | None
    """standard deviation of a run's step, as a part of it; null where unknown"""
    points: list[HistoryPoint]
    """commits in order"""
    changes: list[HistoryChange]
    """change points in order"""


class HistoryDocument(JsonObject, tag_field="schema", tag="tracediff.history/1"):
    """The step time over commits."""

    series: list[HistorySeries]
    unread: list[str]
    """one line for each entry that cannot be read"""


def to_json(series: Sequence[Series], unread: Sequence[str]) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(HistoryDocument([_series(one) for one in series], list(unread)))


def _series(series: Series) -> HistorySeries:
    return filled(
        HistorySeries,
        series,
        is_in_git_order=series.is_of_git,
        sd=series.noise.sd if series.noise else None,
        points=[_point(series, point) for point in series.points],
        changes=[_change(series, explanation) for explanation in series.explanations],
    )


def _point(series: Series, point: Point) -> HistoryPoint:
    return filled(
        HistoryPoint,
        point,
        message=point.subject,
        ci95_us=series.interval_us(point),
        memory_bytes=point.memory,
    )


def _change(series: Series, explained: ExplainedChange) -> HistoryChange:
    estimate, cause = explained.change.estimate, explained.cause
    interval = estimate.interval
    return HistoryChange(
        commit=series.points[explained.change.first].commit,
        good=explained.before.commit,
        bad=explained.after.commit,
        commits=explained.commits,
        change=math.expm1(estimate.effect),
        ci95=(math.expm1(interval[0]), math.expm1(interval[1])) if interval else None,
        p_value=explained.change.p,
        finding=cause.effect if cause else None,
        statement=cause_text(cause) if cause else None,
        operators=[
            HistoryOperator(row.name or row.family, explained.comparison.us(row.delta)) for row in explained.operators
        ],
    )


def to_html(series: Sequence[Series], unread: Sequence[str], command: str | None = None) -> str:
    """All series as one page.

    Args:
        unread: one line for each entry that cannot be read. command: the command line that creates it.
    """
    from tracediff.charts.figures.commits import commits
    from tracediff.report.page.figures import chart, charts_within
    from tracediff.report.page.html import page, versions

    charts = charts_within(chart(f"commits-{k}", partial(commits, one)) for k, one in enumerate(series))
    return page(
        "history.html.jinja",
        "history · tracediff",
        charts,
        series=[
            {
                "key": f"commits-{k}",
                "title": series_title(one),
                "noise": noise_line(one),
                "changes": change_texts(one),
                "tables": {view: commits_table(one, view, None) for view in BY if view != "memory" or one.has_memory},
            }
            for k, one in enumerate(series)
        ],
        unread=unread,
        command=command,
        origin=versions(),
    )
