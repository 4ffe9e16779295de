"""`Series`: the commits of one machine and configuration in order, with their numbers; and what explains a change of
them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from statistics import median

from msgspec.structs import replace

from tracediff import bounds, thresholds
from tracediff.aggregate.samples import family_samples
from tracediff.aggregate.traceset import Recorded, Run, TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.figures import peak_memory
from tracediff.diff.statistics.runs import reach
from tracediff.diff.views import WorkChange
from tracediff.errors import TracediffError, check_choice, quoted
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import Cause
from tracediff.git import Repository
from tracediff.history.change_points import Change, Noise, find_changes
from tracediff.history.store import medians_us
from tracediff.source.changed_code import changed_between
from tracediff.structs import FrozenStruct


class Point(FrozenStruct):
    """One commit; times in µs per step.

    Attributes:
        recorded: its name and time. subject: first line of its message; empty if unknown.
        traces: all its runs.
        runs_us: the median step of each run.
        families: family → median over runs.
        memory: peak bytes of the median run, of the GPU where recorded, else of the host; None without a manifest.
    """

    recorded: Recorded
    subject: str
    traces: TraceSet
    runs_us: tuple[float, ...]
    families: dict[str, float]
    memory: float | None

    @property
    def commit(self) -> str:
        """Its name."""
        return self.recorded.commit

    @property
    def committed(self) -> int:
        """Its time in s since 1970."""
        return self.recorded.committed

    @property
    def logs(self) -> list[float]:
        """The logarithm of each run's step."""
        return [math.log(us) for us in self.runs_us]

    @property
    def step_us(self) -> float:
        """The geometric mean over runs, which `logs` average to."""
        return math.exp(sum(self.logs) / len(self.runs_us))


class Series(FrozenStruct, dict=True):
    """The commits of one machine and configuration in order.

    Attributes:
        points: at least one.
        is_of_git: whether the order is that of the repository; else it is that of the commits' times.
        changes: where the step time changes. noise: what varies beside; None if there is one run.
        explanations: of each change; none until `explained`.
    """

    points: tuple[Point, ...]
    is_of_git: bool
    changes: tuple[Change, ...]
    noise: Noise | None
    explanations: tuple[ExplainedChange, ...] = ()

    @property
    def machine(self) -> str:
        """What all commits ran on."""
        return self.points[0].recorded.machine

    @property
    def configuration(self) -> str:
        """What ran of all commits."""
        return self.points[0].recorded.configuration

    @property
    def is_too_short(self) -> bool:
        """Whether it has several commits, and before or after each too few runs for a change of level."""
        before = list(accumulate(len(point.runs_us) for point in self.points))
        return len(before) > 1 and all(min(n, before[-1] - n) < thresholds.LEVEL_RUNS for n in before)

    def interval_us(self, point: Point) -> tuple[float, float] | None:
        """95 % interval of the step time of ``point`` in µs, from the noise of the series; None where there are
        too few runs, or the noise may be a change.
        """
        if self.noise is None or self.noise.freedom < thresholds.NOISE_FREEDOM or self.is_too_short:
            return None
        half = reach(self.noise.freedom) * self.noise.sd / math.sqrt(len(point.runs_us))
        return point.step_us * math.exp(-half), point.step_us * math.exp(half)

    @property
    def has_memory(self) -> bool:
        """Whether the peak memory of any commit is recorded."""
        return any(point.memory is not None for point in self.points)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """All families, the one with most time at any commit first."""
        by_time = sorted((-us, name) for point in self.points for name, us in point.families.items())
        return tuple(dict.fromkeys(name for _, name in by_time))


Commits = dict[str, tuple[Recorded, list[TraceSet]]]
"""Commit → of what its first entry was recorded, and all its entries."""


def all_series(entries: Iterable[TraceSet], repository: Repository) -> list[Series]:
    """The series of ``entries``, by machine and configuration; entries of one commit are one point."""
    grouped: dict[tuple[str, str], Commits] = defaultdict(dict)
    for traces in entries:
        if recorded := traces.recorded:
            commits = grouped[recorded.machine, recorded.configuration]
            commits.setdefault(recorded.commit, (recorded, []))[1].append(traces)
    return [_series(commits, repository) for _, commits in sorted(grouped.items())]


def selected(series: Sequence[Series], machine: str | None, configuration: str | None) -> list[Series]:
    """Those of ``series`` of this machine and configuration; None for any.

    Raises:
        TracediffError: there is none.
    """
    filters = {"machine": machine, "configuration": configuration}
    for attribute, name in filters.items():
        choices = dict.fromkeys(getattr(one, attribute) for one in series)
        if name is not None:
            listed = f"there are {'; '.join(choices)}"
            check_choice(name, choices, f"--{attribute}", f"the history has no {quoted(name)}", listed)
    matching = [one for one in series if machine in (None, one.machine) and configuration in (None, one.configuration)]
    if not matching:
        raise TracediffError("--machine", "has no entry of this configuration", "leave out one of both options")
    return matching


def pooled(sets: Sequence[TraceSet], label: str) -> TraceSet:
    """The runs of all ``sets`` as one set, with the manifest of the last."""
    runs = [
        Run(f"{run.name} of set {k}", run.ranks) if len(sets) > 1 else run
        for k, traces in enumerate(sets, 1)
        for run in traces.runs
    ]
    manifest = sets[-1].manifest
    if manifest:
        facts = [fact for traces in sets if traces.manifest for fact in traces.manifest.runs]
        manifest = replace(manifest, runs=facts)
    notes = tuple(dict.fromkeys(note for traces in sets for note in traces.notes))
    return replace(sets[-1], label=label, runs=runs, manifest=manifest, notes=notes)


def _series(commits: Commits, repository: Repository) -> Series:
    of_git = repository.in_order(commits)
    order = of_git or sorted(commits, key=lambda name: (commits[name][0].committed, name))
    subjects = repository.subjects(commits)
    points = tuple(_point(*commits[name], subjects.get(name, "")) for name in order)
    changes, noise = find_changes([point.logs for point in points])
    return Series(points, of_git is not None, tuple(changes), noise)


def _point(recorded: Recorded, entries: list[TraceSet], subject: str) -> Point:
    traces = pooled(entries, recorded.commit[:12])
    work_family = traces.families.of_kernel if traces.has_gpu else traces.families.of_work
    families = family_samples(traces, traces.has_gpu, work_family).values
    return Point(
        recorded,
        subject,
        traces,
        runs_us=medians_us(traces),
        families={str(name): float(median(values)) for name, values in families.items()},
        memory=peak_memory(traces.manifest)[0],
    )


class ExplainedChange(FrozenStruct):
    """One change.

    Attributes:
        change: where it is. before, after: the last commit before it for certain, the first after it for certain.
        commits: how many commits are after ``before``, up to ``after``; None if the repository does not have them.
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
        return next(iter(self.comparison.causes), None)


def explain(series: Series, change: Change, repository: Repository) -> ExplainedChange:
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
    least = thresholds.NAMED_OPERATOR * abs(comparison.step_time.delta)
    operators = [row for row in comparison.work_changes if sign * row.delta > least]
    commits = repository.distance(before.commit, after.commit)
    return ExplainedChange(change, before, after, commits, comparison, tuple(operators[: bounds.EXAMPLES]))


def _nearest(points: Iterable[Point], nearest: Point) -> TraceSet:
    """The runs of the first of ``points``, until they are enough."""
    sets = []
    for point in points:
        sets.append(point.traces)
        if sum(len(traces.runs) for traces in sets) >= thresholds.COMPARED_RUNS:
            break
    return pooled(sets[::-1], nearest.traces.label)


def explained(series: Series, repository: Repository) -> Series:
    """``series`` with its changes explained."""
    return replace(series, explanations=tuple(explain(series, change, repository) for change in series.changes))
