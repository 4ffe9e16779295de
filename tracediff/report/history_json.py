"""A history → the JSON document of schema ``tracediff.history/1`` (docs/reference/history.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from tracediff.history.explain import ExplainedSeries, Explanation
from tracediff.history.series import Point, Series
from tracediff.present.history import cause_text
from tracediff.report.json_text import JsonObject, filled, json_text

Microseconds = Annotated[float, Meta(description="µs per step")]
CommitName = Annotated[str, Meta(description="hash or other name of the commit")]


class HistoryPoint(JsonObject):
    """One commit."""

    commit: CommitName
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


class HistoryDocument(JsonObject):
    """The step time over commits."""

    schema: Literal["tracediff.history/1"]
    series: list[HistorySeries]
    unread: list[str]
    """one line for each entry that cannot be read"""


def to_json(explained: Sequence[ExplainedSeries], unread: Sequence[str]) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(HistoryDocument("tracediff.history/1", [_series(one) for one in explained], list(unread)))


def _series(one: ExplainedSeries) -> HistorySeries:
    series = one.series
    return HistorySeries(
        machine=series.machine,
        configuration=series.configuration,
        is_in_git_order=series.is_of_git,
        sd=series.noise.sd if series.noise else None,
        points=[_point(series, point) for point in series.points],
        changes=[_change(series, explanation) for explanation in one.explanations],
    )


def _point(series: Series, point: Point) -> HistoryPoint:
    return filled(
        HistoryPoint,
        point,
        message=point.subject,
        ci95_us=series.interval_us(point),
        memory_bytes=point.memory,
    )


def _change(series: Series, explained: Explanation) -> HistoryChange:
    found, cause = explained.change.estimate, explained.cause
    has_interval = found.low is not None and found.high is not None
    return HistoryChange(
        commit=series.points[explained.change.first].commit,
        good=explained.before.commit,
        bad=explained.after.commit,
        commits=explained.commits,
        change=math.expm1(found.effect),
        ci95=(math.expm1(found.low or 0.0), math.expm1(found.high or 0.0)) if has_interval else None,
        p_value=explained.change.p,
        finding=cause.effect if cause else None,
        statement=cause_text(cause) if cause else None,
        operators=[
            HistoryOperator(row.name or row.family, explained.comparison.us(row.delta)) for row in explained.operators
        ],
    )
