"""`SetSummary`: every number of one set per step, the further tables among them, and what it was made of (`Side`); a
comparison is made of two of them, an analysis of one.
"""

from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import NamedTuple

from tracediff import thresholds
from tracediff.aggregate.averages import (
    Average,
    KernelAverage,
    RunSteps,
    SetTable,
    StepAverage,
    TypicalStep,
    communication_us,
    keep_pace,
    kernel_average,
    op_average,
    own_time,
    rank_states,
    table_average,
    typical_step,
    usual_rank,
)
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.manifest import Manifest, TorchLog
from tracediff.ingest.model.health import Note, Notes, counted
from tracediff.profile.placement.gpu_events import NOT_RECORDED
from tracediff.profile.tables import ALL, table_names
from tracediff.profile.tables.schema import OVER_RANKS
from tracediff.runtimes import version_of
from tracediff.structs import FrozenStruct

MEDIAN = "median rank"


class LateRank(NamedTuple):
    """A rank, and what it does itself in a step; what others are called, and what they do; in µs."""

    rank: int
    own_us: float
    usual: str
    usual_us: float

    @property
    def waiting(self) -> str:
        """``the others wait``; of two ranks which one does."""
        return f"{self.usual} waits" if self.usual != MEDIAN else "the others wait"


class Side(FrozenStruct, kw_only=True):
    """What one side was made of.

    Attributes:
        label: its name in the report.
        files: file names without folders; where several have one, after the run.
        steps_recorded: numbers, ascending.
        devices: names of the GPUs in the metadata, which need not have any event. torch, driver: versions of torch, and
            of CUDA or HIP, where recorded.
        steps: run name → its used steps.
        notes: health notes.
        rank_states: rank, ascending → state → µs per used step of that rank.
        typical: the step that a timeline shows, None for a snapshot.
        communication_us: rank → communication kernels per used step, in µs.
        manifest: what the collector wrote of it, None for traces from elsewhere.
        torch_log: what logs of torch.compile say, None without logs.
    """

    label: str
    files: tuple[str, ...]
    steps_recorded: tuple[int, ...]
    devices: tuple[str, ...]
    torch: str | None
    driver: str | None
    whole_file: bool
    has_gpu: bool
    steps: RunSteps
    notes: tuple[Note, ...]
    communication_us: dict[int, float]
    rank_states: dict[int, dict[str, float]]
    typical: TypicalStep | None
    manifest: Manifest | None
    torch_log: TorchLog | None = None

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.steps)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of its ranks, ascending."""
        return tuple(self.rank_states)

    @property
    def steps_used(self) -> tuple[int, ...]:
        """The numbers of its used steps, ascending."""
        return tuple(sorted({step.number for steps in self.steps.values() for step in steps}))

    @property
    def gpu(self) -> tuple[str, ...]:
        """Names of the GPUs whose events the tables show."""
        return self.devices if self.has_gpu else ()

    @property
    def slowest_rank(self) -> int | None:
        """The rank that is the slowest in nearly all steps, if there is one."""
        return usual_rank(self.steps)

    @property
    def late_rank(self) -> LateRank | None:
        """The rank that the others wait for, if they keep pace with it and do much less themselves. The first steps of
        files begin where the recording does, and tell no pace: there it is the one that waits least as well.
        """
        periods = {rank: sum(states.values()) for rank, states in self.rank_states.items()}
        communication = [self.communication_us.get(rank, 0.0) for rank in periods]
        are_first = all(communication) and not any(step.position for steps in self.steps.values() for step in steps)
        if len(periods) < 2 or not (are_first or keep_pace(periods.values(), communication)):
            return None
        own = {rank: own_time(states) for rank, states in self.rank_states.items()}
        rank = max(own, key=lambda rank: own[rank])
        if are_first and self.communication_us[rank] > min(communication):
            return None
        usual = MEDIAN if len(own) > 2 else f"rank {min(own, key=lambda rank: own[rank])}"
        late = LateRank(rank, own[rank], usual, median_low(own.values()))
        return late if late.own_us - late.usual_us >= thresholds.STRAGGLING * max(periods.values()) else None

    @property
    def unrecorded_launches(self) -> int:
        """Launches in files without any GPU event."""
        return counted(self.notes, NOT_RECORDED)

    @property
    def graph_breaks(self) -> tuple[str, ...] | None:
        """Where and why the graph broke in the last compiled run; None without a manifest or a log that says."""
        runs = [r.compile for r in self.manifest.runs if r.compile] if self.manifest else []
        latest = runs[-1] if runs else self.torch_log
        return tuple(map(str, latest.graph_breaks)) if latest else None

    @property
    def recompiles(self) -> tuple[str, ...] | None:
        """Where and why code was compiled again; None without a log of torch.compile."""
        return tuple(map(str, self.torch_log.recompiles)) if self.torch_log else None

    @property
    def unprofiled_us(self) -> float | None:
        """Median over runs of the median step without the profiler, where the collector measured it."""
        return self.manifest.unprofiled_us if self.manifest else None


def _file_names(traces: TraceSet) -> tuple[str, ...]:
    """What each file is called: its name without folders, or where several have the same, after that of its run."""
    names = [profile.origin.file.name for profile in traces.profiles]
    if len({*names}) == len(names):
        return tuple(names)
    return tuple(f"{run.name}/{name}" for (run, *_), name in zip(traces.files, names, strict=True))


def side_of(traces: TraceSet, steps: RunSteps, notes: Iterable[Note]) -> Side:
    """What ``traces`` are made of; ``steps`` are the used steps by run, ``notes`` those beside the set's own."""
    profiles = traces.profiles
    torch, driver = (
        ", ".join(sorted(set(filter(None, versions)))) or None
        for versions in ([p.origin.torch for p in profiles], [version_of(p.origin.driver) for p in profiles])
    )
    return Side(
        label=traces.label,
        files=_file_names(traces),
        steps_recorded=tuple(traces.steps_recorded),
        devices=tuple(sorted({g for p in profiles for g in p.origin.gpus})),
        torch=torch,
        driver=driver,
        whole_file=all(p.whole_file for p in profiles),
        has_gpu=traces.has_gpu,
        steps=steps,
        notes=(*traces.notes, *notes),
        communication_us=communication_us(traces),
        rank_states=rank_states(traces),
        typical=typical_step(traces, steps),
        manifest=traces.manifest,
        torch_log=traces.torch_log,
    )


MISSING = "missing-table"


def set_tables(traces: TraceSet) -> tuple[dict[str, SetTable], tuple[Note, ...]]:
    """(name → table of those that ``traces`` was loaded with, in the order in which they are shown, notes on what they
    lack). A table that was asked for by name and cannot be made is a note.
    """
    names = table_names(traces.tables)
    compares_ranks = len(traces.ranks) > 1 and not set(OVER_RANKS).isdisjoint(names)
    tables: dict[str, SetTable] = {}
    unmatched: list[Note] = []
    if compares_ranks:
        from tracediff.aggregate.collective_skew import collective_tables  # few sets have several ranks

        tables, unmatched = collective_tables(traces)
    for name in names:
        if name not in OVER_RANKS and all(name in profile.tables for profile in traces.profiles):
            tables[name] = table_average(traces, name)
    notes = Notes()
    for name in traces.tables:
        if name != ALL and name not in tables:
            notes.add(MISSING, f"table {name} is missing: {_why_missing(name, traces.ranks)}")
    return {name: tables[name] for name in names if name in tables}, (*unmatched, *notes.list())


def _why_missing(name: str, ranks: Sequence[int]) -> str:
    if name in OVER_RANKS and len(ranks) == 1:
        return f"it compares ranks, and only rank {ranks[0]} is read; give the traces of several ranks, and no --rank"
    if name in OVER_RANKS:
        return "no collective of the ranks is recorded, or the set is a snapshot, which keeps none; give traces"
    return f"the snapshot was made without it (create it again with --table {name})"


class SetSummary(FrozenStruct, kw_only=True):
    """The accounts of one set per step, each with numerators over a denominator of its own.

    Attributes:
        traces: the set. side: what it was made of.
        steps, kernels, ops: the step account, what accompanies the kernel account, the operations.
        tables: name → table, those that the set was loaded with.
    """

    traces: TraceSet
    side: Side
    steps: StepAverage
    kernels: KernelAverage
    ops: Average
    tables: dict[str, SetTable]

    @property
    def denominators(self) -> tuple[int, ...]:
        """Of all accounts: whatever puts them on one scale needs a common multiple."""
        accounts = self.steps.denominator, self.kernels.denominator, self.ops.denominator
        return *accounts, *(table.denominator for table in self.tables.values())


def summarise(traces: TraceSet, steps: StepAverage) -> SetSummary:
    """The accounts of ``traces`` per used step, of which ``steps`` is that of the steps."""
    tables, notes = set_tables(traces)
    return SetSummary(
        traces=traces,
        side=side_of(traces, steps.runs, notes),
        steps=steps,
        kernels=kernel_average(traces),
        ops=op_average(traces),
        tables=tables,
    )
