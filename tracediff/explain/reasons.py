"""Reasons: what the data of a node says of why it changed. Each reads the work below its node and nothing else."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from math import isclose, prod
from typing import Annotated

from msgspec import Meta

from tracediff import bounds, thresholds
from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.aggregate.leaves import Longest
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.explain.amounts import NUMBER, is_of_other_kinds, resized
from tracediff.explain.leaves import (
    NOT_RECORDED,
    OTHER_CALLERS,
    OTHER_CALLS,
    SHARED_CALLS,
    UNPLACED,
    Single,
    largest_kernel,
)
from tracediff.explain.tree import REPLACED, Node
from tracediff.formatting import (
    ARROW,
    Unit,
    count as counted,
    counts,
    counts_of,
    number as number_text,
    percents,
    plural,
    with_digits,
)
from tracediff.patterns import late
from tracediff.profile.kernels.display_names import SHORT_TYPES
from tracediff.profile.kernels.families import uses_tensor_cores
from tracediff.profile.placement.scopes import BACKWARD, OPTIMIZER, PHASES
from tracediff.runtimes import DEVICE_CATEGORIES, KERNEL, MEMCPY, call_role
from tracediff.structs import FrozenStruct, Pair, total

NO_TENSOR = ("Scalar", "ScalarList", "GenericList")
"""Types of inputs that are not tensors."""
PLACES = {PHASES[BACKWARD]: "the backward pass", PHASES[OPTIMIZER]: "the optimizer"}
"""Phases that are recorded; forward is all else of a step."""
TF32 = "tf32"
"""In the names of kernels that compute float32 in fewer bits."""
MEMORY_KIND = late(r"\((?P<source>\w+)\s*->\s*(?P<target>\w+)\)")


class CauseReason(FrozenStruct):
    """What the data of a line says of why it changed."""

    code: Annotated[str, Meta(description="stable code (docs/facts-and-reasons.md)")]
    text: Annotated[str, Meta(description="the reason in a few words")]


class NodeWork(FrozenStruct):
    """The work below one node.

    Attributes:
        groups: with members on any side. trees: of both sides, on one scale.
        as_much: whether it is known to be as much work.
        others: where one side has none of it, work of that name that it has elsewhere.
    """

    groups: Sequence[Group]
    trees: Pair[CallTree]
    as_much: bool
    others: Sequence[Group]

    @property
    def items(self) -> list[list[Item]]:
        """The items of both sides."""
        return [[item for group in self.groups for item in group.items[side]] for side in (0, 1)]

    def part(self, groups: Iterable[Group]) -> float:
        """The part of the node's time, of the side on which it is larger, that ``groups`` are."""
        mine = list(groups)
        whole, group_times = total(g.time for g in self.groups), total(g.time for g in mine)
        return max((h / w for h, w in zip(group_times, whole, strict=True) if w), default=0.0)


def reasons_of(work: NodeWork) -> tuple[CauseReason, ...]:
    """All that the data says of a node."""
    return tuple(reason for rule in RULES if (reason := rule(work))) if work.groups else ()


def of_single(
    single: Single, node: Node, side: str, periods: int, per: str, unit: Unit, *, is_code: bool
) -> CauseReason:
    """That most of a ``node`` is one event of ``side``, which has so many ``periods`` (``per``: step, file), or one of
    each run, and what it is an exception of, in the ``unit`` of the step. ``is_code``: whether it is a stretch of code.
    """
    events, on_both = float(node.count[single.side]) * periods, bool(node.count[0]) and node.count[0] == node.count[1]
    is_one = single.longest.ns >= thresholds.MOSTLY * float(node.path[single.side]) * periods
    longest, when = _in_unit(single.longest.ns, unit), ""
    if float(node.total[single.side]) > (1 + thresholds.WORTH_A_LINE) * float(node.path[single.side]):
        longest += " of the critical path"  # and more beside it
    if is_one and periods > 1:
        when = f", in one of {plural(periods, per)}"
    if is_code:
        following = single.longest.following and f", before {call_role(single.longest.following)}"
        return CauseReason("dominant", f"one stretch between calls in {side} takes {longest}{when}{following}")
    if events > 1:
        if single.in_runs and not is_one:
            return CauseReason(
                "dominant", f"one in each run of {side}, of {counted(events)} in all, takes up to {longest}"
            )
        which = f"{'one' if is_one else 'the longest'} of {counted(events)}"
        return CauseReason("dominant", f"{which} in {side} takes {longest}{when}")
    where, there = ("on each side", f" in {side}") if on_both else (f"in {side}", "")
    others = f"{counted(single.others)} others of its name{there}: {_in_unit(single.others_ns, unit)}"
    return CauseReason("single", f"one event {where}; {others}")


def of_gap(longest: Longest, place: str, unit: Unit) -> CauseReason:
    """Where the longest stretch between operators is, in the ``unit`` of the step; ``place`` says in what, and when."""
    longest_us = _in_unit(longest.ns, unit)
    return CauseReason("gap", f"up to {longest_us} between calls{place}, before {call_role(longest.following)}")


def _in_unit(ns: float, unit: Unit) -> str:
    return with_digits(unit, [ns / 1000]).text(ns / 1000)


def largest_parts(node: Node, trail: tuple[str, ...], differing: Container[str], unit: Unit) -> CauseReason | None:
    """Which of a node's parts changed most in its direction, by how much in ``unit``, if these are most of what did, or
    of calls that one side makes, whatever these are; None where it has one part, or is of equal calls, which differ in
    their speed. ``trail`` are the labels around it, ``differing`` the operators that are not called as often.
    """
    if node.note == REPLACED:
        text = " removed, ".join(node.label.split(ARROW)) + " added"
        return CauseReason("largest", text) if trail[-1] == OTHER_CALLS and ARROW in node.label else None
    if len(node.children) < 2 or node.label == SHARED_CALLS:
        return None
    sign = 1 if node.work >= 0 else -1
    parts = [child for step, child in node.children.items() if isinstance(step, str) and sign * child.work > 0]
    parts.sort(key=lambda child: (-sign * child.work, child.label))
    is_of_calls = node.label == OTHER_CALLS
    labels = {
        part.label: _called(part, differing) if is_of_calls else part.label.removesuffix(f" in {node.label}")
        for part in parts
    }
    parts = [part for part in parts if unit.rounded(part.work / 1000)]
    can_name = [c for c in parts if c.label not in (NOT_RECORDED, node.label) and len(labels[c.label]) <= bounds.LABEL]
    largest = can_name[: bounds.PARTS_NAMED]
    first, moved = (abs(sum(part.work for part in some)) for some in (largest, parts))
    is_most = first >= thresholds.MOSTLY * moved
    is_of_one_kind = trail[-1:] == (OTHER_CALLERS,) and abs(parts[0].work) >= thresholds.KNOWN_AMOUNT * moved
    if is_of_one_kind or not largest or not (is_most or is_of_calls):
        return None
    unit = with_digits(unit, [child.work / 1000 for child in largest])
    texts = (f"{labels[child.label]} {unit.signed(child.work / 1000)}" for child in largest)
    return CauseReason("largest", f"largest: {', '.join(texts)}")


def _called(node: Node, differing: Container[str]) -> str:
    """The operator of ``node``, or where both call that as often, of those in it that they do not the one that changed
    most.
    """
    inner = [part for part in node.children.values() if part.label in differing]
    if node.label in differing or "::" not in node.label or not inner:
        return node.label
    label = max(inner, key=lambda part: abs(part.change)).label
    return label if " in " in label else f"{label} in {node.label}"


def _no_operator(work: NodeWork) -> CauseReason | None:
    """Work of one side that nothing which was recorded has launched, though operators were recorded."""
    members = [member for group in work.groups for side in group.members for member in side]
    has_operators = any(call.kind == "op" for tree in work.trees for call in tree.calls)
    if not has_operators or any(all(group.members) for group in work.groups) or any(member.op for member in members):
        return None
    lanes = {member.first.lane for member in members}
    where = f", on stream {lanes.pop()}" if len(lanes) == 1 and all(lanes) else ""
    return CauseReason("no-operator", f"launched by no recorded operator{where}")


def _fusion(work: NodeWork) -> CauseReason | None:
    """One kernel computes what several did."""
    fused = [g for g in work.groups if g.level == "fusion"]
    if work.part(fused) < thresholds.MOSTLY:
        return None
    kernels = total(g.count for g in fused).map(lambda n: n / work.trees.control.denominator)
    if not kernels.delta:
        return None
    word = "fused" if kernels.delta < 0 else "no longer fused"
    return CauseReason("fusion", f"{word}: {counts(*kernels)} {_noun(fused)}")


def _kernels(work: NodeWork) -> CauseReason | None:
    """Other kernels for as much work, or copies in place of kernels."""
    other = [g for g in work.groups if g.has_other_kernels and (work.as_much or is_of_other_kinds(g))]
    if work.part(other) < thresholds.MOSTLY:
        return None
    control, test, more = replaced_kernels(other)
    return CauseReason("other-kernels", f"other kernels: {control} → {test}{more}")


def replaced_kernels(groups: Sequence[Group]) -> tuple[str, str, str]:
    """The names of both sides' kernels of the pair that takes most time, and how many more pairs of names there are."""
    times: Counter[tuple[str, ...]] = Counter()
    for group in groups:
        times[tuple(map(largest_kernel, group.members))] += sum(group.time)
    control, test = max(times, key=lambda names: (times[names], names))
    return control, test, f" and {len(times) - 1} more" if len(times) > 1 else ""


def _tensor_cores(work: NodeWork) -> CauseReason | None:
    """Kernels that use matrix units on one side only, for as much work."""
    if not work.as_much:
        return None
    parts, is_tf32 = [], []
    for side in (0, 1):
        members = [member for group in work.groups for member in group.members[side]]
        uses = [(m.ns, uses_tensor_cores(m.name)) for m in members if m.category == KERNEL]
        known_ns, whole = sum(ns for ns, is_used in uses if is_used is not None), sum(m.ns for m in members)
        if not whole or known_ns < thresholds.MOSTLY * whole:
            return None
        parts.append(sum(ns for ns, is_used in uses if is_used) / known_ns)
        is_tf32.append(any(TF32 in m.name.lower() for m in members))
    if abs(parts[1] - parts[0]) < thresholds.MOSTLY:
        return None
    return CauseReason(
        "tensor-cores", f"tensor cores {percents(*parts)}{' (TF32)' if is_tf32[0] != is_tf32[1] else ''}"
    )


def _inputs(work: NodeWork) -> CauseReason | None:
    """The same operators have inputs of another dtype, with other strides, or of sizes that are as much work, and what
    has takes longer or shorter as all of the work does.
    """
    if not work.as_much:
        return None
    changes: Counter[tuple[str, str]] = Counter()
    by_code: defaultdict[str, list[Pair[int]]] = defaultdict(list)
    for group in work.groups:
        if changed := changed_input_of(group, work.trees):
            changes[changed] += sum(group.time)
            by_code[changed[0]].append(group.time)
    whole = total(group.time for group in work.groups)
    of_codes = {code: total(group_times) for code, group_times in by_code.items()}
    code = max(of_codes, key=lambda code: sum(of_codes[code]), default="")
    if not code or sum(of_codes[code]) < thresholds.MOSTLY * sum(whole) or of_codes[code].delta * whole.delta < 0:
        return None
    values = [both for (of_code, both), _ in changes.most_common() if of_code == code]
    return CauseReason(code, f"{code} {values[0]}")


def changed_input_of(group: Group, trees: Sequence[CallTree]) -> tuple[str, str] | None:
    """(code, both values of the first input that differs) of its `counterparts`."""
    calls = counterparts(group, trees)
    return changed_input(*calls) if calls is not None else None


def counterparts(group: Group, trees: Sequence[CallTree]) -> Pair[Call] | None:
    """The call of ``group`` that has its largest item, and the other side's that is most like it; None if a side has no
    operators.
    """
    calls = [_calls(tree, items) for tree, items in zip(trees, group.items, strict=True)]
    if not all(calls):
        return None
    side = max((0, 1), key=lambda side: max(item.ns for item in group.items[side]))
    largest = calls[side][0]
    other = min(calls[1 - side], key=lambda call: (call.label != largest.label, _apart(largest, call)))
    return Pair(largest, other) if side == 0 else Pair(other, largest)


def _apart(control: Call, test: Call) -> int:
    """How many dimensions of the inputs of two calls differ."""
    dimensions = (NUMBER.findall(call.shapes or "") for call in (control, test))
    return sum(a != b for a, b in zip_longest(*dimensions))


def _calls(tree: CallTree, items: Sequence[Item]) -> list[Call]:
    """The operators that launched ``items``, of those with equal inputs one, that of the largest first."""
    by_inputs: dict[tuple[str | None, ...], Call] = {}
    for item in sorted(items, key=lambda item: -item.ns):
        call = tree.calls[item.node] if item.node >= 0 else None
        if call is not None and call.kind == "op":
            by_inputs.setdefault((call.label, call.shapes, call.types, call.strides), call)
    return list(by_inputs.values())


def changed_input(control: Call, test: Call) -> tuple[str, str] | None:
    """(code, both values of the first input that differs) of two calls of one operator, on equal shapes unless these
    differ; scalars cost next to nothing in any dtype.
    """
    if control.label != test.label or not control.shapes or not test.shapes:
        return None
    if control.shapes != test.shapes:
        sizes = resized(control.shapes, test.shapes)
        return ("sizes", sizes) if sizes else None
    dims = json.loads(control.shapes)
    for code, a, b in (("dtype", control.types, test.types), ("layout", control.strides, test.strides)):
        inputs = zip_longest(json.loads(a), json.loads(b), dims) if a and b else ()
        for before, after, shape in inputs:
            both = before, after
            if before != after and shape != [] and all(value and value not in NO_TENSOR for value in both):
                plain = [
                    SHORT_TYPES.get(value, value) if isinstance(value, str) else _layout(value, shape) for value in both
                ]
                return code, ARROW.join(plain if plain[0] != plain[1] else map(json.dumps, both))
    return None


@lru_cache(maxsize=1 << 12)
def _dtype_of_kernel(name: str) -> str:
    """TF32, or float of what could be TF32, as far as a kernel's name says it; else empty."""
    uses = uses_tensor_cores(name)
    if uses:
        return "TF32" if TF32 in name.lower() else ""
    return "" if uses is None else "float"


OtherInputs = dict[str, tuple[str, str, float]]
"""``dtype`` or ``layout`` → what most of the inputs that differ in it have on both sides, and of how much (0–1) of the
work they are.
"""


def other_inputs(comparison: Comparison) -> OtherInputs:
    """In what the inputs of the same operators on the same shapes differ in much of the work; TF32 as a dtype of
    kernels.
    """
    ns_of = Counter[int](), Counter[int]()
    dtypes: Pair[dict[int, str]] = Pair({}, {})
    for side, tree in enumerate(comparison.trees):
        for one in tree.work:
            ns_of[side][one.node] += one.ns
            if dtype := _dtype_of_kernel(one.name) if one.category == KERNEL else "":
                dtypes[side][one.node] = dtype if dtypes[side].get(one.node, dtype) == dtype else ""
    changed: dict[str, Counter[str]] = defaultdict(Counter)
    paired = 0
    for a, b in comparison.pairing.test_of.items():
        x, y = comparison.trees[0].calls[a], comparison.trees[1].calls[b]
        time = ns_of[0][a] + ns_of[1][b]
        if x.kind != "op" or not time or x.shapes != y.shapes:
            continue
        paired += time
        kernels = dtypes[0].get(a, ""), dtypes[1].get(b, "")
        if input_change := changed_input(x, y):
            code, values = input_change
            changed[code][values] += time
        elif all(kernels) and kernels[0] != kernels[1]:
            changed["dtype"][ARROW.join(kernels)] += time
    inputs: OtherInputs = {}
    for code, kinds in changed.items():
        before, _, after = kinds.most_common(1)[0][0].partition(ARROW)
        if kinds.total() >= thresholds.OTHER_INPUTS * sum(comparison.work.time):
            inputs[code] = before, after, kinds.total() / paired
    return inputs


LAYOUTS = CONTIGUOUS, CHANNELS_LAST = "contiguous", "channels_last"
"""What PyTorch calls orders of dimensions."""
SLICE = "slice of a larger tensor"
"""What is in the order of its dimensions, and has gaps."""


def _layout(strides: list[int], sizes: list[int]) -> str:
    """The name of the order in which a tensor of these ``sizes`` lies in memory, or its ``strides``."""
    if len(strides) >= 4 and strides[1] == 1:
        return CHANNELS_LAST
    if strides[-1:] != [1] or strides != sorted(strides, reverse=True):
        return json.dumps(strides)
    both = enumerate(zip(sizes, strides, strict=False))
    has_gaps = any(size != 1 and step != prod(sizes[i + 1 :]) for i, (size, step) in both)
    return SLICE if has_gaps else CONTIGUOUS


def _memory(work: NodeWork) -> CauseReason | None:
    """As many bytes copied from or to another kind of memory, where both sides record it."""
    sizes = [sum(item.size for item in side) for side in work.items]
    if not (isclose(*sizes, rel_tol=thresholds.SAME_RATIO) if all(sizes) else work.as_much):
        return None
    kinds: list[Counter[tuple[str, str]]] = [Counter(), Counter()]
    for group in work.groups:
        for side, members in enumerate(group.members):
            for member in members:
                if member.category == MEMCPY and (match := MEMORY_KIND.search(member.name)):
                    kinds[side][match["source"], match["target"]] += member.ns
    if not all(kinds):
        return None
    before, after = (side.most_common(1)[0][0] for side in kinds)
    if before == after or any("Host" in name for name in (*before, *after)):
        return None
    rates = [size / max(sum(item.ns for item in side), 1) for size, side in zip(sizes, work.items, strict=True)]
    gbps = f", {ARROW.join(map(number_text, rates))} GB/s" if all(rates) else ""  # bytes per ns
    (source, target), (source_after, target_after) = before, after
    if target == target_after:
        return CauseReason("memory", f"from {source.lower()} → {source_after.lower()} memory{gbps}")
    if source == source_after:
        return CauseReason("memory", f"to {target.lower()} → {target_after.lower()} memory{gbps}")
    return CauseReason("memory", f"memory: {ARROW.join(before)} on control, {ARROW.join(after)} on test{gbps}")


def _counts(work: NodeWork) -> CauseReason | None:
    """Work that is done more or less often, and takes longer or shorter, as that would have it."""
    if work.part(g for g in work.groups if g.level == "fusion") >= thresholds.MOSTLY:
        return None
    has_calls = all(g.ops for g in work.groups)
    members = [[m for g in work.groups for m in g.members[side]] for side in (0, 1)]
    has_kernels = all(any(m.category == KERNEL for m in side) for side in members)  # which copies and memsets belong to
    events = Pair(*(sum(m.count for m in side if not has_kernels or m.category == KERNEL) for side in members))
    both = total(g.counts for g in work.groups) if has_calls else events
    number = both.map(lambda n: n / work.trees.control.denominator)
    if not all(number) or number.delta * total(g.time for g in work.groups).delta <= 0:
        return None
    noun = "calls" if has_calls else "kernels" if has_kernels else _noun(work.groups)
    return CauseReason("count", counts_of(*number, noun))


def _phase(work: NodeWork) -> CauseReason | None:
    """The phase of all that only one side does, where both sides do the same work in other phases: as checkpoints have
    the forward pass computed again in the backward pass.
    """
    one_sided = [group for group in work.groups if not all(group.members)]
    phases = {m.phase for g in one_sided for m in chain(*g.members)}
    others = {m.phase for g in (*work.groups, *work.others) if all(g.members) for m in chain(*g.members)}
    sides = {bool(group.members.test) for group in one_sided}
    if len(phases) != 1 or len(sides) != 1 or not others or not phases <= PLACES.keys() - others:
        return None
    (phase,) = phases
    return CauseReason("phase", f"{'added in' if True in sides else 'removed from'} {PLACES[phase]}")


def _line(work: NodeWork) -> CauseReason | None:
    """The line of code outside of torch that most of the time runs for that a side has beside the other's; else of one
    side's work the operator that calls it.
    """
    by_line = [Counter[str](), Counter[str]()]
    for ns_of, items in zip(by_line, work.items, strict=True):
        for item in items:
            ns_of[item.line or UNPLACED] += item.ns
    less, more = sorted(by_line, key=Counter.total)
    return main_line(more - less) or _caller(work)


def _caller(work: NodeWork) -> CauseReason | None:
    """The outermost operator below which one side alone does most of it, where no line is known: what the program calls
    for it.
    """
    sides = work.items
    if all(sides):
        return None
    tree = work.trees[int(bool(sides[1]))]
    ns_of = Counter[str]()
    for item in chain(*sides):
        outer = _outermost(tree, item.node)
        function = outer.rpartition("Backward")[0] or outer  # of autograd
        is_own = _letters(function) in _letters(tree.op(item.node) or "")
        ns_of[UNPLACED if is_own else outer] += item.ns
    name, ns = max(ns_of.items(), key=lambda both: both[1])
    return CauseReason("caller", f"called by {name}") if name and ns >= thresholds.MOSTLY * ns_of.total() else None


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def _outermost(tree: CallTree, node: int) -> str:
    """The name of the outermost operator at or around ``node``; empty for none."""
    name = UNPLACED
    while node >= 0:
        call = tree.calls[node]
        name, node = call.display_name if call.kind == "op" else name, call.parent
    return name


def main_line(by_line: Counter[str]) -> CauseReason | None:
    """The line of code that has most of the time of all lines, those without one among them."""
    whole, time_of_line = by_line.total(), [(ns, line) for line, ns in by_line.items() if line]
    if not time_of_line or max(time_of_line)[0] < thresholds.MOSTLY * whole:
        return None
    ns, line = max(time_of_line)
    return CauseReason("line", f"{'' if ns == whole else 'mostly '}in {line}")


def _noun(groups: Sequence[Group]) -> str:
    """What is counted of ``groups``."""
    categories = {member.category for group in groups for side in group.members for member in side}
    return "kernels" if categories == {KERNEL} else "events" if categories & {*DEVICE_CATEGORIES} else "operators"


RULES: tuple[Callable[[NodeWork], CauseReason | None], ...] = (
    _no_operator,
    _fusion,
    _inputs,
    _memory,
    _tensor_cores,
    _kernels,
    _counts,
    _phase,
    _line,
)
