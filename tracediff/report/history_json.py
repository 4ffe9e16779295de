"""A history → the JSON document of schema ``tracediff.history/1`` (docs/reference/history.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tracediff.history.explain import ExplainedSeries, Explanation
from tracediff.history.series import Point, Series
from tracediff.present.history import cause_text
from tracediff.report.json_text import json_text

Microseconds = Annotated[float, Meta(description="µs per step")]
CommitName = Annotated[str, Meta(description="hash or other name of the commit")]


class HistoryPoint(Struct):
    """One commit."""

    commit: CommitName
    committed: Annotated[int, Meta(description="time of the commit, in s since 1970")]
    message: Annotated[str, Meta(description="first line of the commit's message; empty where unknown")]
    runs_us: Annotated[list[float], Meta(description="median step of each run, in µs")]
    step_us: Annotated[float, Meta(description="geometric mean of the runs, in µs")]
    ci95_us: Annotated[
        tuple[float, float] | None,
        Meta(description="95 % interval of step_us, from the noise of the series; null where unknown"),
    ]
    families: Annotated[dict[str, float], Meta(description="family of work → median over runs, µs per step")]
    memory_bytes: Annotated[float | None, Meta(description="peak memory of the median run; null where not recorded")]


class HistoryOperator(Struct):
    """Work that changed with the step."""

    operator: Annotated[str, Meta(description="operator and kernels; `control → test` where they differ")]
    delta_us: Annotated[float, Meta(description="after − before, µs per step")]


class HistoryChange(Struct):
    """One change point."""

    commit: Annotated[str, Meta(description="first commit at the new level, by the best estimate")]
    good: Annotated[str, Meta(description="last recorded commit that is before the change with 95 %")]
    bad: Annotated[str, Meta(description="first recorded commit that is after the change with 95 %")]
    commits: Annotated[
        int | None, Meta(description="number of commits after good, up to bad; null where the repository lacks them")
    ]
    change: Annotated[float, Meta(description="relative change of the step time")]
    ci95: Annotated[tuple[float, float] | None, Meta(description="95 % interval of change; null where untested")]
    p_value: Annotated[float, Meta(description="p-value, corrected for the search")]
    finding: Annotated[str | None, Meta(description="effect that is most of the first cause; null without one")]
    statement: Annotated[str | None, Meta(description="the first cause in a sentence; null without one")]
    operators: list[HistoryOperator]


class HistorySeries(Struct):
    """The commits of one machine and configuration."""

    machine: Annotated[str, Meta(description="what the sets ran on")]
    configuration: Annotated[str, Meta(description="what ran")]
    is_in_git_order: Annotated[bool, Meta(description="whether points are in the repository's order, else by time")]
    sd: Annotated[
        float | None, Meta(description="standard deviation of a run's step, as a part of it; null where unknown")
    ]
    points: Annotated[list[HistoryPoint], Meta(description="commits in order")]
    changes: Annotated[list[HistoryChange], Meta(description="change points in order")]


class HistoryDocument(Struct):
    """The step time over commits."""

    schema: Literal["tracediff.history/1"]
    series: list[HistorySeries]
    unread: Annotated[list[str], Meta(description="one line for each entry that cannot be read")]


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
    return HistoryPoint(
        commit=point.commit,
        committed=point.committed,
        message=point.subject,
        runs_us=list(point.runs_us),
        step_us=point.step_us,
        ci95_us=series.interval_us(point),
        families=point.families,
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
