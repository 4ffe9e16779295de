"""Facts about the work and the program of both sides: whether they are the same; and all facts in their order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isclose, log

import numpy as np

from tracediff import thresholds
from tracediff.aggregate.call_tree import Trees
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import NUMBER
from tracediff.explain.amounts import flop_calls, flop_ratio
from tracediff.explain.called import instead, largest_difference, one_sided_calls
from tracediff.explain.facts import (
    AS_MUCH,
    AS_OFTEN,
    CHANGED_MODULES,
    COMPILED,
    GRAPH_REPLAYS,
    HOST_SPEED,
    ONE_MODULE,
    OTHER_COUNTS,
    OTHER_PROGRAM,
    RECOMPUTED,
    REWRITTEN,
    SAME_CALLS,
    SAME_PROGRAM,
    UNIFORM,
    UNKNOWN_WORK,
    Fact,
    backlog,
    first_calls,
    graph_breaks,
    hidden_host,
    late_rank,
    late_start,
    new_wait,
    not_steady,
    other_kernels,
    other_ranks,
    other_stream,
    recompiles,
    replacing,
    stand_ins_of,
)
from tracediff.explain.leaves import GPU, HOST, OPERATORS, OTHER_CALLS, SHARED_CALLS, Chain, Leaves
from tracediff.explain.programs import (
    EVERY,
    INNERMOST,
    OUTERMOST,
    ClassCalls,
    Differing,
    agreeing,
    calls_by_shape,
    changed_modules,
    common,
    examples_of,
    in_parts,
    in_place,
    is_contained,
    is_mostly_contained,
    is_operator,
    listed,
    loads_data,
    median_factor,
    operators,
    phases_of_operators,
    recomputed,
    same_inputs,
    work_in_backward,
)
from tracediff.explain.reasons import PLACES
from tracediff.explain.repeated import Repeated, facts_of_repeated
from tracediff.explain.sizes import (
    DIFFERENT_WORK,
    WORDS,
    amounts,
    does_as_much,
    first_dimension,
    is_measured_work,
    measured,
    other_sizes,
    unknown_sizes,
)
from tracediff.explain.tree import is_near_one
from tracediff.formatting import change, count, counts, multiple, percent, plural, times
from tracediff.structs import NONE, Pair, total


def facts_of(
    leaves: Leaves,
    comparison: Comparison,
    differing: Differing,
    classes: Pair[ClassCalls],
    repeated: Sequence[Repeated],
    *,
    same_vendor: bool,
) -> tuple[Fact, ...]:
    """The facts, the weightiest first; ``classes`` are of both sides' modules. The names of the matched work compare if
    ``same_vendor``.
    """
    trees, sides, groups = comparison.trees, comparison.sides, comparison.work.groups
    program = _program(leaves, comparison, differing)
    codes = {fact.code for fact in program}
    same = f"the same operator calls{_outside_loading(trees)}" if SAME_PROGRAM in codes else ""
    by_sizes: list[Fact] = []
    # else it is judged by all of its FLOPs, or of its amounts; or too little is known
    if codes.isdisjoint((OTHER_PROGRAM, REWRITTEN, UNKNOWN_WORK)):
        by_amounts = amounts(leaves, comparison, same) or other_sizes(leaves, comparison, same)
        by_sizes = (by_amounts + first_dimension(comparison) or unknown_sizes(leaves, trees)) + _uniform(
            leaves, comparison
        )
    repetitions = facts_of_repeated(repeated, comparison)
    of_compilers = *replacing(leaves, sides), *graph_breaks(sides), *recompiles(sides)
    codes |= {fact.code for fact in (*repetitions, *of_compilers)}
    has_stand_ins = not codes.isdisjoint((COMPILED, GRAPH_REPLAYS))  # for what else a side does not call
    return (
        *_nothing_recorded(comparison),
        *(not_steady(leaves) or first_calls(leaves, sides)),
        *([] if has_stand_ins else _one_sided_phases(comparison)),
        *_recomputed(leaves, comparison),
        *one_sided_calls(leaves, comparison, classes, differing, codes),
        *repetitions,
        *backlog(sides),
        *late_start(leaves),
        *(fact for fact in program if not (fact.code in (SAME_PROGRAM, AS_MUCH) and by_sizes)),  # which say more
        *by_sizes,
        *_host_speed(leaves, comparison),
        *_one_module(leaves, comparison),
        *hidden_host(leaves),
        # the same calls are the same whatever module each is charged to
        *(_changed_modules(trees) if same_vendor and SAME_CALLS not in codes else ()),
        # the groups of another program are not the same work
        *([] if OTHER_PROGRAM in codes or not same_vendor else other_kernels(groups)),
        *(other_stream(comparison) if comparison.has_gpu else ()),
        *other_ranks(leaves, sides),
        *late_rank(sides),
        *of_compilers,
        *new_wait(leaves, comparison),
    )


def _program(leaves: Leaves, comparison: Comparison, differing: Differing) -> list[Fact]:
    """other-program and as-often, from how often each outermost operator is called, and which are ``differing``;
    as-often only if the operators within them agree, too, which batched code does not call as often. Nothing where only
    one side calls compiled code or has replays of graphs, which replace operators.
    """
    trees, stand_ins = comparison.trees, stand_ins_of(leaves)
    outer = [operators(tree, OUTERMOST) for tree in trees]
    calls = [sum(side.values()) for side in outer]
    if not all(outer) or max(calls) < thresholds.PROGRAM_CALLS or stand_ins[0] != stand_ins[1]:
        return _unknown(leaves)
    examples = examples_of(differing, {} if comparison.has_gpu else _times_of_one_side(leaves, trees, differing, outer))
    if common(outer) >= thresholds.SAME_PROGRAM:
        if any(stand_ins):  # what these do is unknown
            return [Fact(OTHER_COUNTS, f"operators called more or less often: {examples}")] if examples else []
        return _same_calls(trees) or [_same_program(outer, comparison, examples)]
    factor = median_factor(*outer)
    agree = min(common(outer, factor), common([operators(tree, INNERMOST) for tree in trees], factor))
    is_scaled = agree >= thresholds.SAME_PROGRAM  # all alike, so that any known FLOPs are an example of the work
    flops = flop_ratio(trees, 0 if is_scaled else thresholds.MOSTLY)
    as_many = flops is not None and is_near_one(flops)
    values = plural(calls[0], "call"), plural(calls[1], "call")
    if not as_many and is_scaled and not is_near_one(factor):
        share = f"{counts(*calls)} calls, {percent(agree)} of which agree"
        mostly = "" if agree == 1 else "mostly "
        text = f"{mostly}the same operators, {times(factor)} × as often: {share}"
        return [Fact(AS_OFTEN, text, *values, factor, DIFFERENT_WORK)]
    share = _agreement(outer, comparison)
    kinds = [dict.fromkeys(flop_calls(tree), 1.0) for tree in trees]
    is_other = not is_mostly_contained(outer)
    by_others = " by other operators" if is_other and common(kinds) < thresholds.SAME_PROGRAM else ""
    if as_many or (flops is None and does_as_much(leaves)):
        nearly = "" if flops is not None and isclose(flops, 1) else "nearly "
        parts = in_parts(trees) if as_many else ""
        as_much = f"{nearly}as many FLOPs{f', {parts} with FLOPs' if parts else by_others}: " if as_many else ""
        setting = f"with {nearly}as many FLOPs {parts}" if parts else ""
        return [Fact(REWRITTEN, f"{as_much}{share}: {examples}", *values, setting=setting)]
    work = "" if flops is None else f"; {comparison.test.label} does {multiple(flops, 'known FLOPs')}"
    removed, added = in_place(differing)
    setting = ", ".join(("with other operator calls", *([f"such as {added}"] if added else []), *instead(removed, "")))
    if is_contained(outer):
        setting = "".join(largest_difference(differing, comparison)) or setting
    return [Fact(OTHER_PROGRAM, f"{share}: {examples}{work}", *values, setting=setting)]


def _times_of_one_side(
    leaves: Leaves, trees: Trees, differing: Differing, outermost: Sequence[Mapping[str, float]]
) -> dict[str, str]:
    """Operator of one side only → `` (+1.2 ms total)`` of the calls that are ``differing``, with what they call, where
    that is a difference of the step: of the ``outermost``, or of all where these are not what differs.
    """
    us: dict[tuple[str, str], float] = defaultdict(float)
    for tree, sign in zip(trees, (-1, 1), strict=True):
        around: list[set[str]] = []  # as the implementation of an operator may have its name
        for call in tree.calls:
            outer = around[call.parent] if call.parent >= 0 else set()
            is_other = is_operator(call) and call.label not in outer
            for which in (EVERY, *([] if outer else [OUTERMOST])) if is_other else ():
                us[call.label, which] += sign * call.total / tree.denominator / 1000
            around.append(outer | {call.label} if is_other else outer)
    least = thresholds.NO_DIFFERENCE * float(leaves.step_ns.max()) / 1000
    times = {
        name: us[name, OUTERMOST if numbers == tuple(side.get(name, 0.0) for side in outermost) else EVERY]
        for name, numbers in differing.items()
        if not all(numbers)
    }
    return {name: f" ({leaves.step_unit.signed_text(us)} total)" for name, us in times.items() if abs(us) >= least}


def _nothing_recorded(comparison: Comparison) -> list[Fact]:
    """nothing-recorded: neither side has any work."""
    has_operators = any(call.kind == "op" for tree in comparison.trees for call in tree.calls)
    if has_operators or comparison.has_gpu:
        return []
    text = "neither side has an operator or a GPU event: was the profiler's schedule over before the program's steps?"
    return [Fact("nothing-recorded", text, setting="with nothing of the program recorded")]


def _outside_loading(trees: Trees) -> str:
    return " outside data loading" if any(map(loads_data, trees)) else ""


def _outermost_calls(trees: Trees) -> str:
    return f"outermost operator calls{_outside_loading(trees)}"


def _agreement(outer: Sequence[Mapping[str, float]], comparison: Comparison) -> str:
    """How many of the ``outer`` calls both sides make, and how many one of them makes alone."""
    both = agreeing(outer)[0]
    only = zip((sum(side.values()) - both for side in outer), comparison.labels, strict=True)
    others = (f"{counted} only in {label}" for number, label in only if (counted := count(number)) != "0")
    return ", ".join((f"{count(both)} {_outermost_calls(comparison.trees)} in both", *others))


def _same_program(outer: Sequence[Mapping[str, float]], comparison: Comparison, others: str) -> Fact:
    """other-counts: how many of the ``outer`` calls agree, and which ``others`` do not; same-program if all do, and
    which of those inside them do not.
    """
    if others and len({*map(count, agreeing(outer))}) > 1:  # else ties of times tell what is within what
        return Fact(OTHER_COUNTS, f"mostly the same program: {_agreement(outer, comparison)}: {others}")
    agree = f"all {_outermost_calls(comparison.trees)} agree"
    return Fact(
        SAME_PROGRAM, f"{agree}, but not those inside them: {others}" if others else f"the same program: {agree}"
    )


def _recomputed(leaves: Leaves, comparison: Comparison) -> list[Fact]:
    """recomputed: only one side runs operators of the forward pass again in the backward pass, and for how long."""
    again = "runs operators of the forward pass again in the backward pass, as checkpoints of activations do"
    unit, trees = leaves.step_unit, comparison.trees
    both = zip(comparison.sides, trees, recomputed(trees), (("with", "without"), ("without", "with")), strict=True)
    return [
        Fact(
            RECOMPUTED,
            f"only {side.label} {again}: {listed(names)} ({unit.text(work_in_backward(tree, names) / 1000)} of "
            f"{WORDS[GPU if side.has_gpu else OPERATORS]})",
            control,
            test,
            setting=f"{'' if test == 'with' else 'without '}recomputing activations",
        )
        for side, tree, names, (control, test) in both
        if names
    ]


def _changed_modules(trees: Trees) -> list[Fact]:
    """changed-modules: what alone differs of the modules, if it is a part of the model."""
    place = changed_modules(trees)
    return [Fact(CHANGED_MODULES, f"operators or sizes differ only in {place}")] if place else []


def _one_sided_phases(comparison: Comparison) -> list[Fact]:
    """one-sided-phases: only one side runs a backward pass, or an optimizer, where both have operators."""
    phases = list(map(phases_of_operators, comparison.trees))
    if not all(phases):
        return []
    return [
        Fact("one-sided-phases", f"only {side.label} runs {' and '.join(PLACES[phase] for phase in sorted(only))}")
        for side, mine, others in zip(comparison.sides, phases, reversed(phases), strict=True)
        if (only := (mine - others) & PLACES.keys())
    ]


def _same_calls(trees: Trees) -> list[Fact]:
    """same-calls: both sides call the same operators with the same shapes, to the last call."""
    control, test = map(calls_by_shape, trees)
    if control != test:
        return []
    shapes = ", with the same shapes" if any(shapes for _, shapes in control) else ""
    return [Fact(SAME_CALLS, f"the same program: all operator calls agree{shapes}")]


def _unknown(leaves: Leaves) -> list[Fact]:
    """unknown-work, where neither operators nor amounts decide whether it is the same work; as-much."""
    if does_as_much(leaves):
        part = percent(float(measured(leaves, WORDS)[0].sum()))
        basis = "" if part == percent(1) else f" (sizes known for {part} of the time)"
        return [Fact(AS_MUCH, f"the operators that both sides call do the same amount of work{basis}")]
    is_work, _ = is_measured_work(leaves, WORDS)
    whole, measured_ns = leaves.total_of(is_work), leaves.total_of(is_work & (leaves.ratio > 0)).sum()
    if not whole.all() or measured_ns >= thresholds.MOSTLY * whole.sum():
        return []
    part = percent(float(measured_ns / whole.sum()))
    what = f"operators cannot be compared, and sizes are known for {part} of the time only"
    return [Fact(UNKNOWN_WORK, f"unknown whether it is the same work: {what}", setting="on work that may differ")]


def _uniform(leaves: Leaves, comparison: Comparison) -> list[Fact]:
    """uniform: most of the work is as much on both sides, of the same inputs and devices, and takes longer or shorter
    alike, whatever operator it is of.
    """
    if comparison.control.devices != comparison.test.devices or same_inputs(comparison.trees) < thresholds.SAME_PROGRAM:
        return []
    is_work, as_much = is_measured_work(leaves, WORDS)
    as_much[as_much] = np.abs(np.log(leaves.ratio[as_much])) <= thresholds.SAME_RATIO
    factor = _common_factor(leaves, as_much, is_work)
    on_gpu = any(leaves.chains[leaf][0] == GPU for leaf in np.flatnonzero(is_work).tolist())
    work, what = ("GPU work", "the GPU (its clocks)") if on_gpu else ("work", "the machine (clocks, threads, load)")
    text = f"the same {work} takes {times(factor)} × the time, all of it alike: {what} rather than the program"
    before, after = leaves.step_ns.tolist()
    change, is_same = after - before, abs(after - before) < thresholds.NO_DIFFERENCE * before
    is_waited_for = change * log(factor) > 0 and abs(_waited(leaves)) >= thresholds.MOSTLY * abs(change)
    setting = f"with all {work} {_pace(factor)}" if is_same or is_waited_for else ""
    return [Fact(UNIFORM, text, ratio=factor, setting=setting)] if factor != 1 else []


def _waited(leaves: Leaves) -> float:
    """ns per step that the step waits longer for work, on a GPU or of operators without one."""
    return float(leaves.path_of(~leaves.below(HOST)) @ (-1, 1))


def _common_factor(leaves: Leaves, as_much: np.ndarray, of_all: np.ndarray) -> float:
    """How many times as long the leaves that are ``as_much`` work on both sides take, if they are most ``of_all``, and
    it is so of each, whatever operator it is of; else 1.
    """
    took = leaves.total[:, as_much]
    (before, after), others = took.sum(axis=1), took[:, _of_other_operators(leaves, as_much)]
    if not before or before + after < thresholds.MOSTLY * leaves.total[:, of_all].sum():
        return 1.0
    factor = float(after / before)
    has_others = others.sum() >= thresholds.WORTH_A_LINE * (before + after)
    is_alike = has_others and _is_uniform(took, factor) and _is_uniform(others, factor)
    return factor if is_alike and abs(log(factor)) >= thresholds.WORTH_A_LINE else 1.0


def _one_module(leaves: Leaves, comparison: Comparison) -> list[Fact]:
    """one-module: of three or more modules alike, such as layers, one has most of what all work changed by, and of what
    the step did, but less than half of their time on the side where it takes less.
    """
    singles = {leaves.groups[leaf] for leaf in leaves.single}  # which are in one module by themselves
    groups = [group for k, group in enumerate(comparison.work.groups) if k not in singles]
    of_kind: dict[str, dict[str, Pair[int]]] = defaultdict(dict)
    for group in groups:
        for number in NUMBER.finditer(group.module or ""):
            module, kind = number.string[: number.end()], number.string[: number.start()]
            of_kind[kind][module] = total((of_kind[kind].get(module, NONE), group.time))
    moved = sum(abs(group.time.delta) for group in groups)
    step_change = abs(comparison.step_time.period.delta)
    for kind, modules in sorted(of_kind.items(), key=lambda both: -both[0].count("/")):  # the innermost first
        module, took = max(modules.items(), key=lambda both: abs(both[1].delta))
        others = total(ns for name, ns in modules.items() if name != module)
        least = max(thresholds.MAIN_PART * moved, thresholds.MOSTLY * step_change)
        # what is added or removed is other work
        is_one_of_many = 0 < min(took) < thresholds.MOSTLY * min(total((took, others)))
        if len(modules) >= thresholds.EXCEPTION_OF and abs(took.delta) >= max(least, 1) and is_one_of_many:
            one, rest = (change(*both.map(comparison.us)) for both in (took, others))
            name, alike = (path.rpartition("/")[2] for path in (module, kind))
            text = f"mostly in one of {len(modules)} {alike}: {name} {one}, the others {rest}"
            has_changed = step_change >= thresholds.NO_DIFFERENCE * max(comparison.step_time.period)
            is_waited_for = abs(_waited(leaves)) / 1000 >= thresholds.MOSTLY * abs(comparison.us(took.delta))
            return [Fact(ONE_MODULE, text, setting=f"mostly in {name}" if has_changed and is_waited_for else "")]
    return []


def _is_uniform(took: np.ndarray, factor: float) -> bool:
    """Whether what changed of the times of both sides changed by this factor."""
    before, after = took
    off = np.abs(after - factor * before).sum() / min(1.0, factor)  # the same for swapped sides
    return bool(off <= thresholds.UNIFORM * np.abs(after - before).sum())


def _of_other_operators(leaves: Leaves, some: np.ndarray) -> np.ndarray:
    """Which of ``some`` leaves are of other operators than the one that changed most."""
    operators = [leaves.chains[leaf][1:3] for leaf in np.flatnonzero(some).tolist()]
    of_operators: Counter[Chain] = Counter()
    for operator, moved in zip(operators, np.abs(np.diff(leaves.total[:, some], axis=0))[0], strict=True):
        of_operators[operator] += moved
    ((largest, _),) = of_operators.most_common(1) or [((), 0)]
    return np.array([operator != largest for operator in operators], bool)


def _host_speed(leaves: Leaves, comparison: Comparison) -> list[Fact]:
    """host-speed: all calls that both sides make take longer or shorter, whatever operator they are of, by most of the
    step's change.
    """
    is_same, is_other = leaves.below(HOST, SHARED_CALLS), leaves.below(HOST, OTHER_CALLS)
    took, waited, step_us = (ns / 1000 for ns in (leaves.total_of(is_same), leaves.path_of(is_same), leaves.step_ns))
    changed = min(abs(took[1] - took[0]), abs(waited[1] - waited[0]))
    least = max(thresholds.MOSTLY * abs(step_us[1] - step_us[0]), thresholds.WORTH_A_LINE * max(step_us))
    if not took.all() or changed < least:
        return []
    factor = _common_factor(leaves, is_same, is_same | is_other)
    if factor == 1:
        return []
    is_of_profiler, pace = comparison.has_other_options, _pace(factor)
    what = "other profiler options, or its clocks or load" if is_of_profiler else "its clocks or load"
    text = f"all calls of both sides take the host {times(factor)} × the time: likely {what}"
    setting = "with other profiler options" if is_of_profiler else f"on a host {pace}"
    return [Fact(HOST_SPEED, text, test=pace, ratio=factor, setting=setting)]


def _pace(factor: float) -> str:
    """How work that takes ``factor`` times as long is done."""
    return f"{times(1 / factor)} × as fast" if factor < 1 else f"{times(factor)} × as slow"
