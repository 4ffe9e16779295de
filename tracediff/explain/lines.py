"""Lines: the nodes that explain the change in few words, in the order of what they account for, and what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log

import numpy as np

from tracediff import thresholds
from tracediff.arrays import Floats
from tracediff.explain.leaves import (
    ANNOTATION,
    CALLS,
    CODE,
    COMPILED_CODE,
    COMPILING,
    COPIED,
    GPU,
    HOST,
    HOST_CALLS,
    LONG,
    MIXED,
    NOT_RECORDED,
    ONE,
    OPERATORS,
    OTHER_CALLERS,
    OTHER_CALLS,
    PYTHON,
    QUEUE,
    SHAPES,
    SHARED_CALLS,
    SINGLES,
    STRETCH,
    WAITING,
    Leaves,
)
from tracediff.explain.tree import REPLACED, ROOT, SINGLE, Node, is_near_one
from tracediff.formatting import ARROW, count, counts_of, multiple, percent, plural, times
from tracediff.profile.kernels.families import AUTOGRAD_NODE, COMMUNICATION, OTHER
from tracediff.profile.placement.scopes import BACKWARD_OP
from tracediff.runtimes import is_communication, is_host_collective
from tracediff.structs import FrozenStruct


class Amount(FrozenStruct):
    """How much more work the test side does."""

    ratio: float
    """test / control"""
    unit: str
    """FLOPs, elements, threads, GEMM tiles, bytes, calls or events"""
    known_part: float
    """part of the time whose amount is known, 0 to 1"""


OTHERS = "others"
"""The parts of what is split into lines that are none, as one."""
IN_OTHERS = {
    HOST: "other host time",
    SHARED_CALLS: "the same calls of other operators on the host",
    OTHER_CALLS: "calls of other operators on the host",
}
"""What others are called where "other" and the name of the whole would say something else."""
ALWAYS_SPLIT = (ROOT, HOST, SINGLES, MIXED, OTHER_CALLERS)


class Line(FrozenStruct):
    """One line: a node, and the labels around it."""

    trail: tuple[str, ...]
    node: Node

    @property
    def chain(self) -> tuple[str, ...]:
        """All its labels."""
        return (*self.trail, self.node.label)


class Lines(FrozenStruct):
    """What a tree is cut into: all of the step, each part once.

    Attributes:
        shown: what is large enough, and one thing. others: the rest. scale: what their size is judged against, ns.
    """

    shown: tuple[Line, ...]
    others: tuple[Line, ...]
    scale: float


def lines_of(root: Node) -> Lines:
    """The lines of a tree."""
    scale = round(scale_of(root), 3)  # of ns
    cut = _cut(root, scale, ()) if root.children else []
    lines: list[Line] = []
    others: list[Line] = []
    for line in cut:
        (lines if _is_a_line(line, scale) else others).append(line)
    return Lines(tuple(lines), tuple(others), scale)


def scale_of(root: Node) -> float:
    """What the size of a line is judged against: the step's change, or a part of all movement where changes cancel; so
    that what is no difference of the step is no line.
    """
    movement = thresholds.LEAST_SCALE * sum(abs(child.work) for child in root.children.values())
    return max(abs(root.change), movement, thresholds.NO_DIFFERENCE / thresholds.WORTH_A_LINE * float(root.path.max()))


def _cut(node: Node, scale: float, trail: tuple[str, ...]) -> list[Line]:
    """The lines of a node: its own, or those of its children where these say more."""
    children = list(node.children.values())
    is_one = node.note == REPLACED or trail[-1:] in ((MIXED,), (OTHER_CALLERS,))
    if not children or is_one or isinstance(next(iter(node.children)), int):
        return [Line(trail, node)]
    inner = (*trail, node.label) if node.depth else trail
    if len(trail) == 2 and trail[0] in (GPU, OPERATORS) and "::" in node.label:  # an operator: its reasons name kernels
        call = _main_call(children)
        if call is None or not _is_worth_a_line(call, scale):
            return [Line(trail, node)]
        return [Line(inner, call), *_others(node, [call], inner)]
    if len(children) == 1:
        return _cut(children[0], scale, inner)
    large = _of_one_way(node) if node.label in HOST_CALLS else children
    counting = [child for child in large if child.depth == 1 or _is_worth_a_line(child, scale)]
    if not counting or (
        node.label not in ALWAYS_SPLIT
        and node.agrees
        and _is_worth_a_line(node, scale)
        and _stands_for(node, counting, trail)
    ):
        return [Line(trail, node)]
    return [*(line for child in counting for line in _cut(child, scale, inner)), *_others(node, counting, inner)]


def _of_one_way(node: Node) -> list[Node]:
    """The operators that take longer, if one of them is most of that, and those that take less time likewise, however
    much cancels, but for the way of less change where all change alike: their calls are too many, and too short.
    """
    out: list[Node] = []
    ways = ([child for child in node.children.values() if sign * child.work > 0] for sign in (1, -1))
    for moved in sorted(ways, key=lambda some: -max((abs(child.work) for child in some), default=0)):
        largest = max(moved, key=lambda child: abs(child.work), default=node)
        is_of_one = abs(largest.work) >= thresholds.MAIN_PART * sum(abs(child.work) for child in moved)
        is_alike = bool(out) and len(moved) > 1 and _is_uniform(moved)
        out += moved if is_of_one and not is_alike and largest.label != node.label else []
    return out


def _is_uniform(nodes: Iterable[Node]) -> bool:
    """Whether all change by the same part of their time, but for a small part of what they change by."""
    sizes = [(node.work, float(node.total.sum())) for node in nodes]
    part = sum(work for work, _ in sizes) / sum(ns for _, ns in sizes)
    off = sum(abs(work - part * ns) for work, ns in sizes)
    return off <= thresholds.UNIFORM * sum(abs(work) for work, _ in sizes)


def _others(node: Node, lines: Sequence[Node], trail: tuple[str, ...]) -> list[Line]:
    """The children of ``node`` beside those that are ``lines``, as one."""
    parts = {step: child for step, child in node.children.items() if child not in lines}
    others = Node(OTHERS, node.depth + 1, parts)
    for child in parts.values():
        others.take(child)
    return [Line(trail, others)] if parts else []


def _is_a_line(line: Line, scale: float) -> bool:
    """Whether it is large enough, and one thing, not several single events."""
    is_mixed = line.node.label == OTHERS and line.trail[-1] == SINGLES
    return not is_mixed and line.node.agrees and _is_worth_a_line(line.node, scale)


def _main_call(children: Sequence[Node]) -> Node | None:
    """Of several calls of one operator, the one whose shapes say which of them is most of the change."""
    largest = max(children, key=lambda child: abs(child.work))
    movement = sum(abs(child.work) for child in children)
    is_main = len(children) > 1 and SHAPES in largest.label and abs(largest.work) >= thresholds.MAIN_PART * movement
    return largest if is_main else None


def _is_worth_a_line(node: Node, scale: float) -> bool:
    return abs(node.work) >= thresholds.WORTH_A_LINE * scale


def _stands_for(node: Node, counting: list[Node], trail: tuple[str, ...]) -> bool:
    """Whether one line for ``node`` says as much as lines for its children."""
    if node.depth == 1 and node.label in (GPU, OPERATORS):
        return False
    children = node.children.values()
    movement = sum(abs(child.work) for child in children)
    effect, share = node.main_effect
    largest = max(children, key=lambda child: abs(child.work))
    is_of_one = abs(largest.work) >= thresholds.MAIN_PART * movement and largest.label != node.label
    more_or_less = effect == "amount" or (effect == "presence" and len(trail) == 2 and not is_of_one)
    if more_or_less and share >= thresholds.MAIN_PART and movement <= thresholds.CANCELLING * abs(node.work):
        if not is_of_one:
            return True
        # a small part that grew is what changed, or one beside as much work as before; another is called as the whole
        others = [child for child in children if child is not largest]
        is_large = float(largest.total.sum()) >= thresholds.MOSTLY * float(node.total.sum())
        return is_large and _part_of(("speed",), others) < thresholds.MOSTLY
    if node.label in HOST_CALLS:
        return False
    if PYTHON in (*trail, node.label):  # where a function with another name is another part
        return not is_of_one
    if not node.is_of_both:  # one side has none of it
        return True
    if len(counting) > 1 and (effect == "speed" or not is_of_one) and _is_uniform(children):
        return True  # else the name of the one says more
    return not is_of_one and abs(largest.work) < thresholds.LARGEST_CHILD * movement


RESIZED = "amount", "presence"
"""Effects of work of which there is more, or less."""


def _part_of(effects: Collection[str], nodes: Sequence[Node]) -> float:
    """The part of the time of ``nodes`` that is of work with one of these ``effects``."""
    inner = (leaf for node in nodes for leaf in node.walk() if not leaf.children)
    times = (float(leaf.total.sum()) for leaf in inner if leaf.main_effect[0] in effects)
    return sum(times) / max(sum(float(node.total.sum()) for node in nodes), 1)


def waits_for_ranks(chain: tuple[str, ...]) -> bool:
    """Whether what has these labels is communication, in which ranks wait for one another."""
    return COMMUNICATION in chain or is_communication(chain[-1]) or is_host_collective(chain[-1])


def label_of(line: Line) -> str:
    """What changed, in words that need no context."""
    trail, label = line.trail, line.node.label
    is_of_several = trail[-1:] in ((GPU,), (OPERATORS,)) if label == OTHERS else len(trail) == 1 and label == OTHER
    if is_of_several and line.node.children:
        return _of_largest(line)
    if label == OTHERS:
        whole = label_of(Line(trail[:-1], Node(trail[-1], len(trail))))
        return IN_OTHERS.get(trail[-1], f"other {whole.removeprefix('other ')}")
    if SINGLES in trail:
        number = float(line.node.count.max())
        has_several = label.startswith(ONE) and not label.startswith(LONG) and label != STRETCH and number > 1
        return f"{count(number)} calls of {label.removeprefix(ONE)}" if has_several else label
    if not trail:
        return "host time" if label == HOST else label
    if trail[0] in (GPU, OPERATORS, MIXED):
        return _work_label(trail, label)
    if len(trail) == 1:
        if label in HOST_CALLS:
            return f"{_one_sided(line.node) or label} on the host"
        return {
            NOT_RECORDED: "host code that was not recorded",
            COMPILED_CODE: "compiled code on the host",
            CALLS: "calls of the driver",
            PYTHON: CODE,
        }.get(label, label)
    if trail[1] == PYTHON:
        if label.endswith(ANNOTATION):
            return f"host code in {label}"
        return CODE if label == NOT_RECORDED else label if " in " in label else f"Python in {label}"
    if line.node.note == REPLACED and trail[-1] == OTHER_CALLS:
        return label_of(Line(trail[:-1], Node(OTHER_CALLS, len(trail))))
    if trail[1] in HOST_CALLS:
        has_place = len(trail) > 2 and trail[2] not in label
        where = f"{label} in {trail[2]} on the host" if has_place else f"{label} on the host"
        is_inside = bool(line.node.children) and label not in line.node.children
        return f"calls {'in' if is_inside else 'of'} {where}" if trail[1] == OTHER_CALLS else where
    return f"{trail[1]}: {label}" if trail[1] in (COMPILING, COMPILED_CODE, QUEUE, WAITING) else label


def _of_largest(line: Line) -> str:
    """``norm + 2 more families of kernels``, ``aten::view + 28 more operators``: of several families, or of work that
    is of none, what changed most.
    """
    node, trail, noun = line.node, line.trail, "kernels" if line.trail[0] == GPU else "operators"
    if node.label == OTHER:
        trail = line.chain
    elif len(node.children) > 1:
        noun = f"families of {noun}"
    largest = max(
        node.children.values(),
        key=lambda child: (child.label not in (OTHER, OTHER_CALLERS), abs(child.work), child.label),
    )
    if len(node.children) == 1:
        return label_of(Line(trail, largest))
    return f"{largest.label} + {len(node.children) - 1} more {noun}"


def _one_sided(node: Node) -> str:
    """``added operator calls``: other calls that one side alone makes; empty of any others."""
    if node.label != OTHER_CALLS or node.is_of_both or not node.total.any():
        return ""
    return f"{'added' if node.total[1] else 'removed'} operator calls"


def _work_label(trail: tuple[str, ...], label: str) -> str:
    """Of GPU work, or of operators: trails are first label, family, operator or module, call and kernels."""
    noun = "kernels" if trail[0] == GPU else "operators"
    if len(trail) == 1:
        return label if label == OTHER_CALLERS else f"{label} {noun}"
    if trail[1] == OTHER_CALLERS:
        return label
    if len(trail) == 2:
        if "::" in label:  # an operator
            says_all = ARROW in label or COPIED in label
            return label if says_all else f"{label} {noun}" if trail[1] == OTHER else f"{label} ({trail[1]})"
        return f"{trail[1]} {noun}" + ("" if label == "kernels" else f" in {label}")
    if AUTOGRAD_NODE.match(label.split("(")[0]):  # which is no work of the operators that it calls
        return f"{label} itself"
    if "::" not in trail[2]:  # kernels without one, whose names may have namespaces
        return f"{trail[1]}: {label}"
    if "::" in label.split("(")[0]:
        return label
    return f"{trail[1]}: {label}" if ARROW in label else f"{trail[2]} {label}"


def what_happened(line: Line, amount: Amount | None, calls: Floats, *, is_recorded: bool, is_stated: bool) -> str:
    """What of its amount or time changed, in a few words; empty where its time says all. ``calls``: how often it is
    called. ``is_recorded``: whether a side that has none of it would have it recorded. ``is_stated``: whether a
    fact says how much more work it is.
    """
    node = line.node
    is_event = node.note == SINGLE and (node.is_of_both or line.trail[0] == HOST)
    if is_event or _one_sided(node):  # as its label says
        return ""
    if OTHER_CALLS in line.chain and node.is_of_both:  # a reason names them
        return ""
    if node.note == REPLACED or (OTHER_CALLERS in line.trail and ARROW in node.label and node.is_of_both):
        return "replaced"
    if not node.is_of_both:
        if node.count.all() or QUEUE in line.chain:  # who waits on one side only does no other work
            return ""
        return _added_or_removed(node) if is_recorded else "not recorded on the other side"
    if MIXED in line.trail:  # events of a GPU against operators
        return UNKNOWN
    return _more_or_less(line) or _of_amount(line, amount, calls, is_stated=is_stated)


def _added_or_removed(node: Node) -> str:
    return "added" if node.longer_side else "removed"


def _more_or_less(line: Line) -> str:
    """What happened if most of the change is work of one side, as its calls say, too; else empty."""
    node, (effect, share) = line.node, line.node.main_effect
    more, longer = node.count[1] - node.count[0], node.total[1] / node.total[0]
    if effect != "presence" or share < thresholds.MAIN_PART or more * (longer - 1) <= 0:
        return ""
    if node.count.all() and abs(log(node.count[1] / node.count[0])) < thresholds.MOSTLY * abs(log(longer)):
        return f"mostly {_added_or_removed(node)} ones"  # what is only there is larger than the rest
    if len(line.trail) < 2 or PYTHON in line.trail:  # of several operators, or in several stretches of code
        return f"{'more' if longer > 1 else 'less'} {'code' if PYTHON in line.trail else 'of it'}"
    return DONE_OFTEN[int(longer < 1)]


def _of_amount(line: Line, amount: Amount | None, calls: Floats, *, is_stated: bool) -> str:
    """What happened to work that both sides do, by its ``amount``."""
    node, longer = line.node, line.node.total[1] / line.node.total[0]
    is_same = amount is not None and is_near_one(amount.ratio)
    unknown = UNKNOWN if line.trail else ""  # what is known of all work is a fact
    if is_stated:
        return multiple(longer, "time")
    if amount is None and ARROW in node.label and "::" in node.label:
        return "replaced"
    if amount is None or node.main_effect[0] == "time" or (amount.unit == "events" and is_same):
        return unknown if line.chain[0] != HOST else ""
    more = log(amount.ratio) if longer > 1 else -log(amount.ratio)
    is_counted = amount.unit == "events"  # whose times may differ
    is_vague = is_counted or amount.known_part < thresholds.KNOWN_AMOUNT
    if is_vague and (abs(more) if is_counted else more) < thresholds.MOSTLY * abs(log(longer)):  # tells no time
        return unknown
    if is_counted:  # of which a reason has the number
        return f"{DONE_OFTEN[int(amount.ratio < 1)]}{_but(amount.ratio - 1, longer)}"
    if amount.unit == "calls":
        return "" if node.label == OTHERS else _of_calls(calls, longer, is_same=is_same)  # of several kinds
    how_much = f"as many {amount.unit}" if is_same else multiple(amount.ratio, amount.unit)
    if amount.known_part < thresholds.KNOWN_AMOUNT:  # which the time of all does not compare with
        return f"{how_much} where known ({percent(amount.known_part)})"
    if is_near_one(longer if is_same else amount.ratio / longer):
        return how_much
    strides = ", if stride= is the same" if CONV in line.chain else ""  # which the trace does not give
    in_time = f" in {multiple(longer, 'time')}"
    return f"{how_much}{pace(longer, in_time) if is_same else in_time}{strides}"


def _of_calls(calls: Floats, longer: float, *, is_same: bool) -> str:
    """What happened to ``calls`` that take ``longer`` times as long; of many operators, whether the mean ratio
    ``is_same`` does not tell their number.
    """
    control, test = map(float, calls)
    number = f"{plural(test, 'call')} each" if control == test else counts_of(control, test, "calls")
    if is_same and control and test and is_near_one(test / control):
        return number if is_near_one(longer) else f"{number}{pace(longer, f', {times(longer)} × as long')}"
    return f"{number}{_but(test - control, longer)}"


def one_part(node: Node, leaves: Leaves) -> str:
    """Of equal calls on the host, ``mostly cudaLaunchKernel, 1.68 × as long``: the calls of the driver, or those of the
    backward pass, if they are most of the change and all else takes as long; else empty.
    """
    mine = np.array(node.leaves, np.int64)
    chains, total = [leaves.chains[leaf] for leaf in mine.tolist()], leaves.total[:, mine]
    driver = [
        str(c[-1]).split(" in ")[0] if leaves.kinds[k] == "call" else "" for k, c in zip(mine, chains, strict=True)
    ]
    phases = ["in the backward pass" if BACKWARD_OP.search(str(c[2])) else "" for c in chains]
    for names in map(np.array, (driver, phases)):
        for name in filter(None, dict.fromkeys(names.tolist())):
            (control, test), others = total[:, names == name].sum(axis=1), total[:, names != name].sum(axis=1)
            is_most = (test - control) * node.change >= thresholds.MOSTLY * (total.sum(axis=1) @ (-1, 1)) ** 2
            if is_most and control and others.all() and is_near_one(others[1] / others[0]):
                return f"{MOSTLY_IN}{name}{pace(test / control, f', {times(test / control)} × as long')}"
    return ""


def _but(more: float, longer: float) -> str:
    """What ``more`` or fewer of it do not say, which take ``longer`` times as long."""
    return f", but {'longer' if longer > 1 else 'shorter'} ones" if more * (longer - 1) < 0 else ""


def pace(longer: float, slower: str) -> str:
    """How as much work takes ``longer`` times as long: ``slower``, or how many times as fast it is."""
    return slower if longer > 1 else f", {times(1 / longer)} × as fast"


DONE_OFTEN = "done more often", "done less often"
UNKNOWN, MOSTLY_IN = "amount of work unknown", "mostly "
CONV = "conv"
"""The family of convolutions."""
