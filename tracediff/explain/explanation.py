"""`Explanation`: why the step got faster or slower, as one tree that closes, and how it is made of leaves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from tracediff import thresholds
from tracediff.aggregate.call_tree import CallTree, Occurrence
from tracediff.aggregate.leaves import SetLeaves
from tracediff.aggregate.summary import Side
from tracediff.arrays import Floats
from tracediff.diff.comparison import Comparison
from tracediff.diff.matching.items import FamilyOf
from tracediff.diff.statistics.many import OVERLAPPING, UNTESTED, Significance, compare_many
from tracediff.diff.views import moved_lines
from tracediff.explain.amounts import calls_of, measure, node_amount, with_calls_apart
from tracediff.explain.exposure import Remainder, account, slack_of
from tracediff.explain.facts import OTHER_KERNELS, WORK_DIFFERS, Fact
from tracediff.explain.held_work import OPERATOR, holders_of
from tracediff.explain.leaves import (
    GPU,
    NOT_RECORDED,
    OPERATORS,
    OTHER_CALLERS,
    OTHER_CALLS,
    QUEUE,
    SHARED_CALLS,
    STRETCHES,
    UNPLACED,
    Leaves,
    Single,
    pair,
)
from tracediff.explain.lines import (
    DONE_OFTEN,
    UNKNOWN,
    Amount,
    Line,
    label_of,
    lines_of,
    one_part,
    waits_for_ranks,
    what_happened,
)
from tracediff.explain.programs import Differing, calls_by_class, differing_calls, launching_operators, shared_calls
from tracediff.explain.reasons import CauseReason, NodeWork, largest_parts, main_line, of_gap, of_single, reasons_of
from tracediff.explain.repeated import Repeated, repeated_of
from tracediff.explain.tree import SINGLE, Node, build, is_near_one, name_singles
from tracediff.explain.work_facts import facts_of
from tracediff.formatting import ARROW, Unit
from tracediff.profile.events.step_states import BUSY_STATES
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import KERNEL, vendors_of
from tracediff.structs import FrozenStruct, Pair


class Cause(FrozenStruct, kw_only=True):
    """One line of the explanation. Times in µs per step.

    Attributes:
        label: what changed. trail: the labels around it in the tree, from the outermost on.
        what: what happened, in words.
        amount: None where the trace does not record it. reasons: why its work changed, as far as recorded.
        significance: from the runs. first: (side, where) of its longest instance, of a single event.
        node: its place in the tree. delta_us: what of the step's change it accounts for itself, as far as the step can
            wait for it, see `exposure`.
    """

    label: str
    trail: tuple[str, ...]
    what: str
    amount: Amount | None
    reasons: tuple[CauseReason, ...]
    significance: Significance
    first: tuple[int, Occurrence] | None
    node: Node
    delta_us: float

    @property
    def control_us(self) -> float:
        """All of control's time in the period, on the critical path or not."""
        return float(self.node.total[0]) / 1000

    @property
    def test_us(self) -> float:
        """The same of test."""
        return float(self.node.total[1]) / 1000

    @property
    def path_control_us(self) -> float:
        """Control's time on the critical path."""
        return float(self.node.path[0]) / 1000

    @property
    def path_test_us(self) -> float:
        """The same of test."""
        return float(self.node.path[1]) / 1000

    @property
    def exposure_us(self) -> float:
        """What of its change on the critical path is not its own."""
        return self.path_test_us - self.path_control_us - self.delta_us

    @property
    def effect(self) -> str:
        """The effect that is most of it: presence, amount, speed, time."""
        return self.node.main_effect[0]

    @property
    def chain(self) -> tuple[str, ...]:
        """All labels of its place in the tree, its node's last."""
        return (*self.trail, self.node.label)

    def __repr__(self) -> str:
        return (
            f"<Cause {self.label}: {self.control_us:,.1f} → {self.test_us:,.1f} µs, {self.delta_us:+,.1f} of the step>"
        )


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why the step got faster or slower. Times in µs per step.

    Attributes:
        facts: about the comparison, which carry no time.
        causes: the lines, those in the direction of the step's change first, the largest first.
        remainders: first label → what of the change is in no line; causes, exposure and rest are the step's change.
        scale_us: what the size of a line is judged against: the change, or where changes cancel part of them all.
        root: the whole tree. leaves: what it is built from. gpu_work: the significance of all GPU work.
        differing: the operators that are not called as often.
        period: what it is the time of: a step, the mean one, or without steps a file.
        profiled: whether it is of the steps that were profiled; else of GPU work and idle time without the profiler,
            which changes them in the other direction.
        ranks: of how many ranks it explains one. of_rank: which one, in words; empty of a single one.
    """

    facts: tuple[Fact, ...]
    causes: tuple[Cause, ...]
    remainders: dict[str, Remainder]
    scale_us: float
    root: Node
    leaves: Leaves = field(repr=False, compare=False)
    differing: Differing
    period: str
    profiled: bool
    ranks: int
    of_rank: str
    gpu_work: Significance

    @property
    def rest_us(self) -> float:
        """What is in no line."""
        return sum(part.longer_us + part.shorter_us for part in self.remainders.values())

    @property
    def exposure_us(self) -> float:
        """The same work, now on the critical path or off it."""
        return sum(part.exposure_us for part in self.remainders.values())

    @property
    def change_us(self) -> float:
        """Of the step."""
        return self.root.change / 1000


class LineSources(FrozenStruct, dict=True):
    """What the words of the lines are read from.

    Attributes:
        comparison: the matched work, the call trees and what was recorded. leaves: what the lines are built from.
        differing: the operators that are not called as often. repeated: what else is not, by name.
        late_work: see `explain`.
    """

    comparison: Comparison
    leaves: Leaves
    differing: Differing
    repeated: Mapping[str, Repeated]
    late_work: str

    @cached_property
    def added_calls(self) -> Pair[dict[str, Counter[str]]]:
        """Operator → line of code → ns of its calls there that the other side does not make there."""
        trees = self.comparison.trees
        renamed = Pair[dict[str, str]](
            moved_lines(*({call.line for call in tree.calls if call.line} for tree in trees)), {}
        )
        sides = [_by_line(tree, names) for tree, names in zip(trees, renamed, strict=True)]
        return Pair(*({op: mine[op] - other.get(op, Counter()) for op in mine} for mine, other in (sides, sides[::-1])))

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """Readable name of an operator → what it launches: the families of kernels, copies."""
        out: dict[str, set[str]] = defaultdict(set)
        for group in self.comparison.work.groups:
            for member in chain(*group.members):
                kind = group.family if member.category == KERNEL else member.category
                out[display_name(match_name(member.op or ""))].add(kind)
        return out

    @cached_property
    def launching(self) -> Pair[set[str]]:
        """The operators below which there is GPU work."""
        return self.comparison.trees.map(launching_operators)


def explain(
    comparison: Comparison,
    leaves_of_sides: Pair[SetLeaves],
    family_of: FamilyOf,
    noise_floor: float,
    late_work: str,
) -> Explanation:
    """Why the step of the test side takes longer or shorter; ``family_of``: (name, operator) → family. A relative
    change up to ``noise_floor`` is none. ``late_work``: what changed in the rank that the others wait for, in words.
    """
    groups, sides = comparison.work.groups, comparison.sides
    differing = differing_calls(comparison.trees)
    classes = comparison.trees.map(calls_by_class)
    repeated = repeated_of(comparison, classes if differing else Pair({}, {}))
    profiled = pair(leaves_of_sides, groups, sides, family_of, holders_of(comparison, repeated, classes))
    name_singles(profiled, leaves_of_sides)
    profiled = with_calls_apart(profiled, shared_calls(comparison.trees, comparison.pairing))
    vendors = [vendors_of(key.name for key in leaves.keys) for leaves in leaves_of_sides]
    same_vendor = vendors[0] == vendors[1]
    measure(profiled, groups, comparison.trees, same_vendor)
    leaves = _without_profiler(comparison, profiled) or profiled
    root = build(leaves)
    lines = lines_of(root)
    gpu_work = [root.children[GPU]] if GPU in root.children else []
    facts = facts_of(profiled, comparison, differing, classes, repeated, same_vendor=same_vendor)
    sources = LineSources(comparison, leaves, differing, {one.name: one for one in repeated}, late_work)
    slack = _slack(comparison, leaves) if leaves is profiled else {}
    accounted, remainders = account(lines, root, slack, facts)
    is_stated, ranks = any(fact.code == WORK_DIFFERS for fact in facts), max(len(side.ranks) for side in sides)
    tested = _significance([line.node for line, _ in accounted], leaves, noise_floor)
    return Explanation(
        facts=facts,
        causes=tuple(
            _cause(line, us, sources, significance, is_stated=is_stated and not line.trail)
            for (line, us), significance in zip(accounted, tested, strict=True)
        ),
        remainders=remainders,
        scale_us=lines.scale / 1000,
        root=root,
        leaves=leaves,
        period=_period(comparison, profiled=leaves is profiled),
        profiled=leaves is profiled,
        ranks=ranks,
        of_rank=_of_rank(sides) if ranks > 1 else "",
        gpu_work=next(iter(_significance(gpu_work, leaves, noise_floor)), UNTESTED),
        differing=differing,
    )


def _period(comparison: Comparison, *, profiled: bool) -> str:
    """What the explanation is of: the mean is named where the verdict is of medians."""
    if comparison.is_whole_file:
        return "whole file"
    is_of_medians = comparison.verdict.is_of_medians or comparison.believed_unprofiled is not None
    return "mean step" if profiled and is_of_medians else "step"


def _without_profiler(comparison: Comparison, leaves: Leaves) -> Leaves | None:
    """``leaves`` of the steps without the profiler, where the verdict is of these and the profiled changed the other
    way; None elsewhere, or where they do not fit.
    """
    unprofiled = comparison.believed_unprofiled
    if unprofiled is None or unprofiled.medians.delta * comparison.step_time.period.delta >= 0:
        return None
    return leaves.without_profiler(unprofiled.medians.map(lambda us: 1000 * us))


def _late(node: Node, sources: LineSources) -> str:
    """Whom the side waits for that takes longer in ``node``, which is communication, and for what."""
    side = sources.comparison.sides[int(node.change > 0)]
    late = side.late_rank
    if late is None or late.rank == side.slowest_rank:
        return "other ranks"
    is_along = node.change * sources.comparison.step_time.period.delta > 0
    return f"rank {late.rank}: {sources.late_work}" if is_along and sources.late_work else f"rank {late.rank}"


def _slack(comparison: Comparison, leaves: Leaves) -> dict[str, Floats]:
    """First label → ns per step that the other part of the path leaves it; empty where a side has no GPU, or several
    ranks, which wait for each other. Communication takes as long as ranks wait in it, and counts for none.
    """
    sides, step = comparison.sides, comparison.step_time
    if not all(side.has_gpu and len(side.ranks) < 2 for side in sides) or not all(step.period):
        return {}
    parts = {state.name: np.array(state.time) / np.array(step.period) for state in step.states}
    computing, communicating, copying = (parts.get(name, np.zeros(2)) for name in BUSY_STATES)
    steps = leaves.step_ns
    longer = float(((1 - computing - communicating - copying) * steps) @ (-1, 1))  # that the GPU is idle
    return slack_of(leaves, (computing + copying) * steps) | {QUEUE: np.array([max(-longer, 0.0), max(longer, 0.0)])}


def _of_rank(sides: Pair[Side]) -> str:
    """Of several ranks, the one whose steps are explained."""
    ranks = {side.slowest_rank for side in sides}
    return f"rank {ranks.pop()}" if len(ranks) == 1 and None not in ranks else "one rank of each step"


def _lacks_event(line: Line, leaves: Leaves) -> bool:
    """Whether a line lacks single events of its own that take more than half of its time, or that change visibly, of an
    operator, whose change they would be part of.
    """
    places = [i for i, single in leaves.single.items() if single.chain[: len(line.chain)] == line.chain]
    times = leaves.total[:, places].sum(axis=1)
    is_most = times.sum() > thresholds.MOSTLY * line.node.total.sum()
    changes = abs(times[1] - times[0]) > thresholds.WORTH_A_LINE * abs(line.node.total @ (-1, 1))
    return bool(is_most or (changes and OPERATOR in line.node.label and ARROW not in line.node.label))


def whole_label(line: Line, kinds: Mapping[str, set[str]], *, lacks_event: bool) -> str:
    """The label of a line, with a word where that is not all that it is called after: where it ``lacks_event``, or its
    operator launches several ``kinds``.
    """
    label = label_of(line)
    if lacks_event:
        return f"other {label.removeprefix('other ')}"
    if line.trail[:1] == (GPU,) and OTHER_CALLERS not in line.trail and len(kinds.get(line.node.label, ())) > 1:
        return f"{line.trail[1]} kernels of {line.node.label}"
    return label


def _cause(line: Line, delta_us: float, sources: LineSources, significance: Significance, *, is_stated: bool) -> Cause:
    """The line with its words; ``is_stated``: whether a fact says how much more work it is."""
    comparison, leaves = sources.comparison, sources.leaves
    node = line.node
    amount = node_amount(node, leaves)
    as_much = amount is not None and is_near_one(amount.ratio)
    is_recorded, others = _elsewhere(node, leaves)
    groups, other_groups = (
        [comparison.work.groups[g] for g in dict.fromkeys(leaves.groups[leaf] for leaf in some) if g >= 0]
        for some in (node.leaves, others)
    )
    work = NodeWork(groups, comparison.trees, as_much, other_groups)
    singles = [leaves.single[leaf] for leaf in node.leaves if leaf in leaves.single]
    single = max(singles, key=lambda one: one.longest.ns, default=None)
    label = label_of(line)  # which may say which kernels were replaced
    reasons = [reason for reason in reasons_of(work) if ARROW not in label or reason.code != OTHER_KERNELS]
    if OTHER_CALLERS in line.trail and "::" not in label:  # which is no operator, and what calls it
        reasons = [reason for reason in reasons if reason.code != "caller"]
    reasons = [reason for reason in reasons if reason.text != f"called by {label}"]
    what = what_happened(line, amount, calls_of(node, leaves), is_recorded=is_recorded, is_stated=is_stated)
    if OTHER_CALLERS in line.trail:
        repeated = sources.repeated.get(node.label)
        what = repeated.happened(node) if repeated else what
    return Cause(
        label=whole_label(line, sources.kinds, lacks_event=_lacks_event(line, leaves)),
        trail=line.trail,
        what=_in_words(line, what, {reason.code for reason in reasons}, sources),
        amount=amount,
        reasons=(*reasons, *_reasons_of_place(line, single, sources)),
        significance=significance,
        first=(single.side, single.longest.first) if single else None,
        node=node,
        delta_us=delta_us,
    )


def _in_words(line: Line, what: str, reasons: set[str], sources: LineSources) -> str:
    """``what`` happened, where no reason says more, and whom it waits for, or that it does not in every step."""
    node, leaves = line.node, sources.leaves
    if "phase" in reasons or (what in DONE_OFTEN and "count" in reasons):
        what = ""
    if waits_for_ranks(line.chain) and line.chain[0] != OPERATORS:  # which enqueue
        waiting = f"includes waiting for {_late(node, sources)}"
        texts = (waiting, what) if sources.late_work in waiting else (what, waiting)  # the first one stays
        what = waiting if what in ("", UNKNOWN) else "; ".join(texts)
    is_in_some = what and not node.is_of_both and not leaves.in_each[node.longer_side, node.leaves].any()
    return f"{what}, not in every step" if is_in_some else what


def _reasons_of_place(line: Line, single: Single | None, sources: LineSources) -> Iterator[CauseReason]:
    """Which event, calls, stretch or parts most of the line is, where its calls are made, and on what device."""
    node, comparison, leaves = line.node, sources.comparison, sources.leaves
    unit = leaves.step_unit
    if single and node.note == SINGLE:
        periods = sum(leaves.steps[single.side])
        is_code = any(leaves.kinds[k] in STRETCHES for k in node.leaves if leaves.single.get(k) is single)
        label = comparison.sides[single.side].label
        yield of_single(single, node, label, periods, comparison.each, unit, is_code=is_code)
    elif SHARED_CALLS in line.chain and (text := one_part(node, leaves)):
        yield CauseReason("largest", text)
    elif part := _longest_gap(node, leaves, comparison.sides, unit) or largest_parts(
        node, line.trail, sources.differing, unit
    ):
        yield part
    if OTHER_CALLS in line.chain and (place := _line_of_calls(node, sources)):
        yield place
    if device := _on_other_device(node, sources):
        yield device


def _longest_gap(node: Node, leaves: Leaves, sides: Pair[Side], unit: Unit) -> CauseReason | None:
    """Where the longest stretch between operators is, if both sides have any and in every run it is most of ``node`` in
    a step of the side that has more.
    """
    side = node.longer_side
    code = {leaf for leaf in node.leaves if leaves.kinds[leaf] in STRETCHES}
    gaps = [(gap, run, leaf) for (run, leaf), gap in leaves.longest[side].items() if leaf in code and gap.following]
    runs = range(len(leaves.steps[side]))
    by_run = [max((gap.ns for gap, of_run, _ in gaps if of_run == run), default=0) for run in runs]
    if not node.is_of_both or min(by_run) < max(thresholds.MOSTLY * node.total[side], 1):
        return None
    longest, _, leaf = max(gaps, key=lambda gap: gap[0].ns)
    place = "" if leaves.chains[leaf][-1] in (NOT_RECORDED, node.label) else f" in {leaves.chains[leaf][-1]}"
    return of_gap(longest, f"{place} in {sides[side].label}", unit)


def _by_line(tree: CallTree, renamed: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Operator → line of code, after its ``renamed`` one where it has one → ns of its own time there."""
    out: dict[str, Counter[str]] = defaultdict(Counter)
    for call in tree.calls:
        if call.kind == "op":
            out[call.label][renamed.get(call.line or UNPLACED, call.line or UNPLACED)] += call.self_ns
    return out


def _line_of_calls(node: Node, sources: LineSources) -> CauseReason | None:
    """The line of code outside of torch that most of the calls run for that the side which has more makes beside those
    of the other.
    """
    side, leaves = node.longer_side, sources.leaves
    names = {leaves.names[side][leaf] for leaf in node.leaves if leaves.kinds[leaf] == "op"}
    by_line = Counter[str]()
    for name in names:
        by_line += sources.added_calls[side].get(name, Counter())
    return main_line(by_line)


def _on_other_device(node: Node, sources: LineSources) -> CauseReason | None:
    """That the operators of most of a node's time launch GPU work on one side, and on the other compute themselves."""
    leaves, sides = sources.leaves, sources.comparison.sides
    if not all(side.has_gpu for side in sides):
        return None
    ns_of: dict[tuple[bool, ...], float] = defaultdict(float)
    for leaf in node.leaves:
        names = {match_name(names[leaf]) for names in leaves.names}
        if leaves.kinds[leaf] == "op" and leaves.count[:, leaf].all() and len(names) == 1:
            ns_of[tuple(names <= launching for launching in sources.launching)] += float(leaves.total[:, leaf].max())
    places, ns = max(ns_of.items(), key=lambda item: item[1], default=((), 0.0))
    if len({*places}) < 2 or ns < thresholds.MOSTLY * float(node.total.max()):
        return None
    parts = (
        f"on the {'GPU' if is_gpu else 'host'} in {side.label}" for is_gpu, side in zip(places, sides, strict=True)
    )
    return CauseReason("device", f"computed {', '.join(parts)}")


def _elsewhere(node: Node, leaves: Leaves) -> tuple[bool, list[int]]:
    """(whether a side that has none of ``node`` has anything of its kinds, so that it would be recorded; its leaves of
    that name).
    """
    if node.is_of_both:
        return True, []
    inside, side = set(node.leaves), int(node.total[1] == 0)
    kinds = {leaves.kinds[i] for i in inside}
    there = [i for i in np.flatnonzero(leaves.total[side]).tolist() if i not in inside]
    if kinds <= {"op", "call"} and not any(leaves.kinds[i] in kinds for i in there):
        return False, []
    return True, [i for i in there if node.label in leaves.chains[i]]


def _significance(nodes: Sequence[Node], leaves: Leaves, noise_floor: float) -> list[Significance]:
    """Of each node, from its time in every run; of too few runs to test, from that in these, or in a run's steps, which
    decides nothing where both sides have as long ones, or where few of them are most of the change.
    """
    if not nodes:
        return []
    control, test = (np.array([ns[:, node.leaves].sum(axis=1) for node in nodes]) / 1000 for ns in leaves.samples)
    if min(map(len, leaves.steps)) >= thresholds.TESTED_RUNS:
        return [*compare_many(control, test, noise_floor).rows]
    least = thresholds.MOSTLY * abs(float(leaves.step_ns @ (-1, 1)))
    is_small = np.array([abs(node.work) < least for node in nodes])  # else that is what there is to say
    is_single = np.array([node.note == SINGLE for node in nodes])
    overlaps = (control.min(axis=1) <= test.max(axis=1)) & (test.min(axis=1) <= control.max(axis=1))
    changed, typical = (middle(test, axis=1) - middle(control, axis=1) for middle in (np.mean, np.median))
    is_of_few = typical * changed < thresholds.MOSTLY * changed**2
    is_of_both = np.array([node.is_of_both for node in nodes])
    may_be_chance = is_of_both & ((overlaps & (is_small | ~is_single)) | (is_of_few & is_small))
    return [OVERLAPPING if chance else UNTESTED for chance in may_be_chance.tolist()]
