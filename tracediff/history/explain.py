"""What explains a change: the commits that it may have come with, and a comparison of the runs before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.work_changes import WorkChange
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import Cause
from tracediff.git import Repository
from tracediff.history.change_points import Change
from tracediff.history.series import Point, Series, pooled
from tracediff.source.commits import changed_between

ENOUGH_RUNS = 10
"""Runs per side that are compared: those of the commits nearest to the change."""
MOST_OPERATORS = 3
LEAST_SHARE = 0.1
"""Part of the step's change below which the change of an operator is not named."""


@dataclass(frozen=True)
class Explanation:
    """One change.

    Attributes:
        change: where it is. before, after: the last commit before it for certain, the first after it for certain.
        commits: how many commits are after ``before``, up to ``after``; None if the repository does not tell.
        comparison: of the runs before with those after.
        operators: the matched work that changed most, in the direction of the step.
    """

    change: Change
    before: Point
    after: Point
    commits: int | None
    comparison: Comparison
    operators: tuple[WorkChange, ...]

    @property
    def cause(self) -> Cause | None:
        """The line that accounts for most of the change."""
        found = self.comparison.explanation
        return next(iter(found.causes), None) if found else None


def explain(series: Series, change: Change, repository: Repository) -> Explanation:
    """The commits and causes of ``change``."""
    before, after = series.points[change.earliest - 1], series.points[change.latest]
    comparison = compare_sets(
        _nearest(reversed(series.points[change.start : change.earliest]), before),
        _nearest(series.points[change.latest : change.end], after),
        force=True,
    )
    comparison = replace(
        comparison, changed_code=changed_between(comparison, repository, (before.commit, after.commit))
    )
    sign = 1 if change.estimate.effect > 0 else -1
    least = LEAST_SHARE * abs(comparison.step_time.delta)
    operators = [row for row in comparison.work_changes if sign * row.delta > least]
    commits = repository.distance(before.commit, after.commit)
    return Explanation(change, before, after, commits, comparison, tuple(operators[:MOST_OPERATORS]))


def _nearest(points: Iterable[Point], nearest: Point) -> TraceSet:
    """The runs of the first of ``points``, until they are enough."""
    sets: list[TraceSet] = []
    for point in points:
        sets.append(point.traces)
        if sum(len(traces.runs) for traces in sets) >= ENOUGH_RUNS:
            break
    return pooled(sets[::-1], nearest.traces.label)


@dataclass(frozen=True)
class ExplainedSeries:
    """A series, and an explanation of each of its changes in order."""

    series: Series
    explanations: tuple[Explanation, ...]


def explain_all(all_series: Iterable[Series], repository: Repository) -> list[ExplainedSeries]:
    """Each of ``all_series`` with its changes explained."""
    return [
        ExplainedSeries(series, tuple(explain(series, change, repository) for change in series.changes))
        for series in all_series
    ]
