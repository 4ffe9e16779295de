"""`Comparison`: everything that is said of two sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm

from tracediff.diff.families import TestedFamily, compare_families
from tracediff.diff.findings.finding import Finding
from tracediff.diff.gpu_time import GpuTime, compare_gpu_time
from tracediff.diff.groups import Matched, WorkTime, match_work
from tracediff.diff.matching.calls import Pairing
from tracediff.diff.ops import Op, compare_ops
from tracediff.diff.preflight import REFUSED, Comparability, preflight
from tracediff.diff.preflight_work import reasons_of_work
from tracediff.diff.step_time import StepTime, compare_step_time
from tracediff.diff.verdict import Judging, Verdict, judge, refused
from tracediff.ingest.health import Note
from tracediff.profile.average import UsedStep, call_tree, communication_us, host_us, kernel_average, op_average, step_average
from tracediff.profile.calltree import CallTree
from tracediff.profile.samples import family_samples, op_samples
from tracediff.profile.traceset import TraceSet


@dataclass(frozen=True)
class Side:
    """What one side was made of.

    Attributes:
        label: its name in the report.
        files: file names without folders.
        ranks, steps_used, steps_recorded: numbers, ascending.
        gpu: device names. torch: version, where recorded.
        steps: run name → its used steps.
        notes: health notes.
        host_us: mean duration of a used step on the host, in µs.
        communication_us: rank → communication kernels per used step, in µs.
        graph_breaks: where and why the graph broke, None without a manifest that says.
        unprofiled_us: median over runs of the median step without the profiler, in µs, where the collector measured it.
    """

    label: str
    files: tuple[str, ...]
    runs: int
    ranks: tuple[int, ...]
    steps_used: tuple[int, ...]
    steps_recorded: tuple[int, ...]
    gpu: tuple[str, ...]
    torch: str | None
    whole_file: bool
    has_gpu: bool
    steps: dict[str, list[UsedStep]]
    notes: tuple[Note, ...]
    unprofiled_us: float | None
    host_us: float
    communication_us: dict[int, float]
    graph_breaks: tuple[str, ...] | None


@dataclass(frozen=True)
class Comparison:
    """Control and test side by side. Counts and times are integer numerators: x / scale events, x / scale nanoseconds.

    Attributes:
        scale: the common denominator.
        control, test: what the sides were made of.
        comparability: whether like was compared with like.
        verdict, step_time, gpu_time, ops: see their classes; where `comparability` is refused and not forced, gpu_time has no groups and ops is empty.
        host_time: where neither side has a GPU, the self time of operators in groups; else empty.
        trees, pairing: the call trees of both sides, and which calls are the same.
        families: what testing says of the work by family.
        common_change: relative change that all tested operators have in common, 0 where none was tested.
    """

    scale: int
    control: Side
    test: Side
    comparability: Comparability
    verdict: Verdict
    step_time: StepTime
    gpu_time: GpuTime
    host_time: WorkTime
    ops: tuple[Op, ...]
    trees: tuple[CallTree, CallTree]
    pairing: Pairing
    families: tuple[TestedFamily, ...]
    common_change: float

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What explains the change, the largest part of it first."""
        from tracediff.diff.findings.find import find

        return find(self)

    @property
    def work(self) -> WorkTime:
        """What matching was done on: GPU events where there are any, else the self time of operators."""
        return self.gpu_time if self.gpu_time.groups else self.host_time

    @property
    def was_refused(self) -> bool:
        """Whether the sides were not compared."""
        return self.comparability.level == REFUSED and not self.ops


def compare_sets(control: TraceSet, test: TraceSet, force: bool = False, judging: Judging | None = None) -> Comparison:
    """Compare two sets.

    Args:
        force: compute even what the preflight refuses.
        judging: how strictly to judge.
    """
    judging = judging or Judging()
    steps = step_average(control), step_average(test)
    kernels = kernel_average(control), kernel_average(test)
    on_gpu = control.has_gpu or test.has_gpu
    trees = call_tree(control, on_gpu), call_tree(test, on_gpu)
    ops = op_average(control), op_average(test)
    scale = lcm(*(a.denominator for a in (*steps, *kernels, *ops)))
    step_time = compare_step_time(*steps, scale, judging.noise_floor)
    matched = match_work(trees, scale, control.families.of_kernel, (control.manifest, test.manifest))
    nothing = Matched((), (0, 0), matched.pairing)
    gpu_time = compare_gpu_time(matched if on_gpu else nothing, *kernels, scale)
    host_time = WorkTime(() if on_gpu else matched.groups)
    samples = op_samples(control), op_samples(test)
    table, common = compare_ops(ops, samples, scale, control.families.of, judging.noise_floor)
    family_of = control.families.of_kernel
    families = compare_families((family_samples(control, on_gpu, family_of), family_samples(test, on_gpu, family_of)), judging.noise_floor)
    shared = any(op.control_count and op.test_count and op.category != "user_annotation" for op in table) or not table
    comparability = preflight(control, test, shared)
    labels = control.label, test.label
    if comparability.level == REFUSED and not force:
        gpu_time = GpuTime((), spilled=gpu_time.spilled, outside=gpu_time.outside)
        host_time = WorkTime(())
        table = ()
        verdict = refused(labels, step_time, scale, *steps)
    else:
        verdict = judge(labels, step_time, scale, *steps, judging)
    sides = (_side(control, steps[0].runs), _side(test, steps[1].runs))
    comparison = Comparison(scale, *sides, comparability, verdict, step_time, gpu_time, host_time, table, trees, matched.pairing, families, common)
    if comparison.was_refused:
        return comparison
    return replace(comparison, comparability=Comparability((*comparability.reasons, *reasons_of_work(comparison))))



def _side(traces: TraceSet, steps: dict[str, list[UsedStep]]) -> Side:
    profiles = traces.profiles
    torch = sorted({p.origin.torch for p in profiles if p.origin.torch})
    return Side(
        traces.label,
        tuple(p.origin.file.name for p in profiles),
        len(traces.runs),
        tuple(traces.ranks),
        tuple(traces.steps_used),
        tuple(traces.steps_recorded),
        tuple(sorted({g for p in profiles for g in p.origin.gpus})) if traces.has_gpu else (),
        ", ".join(torch) or None,
        all(p.whole_file for p in profiles),
        traces.has_gpu,
        steps,
        traces.notes,
        traces.manifest.unprofiled_us if traces.manifest else None,
        host_us(traces),
        communication_us(traces),
        _graph_breaks(traces),
    )


def _graph_breaks(traces: TraceSet) -> tuple[str, ...] | None:
    runs = [r.compile for r in traces.manifest.runs if r.compile] if traces.manifest else []
    return tuple(f"{b.file}:{b.line}: {b.reason.splitlines()[0] if b.reason else ''}" for b in runs[-1].graph_breaks) if runs else None
