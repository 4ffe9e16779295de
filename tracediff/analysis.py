"""analysis: one set in depth, with the accounts of a comparison: `TraceSet` → `Analysis`, with its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import lcm
from statistics import median

from tracediff import thresholds
from tracediff.aggregate.averages import COMMUNICATING, Average, SetTable, UsedStep, call_tree, step_average
from tracediff.aggregate.call_tree import CallTree
from tracediff.aggregate.summary import Side, summarise
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.accounts import tensor_core_share
from tracediff.diff.comparison import Scaled
from tracediff.diff.groups import members_of
from tracediff.diff.matching.items import Item, Origins, items_of
from tracediff.diff.ops import RecordedOperation, by_name
from tracediff.diff.views import VIEWS
from tracediff.formatting import part, plural, time, time_unit
from tracediff.profile.events.step_states import BUSY_STATES, LABELS, STATES
from tracediff.profile.events.work import UNMATCHED
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import Families
from tracediff.profile.kernels.match_names import table_name
from tracediff.runtimes import is_allocation, is_release
from tracediff.structs import FrozenStruct


class Analysis(Scaled, kw_only=True, dict=True):
    """All results of one set, per step.

    Attributes:
        side: the files, ranks and steps of the set.
        period: the step time. states: name → time; they sum to it.
        foreign: GPU time launched outside the used steps. draining: per run, see `StepTime`.
        busy: union of GPU events per GPU, summed.
        tensor_cores: part of kernel time on tensor cores, None without kernels.
        views: family, phase, module, op, kernel → the work summed by it, largest first.
        tree: the calls, with the work below them.
        operations: by self time. tables: the further tables with which the set was loaded, over denominators of
            their own.
        findings: the causes of its step time, and facts about it.
    """

    side: Side
    period: int
    states: tuple[Share, ...]
    foreign: int
    draining: int
    busy: int
    tensor_cores: float | None
    views: dict[str, tuple[Share, ...]]
    tree: CallTree
    operations: tuple[Operation, ...]
    tables: tuple[SetTable, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def sides(self) -> tuple[Side, ...]:
        """The set."""
        return (self.side,)

    @cached_property
    def work(self) -> int:
        """Σ durations of GPU events, without a GPU of the self time of operators."""
        return sum(work.ns for work in self.tree.work)

    @cached_property
    def unattributed(self) -> int:
        """The part of `work` that a health note keeps out of the views."""
        return sum(work.ns for work in self.tree.work if work.ordinal == UNMATCHED)


class SetFinding(FrozenStruct):
    """One finding about the set."""

    code: str
    """stable code (docs/analysis.md)"""
    title: str
    """the finding in a line"""
    detail: str
    """the evidence, and what to do"""


class Finding(SetFinding):
    """One cause of a step's time, or one fact about it; ``evidence`` are names with their times."""

    evidence: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Finding {self.code}: {self.title}>"


class Share(FrozenStruct):
    """Work of one name: numerators over the analysis' scale."""

    name: str
    ns: int
    count: int = 0


class Operation(RecordedOperation, kw_only=True):
    """One operation, numerators over the analysis' scale; see `tracediff.diff.ops.Op`."""

    count: int
    total: int
    self_ns: int

    @property
    def name(self) -> str:
        """Readable name."""
        return display_name(table_name(self.raw_name))


def shares(members: Iterable[Item], key: Callable[[Item], str]) -> tuple[Share, ...]:
    """``members`` summed by ``key``, the largest first."""
    sums: dict[str, list[int]] = {}
    for member in members:
        entry = sums.setdefault(key(member), [0, 0])
        entry[0] += member.ns
        entry[1] += member.count
    return tuple(sorted((Share(name, *entry) for name, entry in sums.items()), key=lambda s: (-s.ns, s.name)))


def operations(average: Average, scale: int, families: Families) -> tuple[Operation, ...]:
    """All operations of a set, the largest self time first; spellings of one name are one operation."""
    out = [
        Operation(
            raw_name=raw,
            category=category,
            family=families.of_event(category, raw),
            count=count,
            total=total,
            self_ns=self_ns,
        )
        for (category, _), (raw, ((count, total, self_ns),)) in by_name([average], scale).items()
    ]
    return tuple(sorted(out, key=lambda o: (-o.self_ns, o.category, o.raw_name)))


def analyze_set(traces: TraceSet) -> Analysis:
    """The step account, the kernel account, operations, tables and findings of one set."""
    summary = summarise(traces, step_average(traces))
    steps, kernels, ops = summary.steps, summary.kernels, summary.ops
    scale = lcm(*summary.denominators)
    tree = call_tree(traces, traces.has_gpu, scale)
    qualified = traces.manifest.modules if traces.manifest and traces.manifest.provenance else {}
    family_of = traces.families.of_kernel if traces.has_gpu else traces.families.of_work
    members = members_of(items_of(tree, family_of, Origins(traces.manifest, traces.torch_log), qualified))
    step_factor = scale // steps.denominator
    analysis = Analysis(
        scale=scale,
        side=summary.side,
        period=step_factor * steps.period,
        states=tuple(Share(name, step_factor * ns) for name, ns in steps.states.items()),
        foreign=step_factor * steps.foreign,
        draining=step_factor * steps.draining,
        busy=scale // kernels.denominator * kernels.busy,
        tensor_cores=tensor_core_share(members),
        views={view: shares(members, key) for view, key in VIEWS.items()},
        tree=tree,
        operations=operations(ops, scale, traces.families),
        tables=tuple(summary.tables.values()),
    )
    return analysis.replace(findings=find(analysis))


Weighted = tuple[float, Finding]
"""(µs per step that it concerns, finding)."""
ADVICE = {
    "data_loading": (
        "data-loading",
        "waiting for the DataLoader",
        "Load in worker processes, or tune workers, prefetching and storage.",
    ),
    "gpu_comm": (
        "exposed-communication",
        "exposed communication",
        "Overlap it with compute kernels, change the bucket size, or look for stragglers.",
    ),
    "synchronising": (
        "synchronisation",
        "synchronising while the GPU is idle",
        "Look for calls that read from the device.",
    ),
    "launching": (
        "launch-bound",
        "waiting for kernel launches",
        "Launch fewer, larger kernels, or use CUDA graphs.",
    ),
}
"""State → (code, what the state is, what to do if it is a large part of the step)."""
HOST_COLLECTIVES = "exposed-communication", "waiting for collectives of the host", "Look for stragglers."
"""What synchronising is without a GPU."""


FIRST_CALLS = "first-calls"
IN_STEADY_STATE = "First calls take the host longer than later ones: judge this in steady state."
"""What advice on the host's time is, of steps that are no steady state."""
SPEED_UP_HOST = "Speed up the host; faster kernels shorten the step only where the host waits for them."


def find(analysis: Analysis) -> tuple[Finding, ...]:
    """Every finding, that the steps are no steady state first, then the largest part of the step."""
    first_calls = _first_calls(analysis)
    findings = [
        *first_calls,
        *_bound(analysis, is_steady=not first_calls),
        *_states(analysis, is_steady=not first_calls),
        *_outlier_steps(analysis.side),
        *straggler(analysis.side, analysis.us(analysis.period)),
    ]
    return tuple(finding for _, finding in sorted(findings, key=lambda f: (-f[0], f[1].code, f[1].title)))


def _bound(analysis: Analysis, *, is_steady: bool) -> list[Weighted]:
    """host-bound and gpu-bound."""
    if not analysis.side.has_gpu or not analysis.period:
        return []
    busy = sum(s.ns for s in analysis.states if s.name in BUSY_STATES)
    idle = analysis.period - busy
    if idle >= thresholds.HOST_BOUND * analysis.period:
        bound, ns = "host", idle
        advice = SPEED_UP_HOST if is_steady else IN_STEADY_STATE
    elif idle <= thresholds.GPU_BOUND * analysis.period:
        bound, ns, advice = "GPU", busy, "Speed up kernels: host savings will not shorten the step."
    else:
        return []
    title = f"the step is {bound}-bound: GPU idle for {part(idle, analysis.period)} of the step"
    evidence = tuple(f"GPU {state}: {time(analysis.us(t))} per step" for state, t in (("busy", busy), ("idle", idle)))
    return [(analysis.us(ns), Finding(f"{bound.lower()}-bound", title, advice, evidence))]


def _first_calls(analysis: Analysis) -> list[Weighted]:
    """first-calls: each step gets memory from the driver more often than it gives some back: the allocator grows."""
    calls = [op for op in analysis.operations if is_allocation(op.raw_name)]
    allocated, released = (
        sum(op.count for op in analysis.operations if is_one(op.raw_name)) for is_one in (is_allocation, is_release)
    )
    if allocated < analysis.scale or allocated <= released:
        return []
    names = " and ".join(sorted({op.name for op in calls}))
    how_often = plural(analysis.number(allocated), "call")
    title = f"not steady state: memory is got from the driver in {how_often} of {names} per step"
    advice = (
        "So do first calls, which also load kernels: their host time does not recur. Record more warm-up steps, "
        "or leave out more with --skip-first."
    )
    return [(analysis.us(analysis.period), Finding(FIRST_CALLS, title, advice))]


def _states(analysis: Analysis, *, is_steady: bool) -> list[Weighted]:
    """States that make up a large part of the step and that can be shortened."""
    findings = []
    for state in analysis.states:
        if state.name in ADVICE and state.ns >= thresholds.LARGE_STATE * analysis.period > 0:
            is_of_host = state.name == "synchronising" and not analysis.side.has_gpu
            code, what, advice = HOST_COLLECTIVES if is_of_host else ADVICE[state.name]
            if state.name == "launching" and not is_steady:
                advice = IN_STEADY_STATE
            us = analysis.us(state.ns)
            detail = f"This is {part(state.ns, analysis.period)} of the step. {advice}"
            findings.append((us, Finding(code, f"{what}: {time(us)} per step", detail)))
    return findings


def _outlier_steps(side: Side) -> list[Weighted]:
    """outlier-step: used steps far from their run's median."""
    odd = outliers(side.steps)
    if not odd:
        return []
    listed = "; ".join(
        f"{f'{o.run}, ' if side.runs > 1 else ''}step {o.step.number}: {time(o.step.period_ns / 1000)} "
        f"(median {time(o.median_ns / 1000)})"
        for o in odd[:3]
    )
    detail = (
        f"Period of {listed}{' …' if len(odd) > 3 else ''}. Outliers count in the mean, not in the median: "
        f"look at {'this step' if len(odd) == 1 else 'these steps'} in the timeline."
    )
    first, title = odd[0], f"{len(odd)} outlier steps in {side.label}"
    if len(odd) == 1:
        times = time(first.step.period_ns / 1000), time(first.median_ns / 1000)
        title = f"step {first.step.number} of {side.label} took {times[0]}, its run's median {times[1]}"
    return [(0.0, Finding("outlier-step", title, detail))]


class Outlier(FrozenStruct):
    """A used step far from the others of its run. Attributes: run: its name. median_ns: of the run's periods."""

    run: str
    step: UsedStep
    median_ns: float


def outliers(runs: Mapping[str, list[UsedStep]]) -> list[Outlier]:
    """The steps of ``runs`` that are outliers, in their order."""
    out: list[Outlier] = []
    for run, steps in runs.items():
        if len(steps) >= thresholds.OUTLIER_STEPS:
            middle = median(step.period_ns for step in steps)
            spread = 1.4826 * median(abs(step.period_ns - middle) for step in steps)
            least = max(thresholds.OUTLIER_SD * spread, thresholds.OUTLIER_PART * middle)
            out += [Outlier(run, step, middle) for step in steps if abs(step.period_ns - middle) > least]
    return out


OWN_STATES = tuple(state for state in STATES if state not in COMMUNICATING)
"""States in which a rank does something itself; in all others it communicates or waits."""
LATE_ADVICE = "Look at what these ranks do before their collectives."


def straggler(side: Side, step_us: float) -> list[tuple[float, Finding]]:
    """(µs that others wait per step, finding) of a set whose step takes ``step_us``; none if the ranks wait alike."""
    waits = side.communication_us
    if len(waits) < 2 or max(waits.values()) - min(waits.values()) < thresholds.STRAGGLING * step_us:
        return []
    shortest, longest = min(waits.values()), max(waits.values())
    latest_wait = shortest + thresholds.LATE_RANGE * (longest - shortest)
    late = sorted(rank for rank, wait in waits.items() if wait <= latest_wait)
    early = max(waits, key=lambda r: (waits[r], -r))
    one = len(late) == 1
    wait = min(longest - shortest, step_us)  # the times of collectives that overlap are sums
    title = (
        f"{_listed(late)} of {side.label} {'is a straggler' if one else 'are stragglers'}: other ranks wait up to "
        f"{time(wait)} per step"
    )
    latest = min(late, key=lambda rank: waits[rank])
    spends, enters = ("spends", "it enters") if one else ("spend", "they enter")
    detail = (
        f"{_listed(late).capitalize()} {spends} {_range(waits[r] for r in late)} per step in communication, "
        f"rank {early} {time(longest)}{' (collectives that overlap are added up)' if longest > step_us else ''}: "
        f"{enters} the collectives last. {_more_than_others(side, latest)}{LATE_ADVICE}"
    )
    evidence = tuple(
        f"rank {r}: {time(us)} in communication" for r, us in sorted(waits.items(), key=lambda item: item[1])
    )
    return [(wait, Finding("straggler", title, detail, evidence=evidence))]


def _listed(ranks: list[int]) -> str:
    """``rank 3``, ``ranks 3, 5 and 2 more``."""
    listing = ", ".join(map(str, ranks[:4])) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {listing}"


def _range(waits: Iterable[float]) -> str:
    values = sorted(waits)
    unit = time_unit(values)
    shortest, longest = unit.plain(values[0]), unit.plain(values[-1])
    return f"{shortest} {unit.name}" if shortest == longest else f"{shortest} to {longest} {unit.name}"


def _more_than_others(side: Side, rank: int) -> str:
    """``Rank 7 spends 3.1 ms more than the median rank in: op. ``; empty where it does nothing longer."""
    own = side.rank_states.get(rank, {})
    more = {s: own.get(s, 0.0) - median(states.get(s, 0.0) for states in side.rank_states.values()) for s in OWN_STATES}
    state = max(more, key=lambda s: more[s])
    return (
        f"Rank {rank} spends {time(more[state])} per step more than the median rank in the state “{LABELS[state]}”. "
        if more[state] > 0
        else ""
    )
