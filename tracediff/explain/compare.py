"""Two sets → `Comparison`: both accounts, the matched work, the tests, the explanation and the preflight."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from tracediff.aggregate.leaves import set_leaves
from tracediff.aggregate.summary import SetSummary, summarise
from tracediff.aggregate.traceset import Run, TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.family_tests import compare_families
from tracediff.diff.gpu_time import GpuTime, compare_gpu_time
from tracediff.diff.groups import Matched, WorkTime, match_work
from tracediff.diff.ops import compare_ops
from tracediff.diff.preflight import REFUSED, Comparability, preflight
from tracediff.diff.step_time import compare_step_time
from tracediff.diff.table_changes import compare_tables
from tracediff.diff.unprofiled import believing, judge_unprofiled
from tracediff.diff.verdict import STEP, WHOLE_FILE, Judging, Verdict, judge, of_other_work, refused
from tracediff.explain.cautions import cautions_of
from tracediff.explain.explain import Compared, explain
from tracediff.explain.explanation import Explanation
from tracediff.runtimes import vendors_of


def compare_sets(control: TraceSet, test: TraceSet, force: bool = False, judging: Judging | None = None) -> Comparison:
    """The comparison of two sets; of ranks those that both have, if they have any in common.

    Args:
        force: compare even if the preflight refuses.
        judging: settings of the significance tests.
    """
    judging = judging or Judging()
    given = control, test
    control, test = _of_common_ranks(control, test)
    summaries = summarise(control), summarise(test)
    comparison = _accounts(*summaries, judging)
    shared = (
        any(op.control_count and op.test_count and op.category != "user_annotation" for op in comparison.ops)
        or not comparison.ops
    )
    comparability = preflight(*given, shared)
    if comparability.level == REFUSED and not force:
        return _refused(replace(comparison, comparability=comparability), summaries)
    explanation = explain(_compared(comparison, summaries, judging))
    return replace(
        comparison,
        comparability=Comparability((*comparability.reasons, *cautions_of(comparison, explanation.facts))),
        explanation=explanation,
        verdict=_judged(comparison, explanation),
    )


def _judged(comparison: Comparison, explanation: Explanation) -> Verdict:
    """The verdict, which calls no side faster or slower if the work differs."""
    verdict, unprofiled = comparison.verdict, comparison.believed_unprofiled
    other = next((fact.text for fact in explanation.facts if fact.is_other_work), None)
    if other is None or verdict.ratio is None:
        return verdict
    whole_files = comparison.control.whole_file and comparison.test.whole_file
    ratio, of = verdict.ratio, WHOLE_FILE if whole_files else STEP
    if unprofiled:
        ratio, of = 1 + unprofiled.change, "without the profiler"
    return of_other_work(verdict, other, comparison.test.label, ratio, of)


def _of_common_ranks(control: TraceSet, test: TraceSet) -> tuple[TraceSet, TraceSet]:
    """Both sets with the ranks that both have; as they are if there are none, or no others."""
    common = set(control.ranks) & set(test.ranks)
    if not common:
        return control, test
    first, second = (_of_ranks(traces, common) for traces in (control, test))
    return first, second


def _of_ranks(traces: TraceSet, ranks: set[int]) -> TraceSet:
    if ranks >= set(traces.ranks):
        return traces
    runs = [Run(run.name, {r: files for r, files in run.ranks.items() if r in ranks}) for run in traces.runs]
    return replace(traces, runs=[run for run in runs if run.ranks])


def _compared(comparison: Comparison, summaries: tuple[SetSummary, SetSummary], judging: Judging) -> Compared:
    trees = comparison.trees
    sides = comparison.control, comparison.test
    families = summaries[0].traces.families
    leaves = tuple(set_leaves(s.traces, tree, s.steps.runs) for s, tree in zip(summaries, trees, strict=True))
    return Compared(
        leaves=(leaves[0], leaves[1]),
        groups=comparison.work.groups,
        trees=trees,
        sides=sides,
        same_vendor=vendors_of(k.name for k in leaves[0].keys) == vendors_of(k.name for k in leaves[1].keys),
        family_of=families.of_kernel if any(side.has_gpu for side in sides) else families.of_work,
        noise_floor=judging.noise_floor,
    )


def _accounts(control: SetSummary, test: SetSummary, judging: Judging) -> Comparison:
    """The comparison without preflight and explanation."""
    on_gpu = control.side.has_gpu or test.side.has_gpu
    trees = control.tree(on_gpu), test.tree(on_gpu)
    scale = lcm(*control.denominators, *test.denominators)
    families = control.traces.families
    work_family = families.of_kernel if on_gpu else families.of_work
    matched = match_work(trees, scale, work_family, (control.side, test.side))
    on_gpu_or_nothing = matched if on_gpu else Matched((), (0, 0), matched.pairing)
    samples = control.op_samples(), test.op_samples()
    ops, common = compare_ops((control.ops, test.ops), samples, scale, families.of_event, judging.noise_floor)
    step_time = compare_step_time(control.steps, test.steps, scale, judging.noise_floor)
    by_family = control.family_samples(on_gpu, work_family), test.family_samples(on_gpu, work_family)
    manifests = control.side.manifest, test.side.manifest
    verdict = judge(
        (control.side.label, test.side.label),
        step_time,
        scale,
        control=control.steps,
        test=test.steps,
        judging=judging,
        whole_files=control.side.whole_file and test.side.whole_file,
    )
    unprofiled = judge_unprofiled(verdict, manifests, judging)
    return Comparison(
        scale=scale,
        control=control.side,
        test=test.side,
        comparability=Comparability(()),
        verdict=believing(verdict, unprofiled, test.side.label) if unprofiled and unprofiled.believed else verdict,
        unprofiled=unprofiled,
        step_time=step_time,
        gpu_time=compare_gpu_time(on_gpu_or_nothing, control.kernels, test.kernels, scale),
        host_time=WorkTime(() if on_gpu else matched.groups),
        ops=ops,
        trees=trees,
        pairing=matched.pairing,
        families=compare_families(by_family, judging.noise_floor),
        common_change=common,
        tables=compare_tables(control.tables, test.tables, scale),
    )


def _refused(comparison: Comparison, summaries: tuple[SetSummary, SetSummary]) -> Comparison:
    """The comparison without groups, operators and verdict, which would compare the sides."""
    gpu = comparison.gpu_time
    labels = comparison.control.label, comparison.test.label
    return replace(
        comparison,
        verdict=refused(labels, comparison.step_time, comparison.scale, *(summary.steps for summary in summaries)),
        gpu_time=GpuTime((), spilled=gpu.spilled, outside=gpu.outside),
        host_time=WorkTime(()),
        ops=(),
        families=(),
    )
