"""Per-step averages of a set, as exact integers over a common denominator; and the step that is shown where only one
can be.

A rank's number is the mean over its used steps, a run's the mean over its ranks, a set's the mean over its runs. Means
of means are not integers, so every average is a numerator in 1/denominator nanoseconds (or events); it is divided once,
where it is shown.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import lcm

import numpy as np
from msgspec import field

from tracediff import thresholds
from tracediff.aggregate.call_tree import Averaged, CallTree, merge
from tracediff.aggregate.traceset import Run, TraceSet, Weighted, alike, in_steps, rows_named
from tracediff.arrays import Int64, group_by, grouped, sums, tuples
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.events.step_states import STATES
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.model.profile import OpTable, PackedTimeline, Profile, Timeline, WorkTable
from tracediff.profile.tables import table_schema
from tracediff.profile.tables.schema import TableSchema
from tracediff.runtimes import KERNEL, is_communication, is_host_collective
from tracediff.structs import FrozenStruct, Pair

ANNOTATION = "user_annotation"
"""Category of the host's collectives."""
COMMUNICATING = "gpu_comm", f"op:{COMMUNICATION}", "synchronising"
"""States in which a rank does nothing but communicate, with a GPU and without, or wait."""


def own_time(states: Mapping[str, float]) -> float:
    """What of the ``states`` of a step a rank does itself: all but waiting for others and communicating."""
    return sum(time for state, time in states.items() if state not in COMMUNICATING)


class UsedStep(FrozenStruct):
    """One used step of one run; of several ranks the slowest one's.

    Attributes:
        number: N of ProfilerStep#N.
        rank: whose it is.
        states: state → ns, sums to the period.
        foreign_ns: of the GPU's states, held only by GPU events that were launched in no used step.
        draining_ns: of a file's first step, see `Profile`. host_ns: how long it takes on the host.
        file, position: which of the rank's files, and where in it.
    """

    number: int
    rank: int
    states: dict[str, int]
    foreign_ns: int = 0
    draining_ns: int = 0
    host_ns: int = 0
    file: int = 0
    position: int = 0

    @property
    def period_ns(self) -> int:
        """Completion to completion."""
        return sum(self.states.values())


RunSteps = dict[str, list[UsedStep]]
"""Run → its used steps, in order."""


class StepAverage(Averaged):
    """The step account of a set.

    Attributes:
        period, foreign: numerators. draining: numerator per run, of the time before the first steps if these are used.
        states: state → numerator; they sum to `period`.
        runs: run name → its used steps in order.
    """

    period: int
    foreign: int
    draining: int
    states: dict[str, int]
    runs: RunSteps


class KernelAverage(Averaged):
    """The kernel numbers of a set that are not in the kernel account (the mean rank's).

    Attributes:
        busy: numerator of the union per GPU, summed over GPUs.
        spilled, outside: [ns, count] of the whole set, no numerators.
    """

    busy: int
    spilled: list[int]
    outside: list[int]


class Average(Averaged):
    """Rows of a set per step.

    Attributes:
        rows: key → numerators.
    """

    rows: dict[tuple[str, ...], list[int]] = field(default_factory=dict)

    def add(self, key: tuple[str, ...], values: Sequence[int], weight: int) -> None:
        """Add ``weight`` times ``values`` to the row of ``key``."""
        row = self.rows.setdefault(key, [0] * len(values))
        for k, value in enumerate(values):
            row[k] += weight * value

    def per_step(self) -> list[tuple[tuple[str, ...], list[float]]]:
        """(key, values of the columns per step) of each row, the largest first."""
        ordered = sorted(self.rows.items(), key=lambda row: (-row[1][0], row[0]))
        return [(key, [n / self.denominator for n in values]) for key, values in ordered]


class SetTable(Average, kw_only=True):
    """A table of a set: its rows have the keys and columns of ``schema``."""

    schema: TableSchema


def keep_pace(periods: Collection[float], communication: Collection[float]) -> bool:
    """Whether ranks with these mean periods take as long; those that communicate wait for one another, so that they
    do but for where their steps begin and end.
    """
    apart = thresholds.RANKS_ALIKE if all(communication) else thresholds.NO_DIFFERENCE
    return min(periods) >= (1 - apart) * max(periods)


def used_steps(traces: TraceSet, run: Run, rank: int | None = None) -> list[UsedStep]:
    """The used steps of ``run`` in order of number; of several ranks each step's slowest. Ranks that take as long as it
    over all steps keep pace with it: of these ``rank``, else the one that waits least, as it is the one that the others
    wait for; the lowest rank where they tie.
    """
    every: list[UsedStep] = []
    means: dict[int, float] = {}
    communication = dict.fromkeys(run.ranks, 0)  # of one rank it is not asked for
    for number in sorted(run.ranks):
        files = _with_used(traces, run.ranks[number])
        steps = [step for file, (profile, used) in enumerate(files) for step in _steps_of(profile, used, number, file)]
        means[number] = sum(step.period_ns for step in steps) / len(steps)
        if len(run.ranks) > 1:
            communication[number] = sum(_communication_ns(profile, used) for profile, used in files)
        every += steps
    latest = []
    for _, steps in sorted(group_by(every, lambda step: step.number).items()):
        slowest = max(steps, key=lambda step: step.period_ns)
        together = [
            step
            for step in steps
            if step is slowest
            or keep_pace(*([values[step.rank], values[slowest.rank]] for values in (means, communication)))
        ]
        latest.append(max(together, key=lambda step: (step.rank == rank, own_time(step.states))))
    return latest


def _with_used(traces: TraceSet, profiles: Sequence[Profile]) -> list[tuple[Profile, Int64]]:
    """Each of the profiles of a rank with the positions of its used steps."""
    return [(profile, np.flatnonzero(traces.selection.used(profile))) for profile in profiles]


def usual_rank(runs: Mapping[str, Sequence[UsedStep]]) -> int | None:
    """The rank that nearly all steps of ``runs`` are of, if there is one."""
    number = Counter(step.rank for steps in runs.values() for step in steps)
    rank, steps = max(number.items(), key=lambda item: (item[1], -item[0]), default=(None, 0))
    return rank if steps >= thresholds.USUALLY_SLOWEST * number.total() else None


def _steps_of(profile: Profile, used: Int64, rank: int, file: int) -> Iterator[UsedStep]:
    owned = profile.owned
    foreign = sums(owned.step, owned.ns * ~in_steps(profile, owned.owner, used), len(profile.step_numbers))
    for s in used.tolist():
        yield UsedStep(
            number=int(profile.step_numbers[s]),
            rank=rank,
            states=dict(zip(profile.state_names, profile.state_ns[s].tolist(), strict=True)),
            foreign_ns=int(foreign[s]),
            draining_ns=profile.draining_ns if s == 0 else 0,
            host_ns=int(profile.host_ns[s]),
            file=file,
            position=s,
        )


def step_average(traces: TraceSet, rank: int | None = None) -> StepAverage:
    """The step account of ``traces``: mean over runs of the mean over each run's used steps, of ``rank`` where that
    keeps pace with the slowest.
    """
    runs = {run.name: used_steps(traces, run, rank) for run in traces.runs}
    denominator = lcm(*(len(runs) * len(steps) for steps in runs.values()))
    states = dict.fromkeys(STATES, 0)
    period = foreign = draining = 0
    for steps in runs.values():
        weight = denominator // (len(runs) * len(steps))
        for step in steps:
            period += weight * step.period_ns
            foreign += weight * step.foreign_ns
            draining += weight * len(steps) * step.draining_ns
            for state, ns in step.states.items():
                states[state] = states.get(state, 0) + weight * ns
    return StepAverage(denominator, period, foreign, draining, states, runs)


def step_averages(sides: Pair[TraceSet]) -> Pair[StepAverage]:
    """The step accounts of both sides: where the usual rank of the side that takes longer, or else of the other, keeps
    pace on both, of that rank, so that what it does is compared with what it did.
    """
    own = sides.map(step_average)
    usual = own.map(lambda side: usual_rank(side.runs))
    longer, shorter = (
        usual
        if own.control.period * own.test.denominator >= own.test.period * own.control.denominator
        else usual.swapped
    )
    for rank in (longer, shorter) if longer is not None and longer != shorter else ():
        same = Pair(*(step_average(traces, rank) for traces in sides))
        if all(usual_rank(side.runs) == rank for side in same):
            return same
    return own


def files_of_ranks(traces: TraceSet) -> Iterator[tuple[Run, int, list[tuple[Profile, Int64]], int]]:
    """(run, rank, its files with the positions of their used steps, the number of these) of each rank of each run."""
    for run in traces.runs:
        for rank, profiles in run.ranks.items():
            files = _with_used(traces, profiles)
            yield run, rank, files, sum(len(used) for _, used in files)


def weighted_files(traces: TraceSet) -> tuple[int, Weighted]:
    """(denominator, [(profile, positions of its used steps, weight of a step)]): weights of mean over steps, ranks and
    runs.
    """
    shares = [
        (profile, used.tolist(), len(traces.runs) * len(run.ranks) * steps)
        for run, _, files, steps in files_of_ranks(traces)
        for profile, used in files
    ]
    denominator = lcm(*(share for _, _, share in shares))
    return denominator, [(p, u, denominator // share) for p, u, share in shares]


def call_tree(traces: TraceSet, gpu: bool, scale: int) -> CallTree:
    """The call tree of ``traces`` per step of the mean rank, numerators over ``scale``, a multiple of the denominator
    of `weighted_files`; its work are GPU events or, without ``gpu``, the self time of operators.
    """
    denominator, weighted = weighted_files(traces)
    on_scale = [(profile, used, scale // denominator * weight) for profile, used, weight in weighted]
    return merge(on_scale, scale, [p.kernels if gpu else p.host_work for p, _, _ in weighted])


def kernel_average(traces: TraceSet) -> KernelAverage:
    """Busy time per step, and the GPU events that belong to no step."""
    denominator, weighted = weighted_files(traces)
    busy = sum(weight * int(profile.busy_ns[used].sum()) for profile, used, weight in weighted)
    kernels = [profile.kernels for profile, _, _ in weighted]
    spilled, outside = (
        [
            sum(int(getattr(table, name)[table.step == step].sum()) for table in kernels)
            for name in ("total_ns", "count")
        ]
        for step in (-2, -1)
    )
    return KernelAverage(denominator, busy, spilled, outside)


def op_average(traces: TraceSet) -> Average:
    """All operations of ``traces``, the mean rank's: (category, raw name) → count, total and self time."""
    denominator, weighted = weighted_files(traces)
    average = Average(denominator)
    profiles = [profile for profile, _, _ in weighted]
    for group in alike(weighted, [p.ops for p in profiles], [(p.names, p.categories) for p in profiles]):
        profile, table = group.profile, group.table
        rows = np.flatnonzero(in_steps(profile, table.step, group.used))
        columns = (table.category, table.name, table.count, table.total_ns, table.self_ns)
        for category, name, *amounts in tuples(*(column[rows] for column in columns)):
            average.add((profile.categories[category], profile.names[name]), amounts, group.weight)
    return average


def table_average(traces: TraceSet, name: str) -> SetTable:
    """The table called ``name`` per step of the mean rank; files without it have none of its rows."""
    denominator, weighted = weighted_files(traces)
    average = SetTable(denominator, schema=table_schema(name))
    files = [of_file for of_file in weighted if name in of_file[0].tables]
    for group in alike(files, [profile.tables[name] for profile, _, _ in files], [()] * len(files)):
        table = group.table
        rows = in_steps(group.profile, table.step, group.used)
        (keys,), columns = grouped([table.key[rows]], list(table.values[rows].T))
        for key, *values in tuples(keys, *columns):
            average.add(table.keys[key], values, group.weight)
    return average


def communication_us(traces: TraceSet) -> dict[int, float]:
    """Rank → time of its communication kernels and of the host's collectives per used step, in µs; empty where no rank
    has any.
    """
    out: dict[int, list[float]] = defaultdict(list)
    for _, rank, files, steps in files_of_ranks(traces):
        total = sum(_communication_ns(profile, used) for profile, used in files)
        out[rank].append(total / steps / 1000)
    means = {rank: sum(runs) / len(runs) for rank, runs in sorted(out.items())}
    return means if any(means.values()) else {}


def _communication_ns(profile: Profile, used: Int64) -> int:
    """Time of the communication kernels and of the host's collectives in ``used`` steps."""
    tables: tuple[tuple[WorkTable | OpTable, str, Callable[[str], bool]], ...] = (
        (profile.kernels, KERNEL, is_communication),
        (profile.ops, ANNOTATION, is_host_collective),
    )
    total = 0
    for table, category, communicates in tables:
        rows = rows_named(profile, table, category, communicates)
        total += int(table.total_ns[rows[in_steps(profile, table.step[rows], used)]].sum())
    return total


def rank_states(traces: TraceSet) -> dict[int, dict[str, float]]:
    """Rank → state → µs per used step of that rank, whoever was the slowest; the mean over runs."""
    out: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    runs = Counter(rank for run in traces.runs for rank in run.ranks)
    for _, rank, files, steps in files_of_ranks(traces):
        for profile, used in files:
            for name, ns in zip(profile.state_names, profile.state_ns[used].sum(axis=0).tolist(), strict=True):
                out[rank][name] += ns / (1000 * runs[rank] * steps)
    return {rank: dict(out[rank]) for rank in sorted(out)}


class TypicalStep(FrozenStruct):
    """One step of one file.

    Attributes:
        run, rank, file: where it is from.
        timeline: what happened in it.
    """

    run: str
    rank: int
    file: TraceFile
    timeline: Timeline

    @property
    def period_us(self) -> float:
        """Its period in µs."""
        return (self.timeline.end - self.timeline.start) / 1000


def typical_step(traces: TraceSet, steps: RunSteps) -> TypicalStep | None:
    """The typical step of that file whose is nearest to the median period of all ``steps``; None where no file has its
    events (snapshots).

    It is one of ``steps`` where any file kept the events of such a one.
    """
    median = float(np.median([step.period_ns for run in steps.values() for step in run]))
    used = {(name, step.rank, step.number) for name, of_run in steps.items() for step in of_run}
    candidates = (
        (run.name, rank, profile, timeline)
        for run, rank, profile in traces.files
        if (timeline := profile.timeline) is not None
    )

    def oddness(place: tuple[str, int, Profile, PackedTimeline]) -> tuple[bool, float]:
        run, rank, profile, timeline = place
        step, period = profile.step_numbers[timeline.position], profile.periods[timeline.position]
        return (run, rank, step) not in used, abs(period - median)

    nearest = min(candidates, key=oddness, default=None)
    if nearest is None:
        return None
    run, rank, profile, timeline = nearest
    return TypicalStep(run, rank, profile.origin.file, timeline.unpacked())
