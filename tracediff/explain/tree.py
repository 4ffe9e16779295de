"""The tree: what the leaves' changes add up to, node by node. The change of a leaf is split into presence, amount,
speed, time and exposure: exact, and of opposite sign for swapped sides. Leaves far below what any line shows are added
up first, so that a million cost little; those that one event dominates are put aside before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import log

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracediff import bounds, thresholds
from tracediff.aggregate.leaves import Longest, SetLeaves
from tracediff.arrays import Floats, Int64, combined
from tracediff.explain.leaves import (
    HOST,
    LONG,
    NOT_RECORDED,
    ONE,
    OTHER_CALLERS,
    PYTHON,
    QUEUE,
    SINGLES,
    STRETCH,
    STRETCHES,
    Chain,
    Leaves,
    Single,
    Step,
)
from tracediff.formatting import ARROW, with_more
from tracediff.profile.kernels.display_names import display_name
from tracediff.structs import Pair

LAUNCHED = ("threads", "GEMM tiles")
"""Units that do not determine how long a thread runs (K of a product, keys of attention)."""
EFFECTS = "presence", "amount", "speed", "time", "exposure"
"""What a change in the step is made of: work of one side only; more or less work; time per unit of work; longer or
shorter where the amount is not known; the same work, now on the path or off it.
"""


def split(
    path: Floats, total: Floats, ratio: Floats, unit: NDArray[np.object_], reached: Floats, period: Floats
) -> Floats:
    """float64[l, 4] ns per step: what the change of the time of each leaf, see `Leaves`, is made of, in the order of
    EFFECTS but for the last, of steps of ``period`` ns.

    Where time off the path is unknown, ``reached`` is the logarithm of how many times as many instances are on the
    path, and it is the change on the path that is not exposure; elsewhere NaN.
    """
    change = path[1] - path[0]
    only_path = ~np.isnan(reached)
    finite = np.where(np.isfinite(reached), reached, 0.0)
    moved = np.where(np.isinf(reached), change, logarithmic_mean(path[0], path[1]) * finite)
    moved = np.clip(moved, -period[1], period[0])  # what a side does off its path lasts no longer than its period
    work = np.where(only_path, change - moved, total[1] - total[0])
    has_ratio = ratio > 0
    ratio = np.where(has_ratio, ratio, 1.0)
    log_ratio = np.log(ratio)
    one_sided = ~total.all(axis=0) & ~only_path
    amount = np.where(has_ratio & ~one_sided, logarithmic_mean(total[0], total[1]) * log_ratio, 0.0)
    launched = np.isin(unit, LAUNCHED) & (np.abs(log_ratio) > thresholds.SAME_RATIO)
    vague = ~has_ratio | launched | (unit == "events")
    rest = np.where(one_sided, 0.0, work - amount)
    presence = np.where(one_sided, work, 0.0)
    return np.stack([presence, amount, np.where(vague, 0.0, rest), np.where(vague, rest, 0.0)], axis=1)


def is_near_one(ratio: float) -> bool:
    """Whether two amounts, or two rates, of this ratio are the same."""
    return abs(log(ratio)) <= thresholds.SAME_RATIO


def common(a: float, b: float) -> float:
    """What two changes share: the smaller one, if they have one direction, or else nothing."""
    return min(a, b, key=abs) if a * b > 0 else 0.0


def logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(b − a) / ln(b / a), and a where they are equal; 0 where one is 0."""
    a, b = np.broadcast_arrays(a, b)
    positive = (a > 0) & (b > 0)
    equal = np.abs(a - b) < 1e-9 * np.maximum(a, b)
    apart = positive & ~equal
    ratio = np.divide(b, a, out=np.full(a.shape, np.e), where=apart)
    out = np.divide(b - a, np.log(ratio), out=np.zeros(a.shape), where=apart)
    return np.where(positive & equal, a, out)


def added_up(chains: Sequence[Chain], path: Floats, total: Floats, work: Floats) -> list[Int64]:
    """The leaves, each alone or with others that the tree need not separate: small ones of one parent with work on
    the same sides, whose work and times change in the same direction. What is together changes by a tenth of what a
    line needs at most, so sums over a parent's children, without regard to sign or not, stay as they are.

    Args:
        chains: of each leaf. path, total: float64[2, l] ns per step. work: float64[l] ns, see `Effects`.
    """
    count = len(chains)
    if count <= bounds.LEAVES_APART:
        return list(np.arange(count)[:, None])
    scale = abs(float(path[1].sum() - path[0].sum()))
    has = total > 0
    change = np.maximum(np.abs(work), np.abs(path[1] - path[0]))
    change = np.where(has.all(axis=0), change, np.maximum(change, total.max(axis=0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = change / (thresholds.WORTH_A_LINE / 10 * scale)  # a line needs ten times as much
    is_large = size >= 1  # where nothing changes, not even the step, the size is not a number
    small, large = np.flatnonzero(~is_large), np.flatnonzero(is_large)
    parents: dict[Chain, int] = {}
    parent = np.array([parents.setdefault(chains[i][:-1], len(parents)) for i in small.tolist()], np.int64)
    sides = has[:, small].astype(np.int64)
    longer = (total[1] > total[0])[small].astype(np.int64)
    kind, _ = combined(parent, sides[0], sides[1], longer, np.sign(work[small]).astype(np.int64))
    order = np.argsort(kind, kind="stable")
    passed = np.cumsum(np.nan_to_num(size[small[order]]))
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    since = np.repeat(passed[first], np.diff(first, append=len(order)))
    part = np.floor(passed - since).astype(np.int64)
    borders = np.flatnonzero((np.diff(kind[order]) != 0) | (np.diff(part) != 0)) + 1
    pieces = np.split(small[order], borders) if len(small) else []
    together = [*large[:, None], *pieces]
    return sorted(together, key=lambda leaves: int(leaves[0]))  # as the leaves were


ROOT = "step"
REPLACED, SINGLE = "replaced", "a single event"


class Node(Struct, eq=False):
    """A part of the step; all that is below it adds up to it. Times in ns per step.

    Attributes:
        label: what it is. depth: 0 of the step.
        children: by label, or by the index of their group of work. leaves: indices of the leaves below it.
        path, total, count: float64[2] of control and test, see `Leaves`.
        parts: float64[4] of the change of its time, see `split`.
        note: REPLACED where what one side has replaced what the other has, SINGLE for a single event.
    """

    label: str
    depth: int
    children: dict[Step, Node] = field(default_factory=dict)
    leaves: list[int] = field(default_factory=list)
    path: Floats = field(default_factory=lambda: np.zeros(2))
    total: Floats = field(default_factory=lambda: np.zeros(2))
    count: Floats = field(default_factory=lambda: np.zeros(2))
    parts: Floats = field(default_factory=lambda: np.zeros(len(EFFECTS) - 1))
    note: str = ""

    @property
    def change(self) -> float:
        """Of the time on the path: what of the step's change it accounts for."""
        return float(self.path[1] - self.path[0])

    @property
    def work(self) -> float:
        """The part of the change that is other work, or as much work in another time: what its time on the path changes
        as far as it does in all.
        """
        return common(self.change, float(self.parts.sum()))

    @property
    def exposure(self) -> float:
        """The part of the change that is the same work on or off the path."""
        return self.change - self.work

    @property
    def effects(self) -> dict[str, float]:
        """Effect → ns per step; together the change on the path."""
        whole = float(self.parts.sum())
        sizes = self.parts * (self.work / whole if whole else 0.0)
        return dict(zip(EFFECTS, (*sizes.tolist(), self.exposure), strict=True))

    @property
    def is_of_both(self) -> bool:
        """Whether both sides have any of it."""
        return bool(self.total.all())

    @property
    def longer_side(self) -> int:
        """0 if control takes longer, or as long, 1 if test does."""
        return int(self.total[1] > self.total[0])

    @property
    def agrees(self) -> bool:
        """Whether its own time changed in the direction of what it accounts for; its parts may differ in how much of
        them the step waits for. What is less than the resolution of traces, 1 ns, is not a change.
        """
        changed = float(self.total[1] - self.total[0])
        return min(abs(self.work), abs(changed)) >= 1 and self.work * changed > 0

    @property
    def main_effect(self) -> tuple[str, float]:
        """(the largest effect but exposure, its part of all)."""
        sizes = np.abs(self.parts)
        largest = int(np.argmax(sizes))
        return EFFECTS[largest], float(sizes[largest] / sizes.sum()) if sizes.sum() else 0.0

    def take(self, other: Node) -> None:
        """Add what ``other`` is."""
        self.leaves += other.leaves
        self.path, self.total, self.count = self.path + other.path, self.total + other.total, self.count + other.count
        self.parts = self.parts + other.parts

    def walk(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()


NEVER = ("loading", "compiling", "queue", "unknown", "start")
"""Kinds of leaves that are not events."""


def name_singles(leaves: Leaves, sides: Pair[SetLeaves]) -> None:
    """Put the leaves that one event dominates aside, if the event is worth a line: its time is not a rate of the leaf,
    and its parent's other leaves did not change like it. ``sides`` are what ``leaves`` were paired from.
    """
    for side, own in enumerate(sides):
        for leaf, single in _dominant(leaves, side, own).items():
            single_leaf = leaves.single.get(leaf)
            if single_leaf is None or single.longest.ns > single_leaf.longest.ns:
                leaves.single[leaf] = single
    for leaf, single in leaves.single.items():
        leaves.chains[leaf] = _chain(leaves, leaf, single)


def _by_name(leaves: SetLeaves) -> dict[tuple[str, str], tuple[float, float]]:
    """(kind, name) → (ns, instances) per step."""
    out: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    means = (values.mean(axis=0).tolist() for values in (leaves.total, leaves.count))
    for key, ns, count in zip(leaves.keys, *means, strict=True):
        ns_before, count_before = out[key.kind, key.name]
        out[key.kind, key.name] = ns_before + ns, count_before + count
    return out


def _dominant(leaves: Leaves, side: int, own: SetLeaves) -> dict[int, Single]:
    """Leaf → the longest event of all runs, where that of every run dominates it; ``own``: the leaves of a side."""
    names = _by_name(own)
    least = thresholds.WORTH_A_LINE * abs(float(leaves.step_ns @ (-1, 1)))
    steps = leaves.steps[side]
    runs, every = len(steps), sum(steps)
    of_leaf: dict[int, dict[int, Longest]] = defaultdict(dict)
    for (run, leaf), longest in leaves.longest[side].items():
        of_leaf[leaf][run] = longest
    out = {}
    for leaf, by_run in of_leaf.items():
        kind = leaves.kinds[leaf]
        is_call = kind == "op" and leaves.groups[leaf] >= 0
        counts = leaves.count[:, leaf]
        if kind in NEVER or (is_call and counts.all() and counts[0] != counts[1]):
            continue
        if leaves.total[side, leaf] < leaves.total[1 - side, leaf]:  # it explains nothing
            continue
        ns = sum(longest.ns / steps[run] for run, longest in by_run.items()) / runs
        of_leaf_ns = max(leaves.path[side, leaf], abs(leaves.path[1, leaf] - leaves.path[0, leaf]))
        if ns < least or ns < thresholds.MOSTLY * of_leaf_ns:
            continue
        if kind == "gpu" and _changed_alike(leaves, leaf):  # asked of few, as it looks at all leaves
            continue
        longest, path_ns = max(by_run.values(), key=lambda event: event.ns), float(leaves.path[side, leaf])
        if kind in STRETCHES and longest.ns < thresholds.MOSTLY * path_ns * every:  # which have many pieces each
            continue
        name_ns, count = names[kind, longest.name]
        if kind == "python" or is_call:  # others of its name are other code, or have other shapes
            name_ns, count = path_ns, float(leaves.count[side, leaf])
        others, others_ns = count * every - 1, name_ns * every - longest.ns
        if others + 1 >= thresholds.EXCEPTION_OF and longest.ns >= thresholds.EXCEPTIONAL * others_ns / max(others, 1):
            like_it = [one for one in by_run.values() if one.ns >= thresholds.MOSTLY * longest.ns]
            out[leaf] = Single(side, longest, len(like_it) == runs, others, others_ns, leaves.chains[leaf])
    return out


def _changed_alike(leaves: Leaves, leaf: int) -> bool:
    """Whether GPU work of both sides changed like all other work of its operator."""
    operator = leaves.chains[leaf][:3]
    others = [i for i, chain in enumerate(leaves.chains) if chain[:3] == operator and i != leaf]
    own, (before, after) = leaves.total[:, leaf], leaves.total[:, others].sum(axis=1)
    if not (own.all() and before and after):
        return False
    change, expected = own[1] - own[0], own[0] * (after / before - 1)
    return bool(abs(change - expected) <= thresholds.UNIFORM * abs(change))


def _chain(leaves: Leaves, leaf: int, single: Single) -> Chain:
    """Its own label is that of the leaf; a GPU event's is its kernel, as each group of work has few."""
    chain = leaves.chains[leaf]
    if leaves.kinds[leaf] == "gpu":
        kernel = display_name(single.longest.name)
        return chain[0], SINGLES, f"{ONE}{kernel}" if leaves.count[:, leaf].max() <= 1 else kernel
    label = next(step for step in reversed(chain) if isinstance(step, str))
    if leaves.kinds[leaf] == "op":
        on_host = " on the host" if HOST in chain else ""
        label = f"{LONG if leaves.count[:, leaf].max() > 1 else ONE}{label}{on_host}"
    return chain[0], SINGLES, STRETCH if label == NOT_RECORDED else label


def build(leaves: Leaves) -> Node:
    """The tree of ``leaves``."""
    root = Node(ROOT, 0)
    if not len(leaves):
        return root
    table = split(leaves.path, leaves.total, leaves.ratio, leaves.unit, leaves.reached, leaves.step_ns)
    together = added_up(leaves.chains, leaves.path, leaves.total, table.sum(axis=1))
    order, first = np.concatenate(together), np.cumsum([0, *map(len, together[:-1])])
    path, times, count = (
        np.add.reduceat(columns[:, order], first, axis=1) for columns in (leaves.path, leaves.total, leaves.count)
    )
    parts = np.add.reduceat(table[order], first, axis=0)
    for i, mine in enumerate(together):
        if not times[:, i].any():
            continue
        node = root
        for step in leaves.chains[mine[0]]:
            child = node.children.get(step)
            if child is None:
                label = node.label if isinstance(step, int) else step
                child = node.children[step] = Node(label, node.depth + 1)
            node = child
        node.leaves += mine.tolist()
        node.path = node.path + path[:, i]
        node.total = node.total + times[:, i]
        node.count = node.count + count[:, i]
        node.parts = node.parts + parts[i]
        if mine[0] in leaves.single:
            node.note = SINGLE
    _finish(root)
    return root


def _finish(node: Node, may_replace: bool = True) -> None:
    """Add up what is below ``node``; what only one side has there replaced what only the other has."""
    if not node.children:
        return
    # what begins later, another function, what is called by name, or one event of many replaces nothing
    may_replace &= node.label not in (QUEUE, PYTHON, OTHER_CALLERS, SINGLES)
    for child in node.children.values():
        _finish(child, may_replace)
    if node.depth > 1 and may_replace:
        _replace(node)
    for child in node.children.values():
        node.take(child)


def _replace(node: Node) -> None:
    sides: tuple[dict[Step, Node], dict[Step, Node]] = ({}, {})
    has = [{child.label for child in node.children.values() if child.total[side]} for side in (0, 1)]
    for step, child in node.children.items():
        if child.label not in has[0] & has[1]:
            sides[child.longer_side][step] = child
    ns = [sum(float(child.total.sum()) for child in side.values()) for side in sides]
    if not all(sides) or min(ns) < thresholds.WORTH_A_LINE * max(ns):  # next to nothing replaces nothing
        return
    largest = [max(side.values(), key=lambda child: (float(child.total.sum()), child.label)) for side in sides]
    names = (with_more(first.label, len(side) - 1) for first, side in zip(largest, sides, strict=True))
    new = Node(ARROW.join(dict.fromkeys(names)), node.depth + 1, note=REPLACED)
    for step in (*sides[0], *sides[1]):
        new.children[step] = node.children.pop(step)
        new.take(new.children[step])
    node.children[new.label] = new
