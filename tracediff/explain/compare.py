"""Two sets → `Comparison`: both accounts, the matched work, the tests, the explanation, and the preflight with its
cautions about the matched work. Of many sets, the verdicts with their tests corrected for being many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import lcm

from msgspec.structs import replace

from tracediff import thresholds
from tracediff.aggregate.assemble import of_ranks
from tracediff.aggregate.averages import call_tree, step_averages
from tracediff.aggregate.leaves import set_leaves
from tracediff.aggregate.samples import family_samples, launched_samples, op_samples
from tracediff.aggregate.summary import SetSummary, summarise
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.accounts import GpuTime, compare_gpu_time, compare_step_time, compare_tables
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group, WorkTime, match_work
from tracediff.diff.matching.items import PLACED_AS
from tracediff.diff.ops import compare_ops, compare_work
from tracediff.diff.preflight import REFUSED, Comparability, Reason, preflight
from tracediff.diff.verdict import (
    Judging,
    Verdict,
    believing,
    interval_per_item,
    judge,
    judge_unprofiled,
    of_no_steady_state,
    refused,
)
from tracediff.explain.amounts import HEAVY, flop_ratio
from tracediff.explain.called import largest_difference
from tracediff.explain.explanation import Explanation, explain
from tracediff.explain.facts import (
    AS_OFTEN,
    BACKLOG,
    COMPILED,
    COMPILES_ANEW,
    FIRST_CALLS,
    FIRST_DIMENSION,
    GRAPH_REPLAYS,
    HOST_SPEED,
    LATE_START,
    NOT_STEADY,
    ONE_MODULE,
    ONE_SIDED_CALLS,
    OTHER_PROGRAM,
    OTHER_RANKS,
    OTHER_SIZES,
    OTHER_STREAM,
    RECOMPUTED,
    REPEATED,
    REWRITTEN,
    UNIFORM,
    UNKNOWN_WORK,
    WORK_DIFFERS,
    Fact,
)
from tracediff.explain.lines import waits_for_ranks
from tracediff.explain.programs import examples_of, in_place
from tracediff.explain.reasons import LAYOUTS, OtherInputs, other_inputs
from tracediff.formatting import joined, multiple, percent, plural
from tracediff.patterns import late
from tracediff.profile.kernels.families import OTHER
from tracediff.structs import FrozenStruct, Pair

OPERATOR_NAME = late(r"\w+::\w+")
REPLACEMENTS = {*HEAVY, "fused", OTHER}
"""Families of kernels that may do such work in another way."""


def cautions_of(comparison: Comparison, explanation: Explanation, inputs: OtherInputs) -> list[Reason]:
    """The cautions operators, workload, missing-work, dtype and outside-steps."""
    has_steps = not (comparison.control.whole_file or comparison.test.whole_file)
    cautions = [
        reason
        for fact in explanation.facts
        if not (has_steps and fact.code == AS_OFTEN and fact.ratio > 1) and (reason := _of_fact(fact, explanation))
    ]
    if not any(reason.code == "workload" for reason in cautions):
        cautions += _missing(comparison)
    if "dtype" in inputs:
        both = inputs["dtype"][:2]
        cautions.append(Reason("dtype", "the same operators have inputs or kernels of another dtype", *both))
    return cautions + _outside(comparison)


def _of_fact(fact: Fact, explanation: Explanation) -> Reason | None:
    """The caution that a fact is; the fact itself has the figures."""
    values = fact.control, fact.test
    if fact.code in (OTHER_PROGRAM, REWRITTEN):
        return Reason("operators", f"other operators: {examples_of(explanation.differing, {})}", *values)
    if fact.code == WORK_DIFFERS:
        return Reason("workload", "other amounts of work: compare equal workloads, or times per sample", *values)
    if fact.code == AS_OFTEN:
        return Reason("workload", "the same work more or less often: compare equal numbers of iterations", *values)
    return None


def _missing(comparison: Comparison) -> list[Reason]:
    """Matrix products, convolutions or attention of the control side that the test side does not do, nor anything in
    their place.
    """
    wrappers, groups = _wrappers(comparison), comparison.work.groups
    missing_work = [(time, group) for group in groups if (time := _missing_time(group, wrappers))]
    time = sum(time for time, _ in missing_work)
    share = time / max(comparison.work.time.control, 1)
    if share < thresholds.MISSING_WORK:
        return []
    flops = flop_ratio(comparison.trees, thresholds.MISSING_WORK)  # whatever is matched with what
    operators = {m.op for g in groups for m in g.members.control}
    instead = sum(
        m.ns
        for g in groups
        for m in g.members.test
        if m.family in REPLACEMENTS and (not g.members.control or m.op not in operators)
    )
    if instead >= thresholds.REPLACED_WORK * time or (flops or 0) >= 1 - thresholds.MISSING_WORK:
        return []
    events = plural(
        comparison.number(-sum(g.count.delta for _, g in missing_work)),
        "GPU event" if comparison.gpu_time.groups else "operator",
    )
    families = ", ".join(sorted({g.family for _, g in missing_work}))
    _, largest = max(missing_work, key=lambda entry: (entry[0], entry[1].name))
    operator = largest.call or largest.members.control[0].op or largest.name
    name = operator.split("(")[0]
    rest = sum(op.count.test for op in comparison.ops if name in (op.raw_name, op.counted_as))
    message = f"{percent(share)} of control's work is missing on the test side: {events} per step ({families})"
    return [
        Reason(
            "missing-work", message, operator, f"{plural(comparison.number(rest), 'call')} in all" if rest else "none"
        )
    ]


def _wrappers(comparison: Comparison) -> set[int]:
    """Nodes of control's tree that have what they are called after done by an operator below them (``aten::linear`` by
    ``aten::addmm``): only self time without a GPU is work of theirs.
    """
    if comparison.gpu_time.groups:
        return set()
    items = (item for group in comparison.work.groups for item in group.items[0])
    return {comparison.trees[0].calls[i.node].parent for i in items if i.family in HEAVY and i.node >= 0} - {-1}


def _missing_time(group: Group, wrappers: set[int]) -> int:
    """Time of control's computation in ``group`` that the test side does not do: without a counterpart, beside nothing
    but other kinds of work of its module, or done half as often or less.
    """
    time = sum(m.ns for m in group.members.control if m.family in HEAVY)
    time -= sum(i.ns for i in group.items[0] if i.family in HEAVY and i.node in wrappers)
    if not group.members.test or (
        group.level in ("module", PLACED_AS["module"]) and not any(m.family in REPLACEMENTS for m in group.members.test)
    ):
        return time
    if group.ops is None or 2 * group.ops.test > group.ops.control:
        return 0
    return time * -group.ops.delta // group.ops.control


def _outside(comparison: Comparison) -> list[Reason]:
    """That steps, as a marker may choose them, do not contain most of the launches."""
    gpu = comparison.gpu_time
    shares = []
    for side, in_steps, outside in zip(comparison.sides, gpu.time, gpu.outside.time, strict=True):
        steps = len(side.steps_recorded) * side.runs * max(len(side.ranks), 1)
        shares.append(outside / whole if (whole := outside + comparison.us(in_steps) * 1000 * steps) else 0.0)
    if max(shares) < thresholds.MOSTLY:
        return []
    message = "most GPU time is launched outside every step, and in no number: name whole steps with --step-marker"
    return [Reason("outside-steps", message, *(f"{percent(share)} outside" for share in shares))]


def compare_sets(control: TraceSet, test: TraceSet, force: bool = False, judging: Judging | None = None) -> Comparison:
    """The comparison of two sets; of ranks those that both have, if they have any in common.

    Args:
        force: compare even if the preflight refuses.
        judging: settings of the significance tests.
    """
    judging = judging or Judging()
    traces = of_common_ranks(control, test)
    summaries = Pair(*map(summarise, traces, step_averages(traces)))
    comparison = _accounts(summaries, judging)
    shared = any(all(op.count) and op.category != "user_annotation" for op in comparison.ops) or not comparison.ops
    comparability = preflight(control, test, shared)
    comparison = replace(comparison, comparability=comparability)
    if comparability.level == REFUSED and not force:
        return _refused(comparison)
    explanation, inputs = _explained(comparison, summaries, judging), other_inputs(comparison)
    return replace(
        comparison,
        comparability=Comparability((*comparability.reasons, *cautions_of(comparison, explanation, inputs))),
        explanation=explanation,
        verdict=_judged(comparison, explanation, inputs),
    )


def _judged(comparison: Comparison, explanation: Explanation, inputs: OtherInputs) -> Verdict:
    """The verdict, which calls no side faster or slower if the work differs, or the ranks that wait."""
    verdict, unprofiled = comparison.verdict, comparison.believed_unprofiled
    if unprofiled is None and any(fact.code == BACKLOG for fact in explanation.facts):
        verdict = of_no_steady_state(verdict, comparison.test.label)
    others = [fact for fact in explanation.facts if fact.code in OTHER_WORK]
    other = min(others, key=lambda fact: fact.code in (LATE_START, UNKNOWN_WORK), default=None)
    late_starts = [fact.setting for fact in others if fact.code == LATE_START]
    by_median = verdict.ratio_of_medians
    if verdict.ratio is None or by_median is None:
        return verdict
    ratio = 1 + unprofiled.change if unprofiled else by_median if verdict.is_of_medians else verdict.ratio
    settings = _settings(comparison, explanation, inputs, other)
    settings += [
        _per_item(fact, ratio, None if unprofiled else verdict)  # whose interval is of profiled steps
        for fact in explanation.facts
        if fact.code == FIRST_DIMENSION
    ]
    in_words = joined(*settings[:-2], " and ".join(settings[-2:]), *late_starts)
    return verdict.replace(settings=in_words, other_work=other.text if other is not None else "")


def _per_item(fact: Fact, ratio: float, tested: Verdict | None) -> str:
    """What the step's ``ratio`` is for each of what ``fact`` says there is more or less of, with its interval."""
    each, between = ratio / fact.ratio, interval_per_item(tested, fact.ratio) if tested else None
    size, unit = (100, " %") if each < 1 else (1, " times")
    interval = f", 95 % interval {size * between[0]:.3g} to {size * between[1]:.3g}{unit}" if between else ""
    return f"{fact.setting} ({multiple(each, 'time')} per item{interval})"


OTHER_WORK = WORK_DIFFERS, OTHER_PROGRAM, AS_OFTEN, OTHER_RANKS, UNKNOWN_WORK, LATE_START
"""Facts with which times alone do not say which side is faster."""
OF_BOTH_SIDES = " instead of ", " and without "
"""In what the sides differ in, what each has."""


def _settings(comparison: Comparison, explanation: Explanation, inputs: OtherInputs, other: Fact | None) -> list[str]:
    """What the sides differ in, ``other`` work among it, as the verdict says it."""

    def of(*codes: str) -> list[str]:
        """What the first kind of facts says that says anything."""
        settings = ([f.setting for f in explanation.facts if f.code == code and f.setting] for code in codes)
        return next(filter(any, settings), [])

    on_other_gpu = any(reason.code == "gpu" for reason in comparison.comparability.reasons)
    names = [*of(GRAPH_REPLAYS), *of(COMPILED), *of(ONE_SIDED_CALLS), *of(REPEATED)[:1]] or of(OTHER_PROGRAM)
    named_inputs = _other_inputs(inputs, least=thresholds.OTHER_INPUTS if not names else thresholds.MOSTLY)
    if not names and not named_inputs and not on_other_gpu:  # whose libraries have operators of their own
        names = _replaced(explanation, comparison) or _of_one_side(explanation)
    elif names == of(ONE_SIDED_CALLS) and len(names) == 1 and not any(word in names[0] for word in OF_BOTH_SIDES):
        names += _on_other_side(explanation, names[0])
    says_how_often = any("()" not in name for name in names)  # which functions do not
    is_named = other is None or other.code in (OTHER_PROGRAM, LATE_START) or (other.code == AS_OFTEN and says_how_often)
    return [
        *(["on another GPU"] if on_other_gpu else []),
        *of(HOST_SPEED, UNIFORM),
        *([] if names or of(FIRST_DIMENSION) else of(OTHER_SIZES)),
        *([other.setting] if other is not None and not is_named else []),
        *of(COMPILES_ANEW, NOT_STEADY, FIRST_CALLS, BACKLOG),
        *of(RECOMPUTED)[:1],
        *names,
        *named_inputs,
        *of(ONE_MODULE, OTHER_STREAM),
    ]


def _replaced(explanation: Explanation, comparison: Comparison) -> list[str]:
    """``with aten::rms_norm and without aten::layer_norm``; if the programs differ by much, at least their largest
    difference that may be why the step changes.
    """
    control, test = in_place(explanation.differing)
    if control and test:
        return [f"with {test}", f"without {control}"]
    rewritten = [fact.setting for fact in explanation.facts if fact.code == REWRITTEN]
    return list(filter(None, rewritten)) or (largest_difference(explanation.differing, comparison) if rewritten else [])


def _of_one_side(explanation: Explanation) -> list[str]:
    """``without aten::bernoulli_``: the operator that one side alone runs, if that is most of the step's change."""
    first = max(explanation.causes, key=lambda cause: abs(cause.delta_us), default=None)
    change = explanation.change_us
    if first is None or first.node.is_of_both or first.delta_us * change < thresholds.MOSTLY * change * change:
        return []
    return [f"{'with' if first.test_us else 'without'} {first.label}"] if OPERATOR_NAME.fullmatch(first.label) else []


def _on_other_side(explanation: Explanation, name: str) -> list[str]:
    """``without aten::argmax`` beside a ``name`` like ``with argsort()``, or the other way round: the operator that the
    other side alone calls.
    """
    control, test = in_place(explanation.differing)
    op, word = (control, "without") if name.startswith("with ") else (test, "with")
    return [f"{word} {op}"] if op else []


def _other_inputs(inputs: OtherInputs, least: float) -> list[str]:
    """``in bf16 instead of float``, ``partly in channels_last instead of contiguous layout``: of at least this part of
    the work.
    """
    texts = []
    for code, (before, after, part) in inputs.items():
        if part >= least and (code == "dtype" or {before, after} == {*LAYOUTS}):
            lead, kind = "" if part >= thresholds.MOSTLY else "partly ", "" if code == "dtype" else f" {code}"
            texts.append(f"{lead}in {after} instead of {before}{kind}")
    return texts


def of_common_ranks(control: TraceSet, test: TraceSet) -> Pair[TraceSet]:
    """Both sets with the ranks that both have; as they are if there are none, or no others."""
    both, common = Pair(control, test), set(control.ranks) & set(test.ranks)
    return both.map(lambda traces: _of_ranks(traces, common)) if common else both


def _of_ranks(traces: TraceSet, ranks: set[int]) -> TraceSet:
    if ranks >= set(traces.ranks):
        return traces
    return replace(traces, runs=of_ranks(traces.runs, frozenset(ranks)))


def _explained(comparison: Comparison, summaries: Pair[SetSummary], judging: Judging) -> Explanation:
    families = summaries[0].traces.families
    both = zip(summaries, comparison.trees, strict=True)
    leaves = Pair(*(set_leaves(side.traces, tree, side.steps.runs) for side, tree in both))
    family_of = families.of_kernel if comparison.has_gpu else families.of_work
    late_work = _late_work(comparison, summaries, judging)
    return explain(comparison, leaves, family_of, judging.noise_floor, late_work)


def _late_work(comparison: Comparison, summaries: Pair[SetSummary], judging: Judging) -> str:
    """``host code in forward +6.1 ms``: what most of the change is of the rank that the others wait for on the side
    that takes longer, compared alone; empty where nothing is, or where its steps are explained anyway.
    """
    change = comparison.step_time.period.delta
    late = comparison.sides[int(change > 0)].late_rank
    if late is None or any(late.rank == side.slowest_rank or late.rank not in side.ranks for side in comparison.sides):
        return ""
    control, test = (_of_ranks(summary.traces, {late.rank}) for summary in summaries)
    alone = compare_sets(control, test, force=True, judging=judging)
    explanation, first = alone.explanation, next(iter(alone.causes), None)
    if explanation is None or first is None or waits_for_ranks(first.chain):
        return ""
    is_most = first.delta_us * change > 0 and abs(first.delta_us) >= thresholds.MOSTLY * abs(comparison.us(change))
    return f"{first.label} {explanation.leaves.step_unit.signed_text(first.delta_us)}" if is_most else ""


def _accounts(both: Pair[SetSummary], judging: Judging) -> Comparison:
    """The comparison without preflight and explanation."""
    control, test = both
    on_gpu = control.side.has_gpu or test.side.has_gpu
    scale = lcm(*control.denominators, *test.denominators)
    trees = both.map(lambda side: call_tree(side.traces, on_gpu, scale))
    families = control.traces.families
    work_family = families.of_kernel if on_gpu else families.of_work
    work, pairing = match_work(trees, work_family, both.map(lambda side: side.side))
    samples = both.map(lambda side: op_samples(side.traces))
    averages = both.map(lambda side: side.ops)
    ops, common = compare_ops(averages, samples, scale, families.of_event, judging.noise_floor)
    step_time = compare_step_time(both.map(lambda side: side.steps), scale, judging.noise_floor)
    by_family = both.map(lambda side: family_samples(side.traces, on_gpu, work_family))
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
        gpu_time=compare_gpu_time(work if on_gpu else WorkTime(()), both.map(lambda side: side.kernels), scale),
        host_time=WorkTime(() if on_gpu else work.groups),
        ops=ops,
        trees=trees,
        pairing=pairing,
        families=compare_work(by_family, judging.noise_floor),
        launched_work=compare_work(both.map(lambda side: launched_samples(side.traces)), judging.noise_floor),
        common_change=common,
        tables=compare_tables(control.tables, test.tables, scale),
    )


def _refused(comparison: Comparison) -> Comparison:
    """The comparison without groups, operators and verdict, which would compare the sides."""
    gpu = comparison.gpu_time
    return replace(
        comparison,
        verdict=refused(comparison.verdict, comparison.labels),
        gpu_time=GpuTime((), spilled=gpu.spilled, outside=gpu.outside),
        host_time=WorkTime(()),
        ops=(),
        families=(),
        launched_work=(),
    )


class Cell(FrozenStruct):
    """One comparison of the matrix.

    Attributes:
        comparison: by itself.
        result: the verdict after correction: faster, slower, same or inconclusive.
        p_adjusted: Holm's p over all comparisons of the matrix that were tested, None where untested.
    """

    comparison: Comparison
    result: str
    p_adjusted: float | None


def against_control(control: TraceSet, others: Sequence[TraceSet], judging: Judging, force: bool = False) -> list[Cell]:
    """Every set against ``control``."""
    return _corrected([compare_sets(control, other, force, judging) for other in others])


def every_pair(sets: Sequence[TraceSet], judging: Judging, force: bool = False) -> list[Cell]:
    """Every set against every later one."""
    return _corrected([compare_sets(a, b, force, judging) for a, b in combinations(sets, 2)])


def _corrected(comparisons: list[Comparison]) -> list[Cell]:
    adjusted = holm([c.verdict.p_value for c in comparisons])
    cells = []
    for comparison, p in zip(comparisons, adjusted, strict=True):
        verdict_name = comparison.verdict.result
        chance = verdict_name in ("faster", "slower") and p is not None and p > thresholds.SIGNIFICANCE
        cells.append(Cell(comparison, "inconclusive" if chance else verdict_name, p))
    return cells


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment of those that are there: the chance of any false alarm stays below the level."""
    tested = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))
        out[k] = largest
    return out
