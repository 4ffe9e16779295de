"""Two sets → `Comparison`: both accounts, the matched work, the tests, whether like is compared with like, and what explains the change."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from tracediff.diff.comparison import Comparison, Side
from tracediff.diff.families import compare_families
from tracediff.diff.findings.find import find
from tracediff.diff.gpu_time import GpuTime, compare_gpu_time
from tracediff.diff.groups import Matched, WorkTime, match_work
from tracediff.diff.measures import compare_tables
from tracediff.diff.ops import compare_ops
from tracediff.diff.preflight import REFUSED, Comparability, preflight
from tracediff.diff.preflight_work import reasons_of_work
from tracediff.diff.step_time import compare_step_time
from tracediff.diff.verdict import Judging, judge, refused
from tracediff.profile.average import StepAverage, UsedStep, call_tree, communication_us, host_us, kernel_average, op_average, rank_states, step_average
from tracediff.profile.further import further_tables
from tracediff.profile.samples import family_samples, op_samples
from tracediff.profile.traceset import TraceSet
from tracediff.profile.typical import typical_step


def compare_sets(control: TraceSet, test: TraceSet, force: bool = False, judging: Judging | None = None) -> Comparison:
    """Compare two sets.

    Args:
        force: compute even what the preflight refuses.
        judging: how strictly to judge.
    """
    judging = judging or Judging()
    steps = step_average(control), step_average(test)
    comparison = _accounts(control, test, steps, judging)
    shared = any(op.control_count and op.test_count and op.category != "user_annotation" for op in comparison.ops) or not comparison.ops
    comparability = preflight(control, test, shared)
    if comparability.level == REFUSED and not force:
        return _refused(replace(comparison, comparability=comparability), steps)
    comparison = replace(comparison, comparability=Comparability((*comparability.reasons, *reasons_of_work(comparison))))
    return replace(comparison, findings=find(comparison))


def _accounts(control: TraceSet, test: TraceSet, steps: tuple[StepAverage, StepAverage], judging: Judging) -> Comparison:
    """Everything that is counted and tested."""
    kernels = kernel_average(control), kernel_average(test)
    on_gpu = control.has_gpu or test.has_gpu
    trees = call_tree(control, on_gpu), call_tree(test, on_gpu)
    ops = op_average(control), op_average(test)
    further = further_tables(control), further_tables(test)
    scale = lcm(*(a.denominator for a in (*steps, *kernels, *ops)), *(table.denominator for side in further for table in side.values()))
    family_of = control.families.of_kernel
    matched = match_work(trees, scale, family_of, (control.manifest, test.manifest))
    on_gpu_or_nothing = matched if on_gpu else Matched((), (0, 0), matched.pairing)
    table, common = compare_ops(ops, (op_samples(control), op_samples(test)), scale, control.families.of, judging.noise_floor)
    step_time = compare_step_time(*steps, scale, judging.noise_floor)
    return Comparison(
        scale,
        side_of(control, steps[0].runs),
        side_of(test, steps[1].runs),
        Comparability(()),
        judge((control.label, test.label), step_time, scale, *steps, judging),
        step_time,
        compare_gpu_time(on_gpu_or_nothing, *kernels, scale),
        WorkTime(() if on_gpu else matched.groups),
        table,
        trees,
        matched.pairing,
        compare_families((family_samples(control, on_gpu, family_of), family_samples(test, on_gpu, family_of)), judging.noise_floor),
        common,
        measures=compare_tables(*further, scale),
    )


def _refused(comparison: Comparison, steps: tuple[StepAverage, StepAverage]) -> Comparison:
    """Without what would compare the sides: groups, operators, verdict."""
    gpu = comparison.gpu_time
    labels = comparison.control.label, comparison.test.label
    return replace(
        comparison,
        verdict=refused(labels, comparison.step_time, comparison.scale, *steps),
        gpu_time=GpuTime((), spilled=gpu.spilled, outside=gpu.outside),
        host_time=WorkTime(()),
        ops=(),
        families=(),
    )


def side_of(traces: TraceSet, steps: dict[str, list[UsedStep]]) -> Side:
    """What ``traces`` are made of; ``steps`` are the used steps by run."""
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
        host_us(traces),
        communication_us(traces),
        rank_states(traces),
        typical_step(traces, steps),
        traces.manifest,
    )
