"""What of the step's change each line accounts for itself, and what is exposure: the same work, of which the step waits
for more, or less. Exact, and of opposite sign for swapped sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tracediff import thresholds
from tracediff.arrays import Floats
from tracediff.explain.facts import Fact, wait_of
from tracediff.explain.leaves import GPU, HOST, OTHER_CALLERS, QUEUE, SINGLES, START, Leaves
from tracediff.explain.lines import Line, Lines, label_of
from tracediff.explain.tree import Node, common
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.structs import FrozenStruct, Pair

ALL = np.ones(2)
"""Of what is less, and of what is more."""
HOST_WORK = "op", "python", "annotated", "loading", "compiling"
"""Kinds of leaves in which the host works; calls of the driver may wait for the GPU as well."""


class Remainder(FrozenStruct):
    """What of the change of a part of the critical path is in no line.

    Attributes:
        longer_us, shorter_us: what takes longer, and shorter, per step. exposure_us: the same work, now on the path or
            off it, in lines or not. exposed: what is most of that, in words; may be empty.
        reach: how much of what is less, and of what is more, in the part can reach the step, 0 to 1.
    """

    longer_us: float
    shorter_us: float
    exposure_us: float
    exposed: str
    reach: Pair[float]


def slack_of(leaves: Leaves, busy: Floats) -> dict[str, Floats]:
    """First label → float64[2] ns per step of control and test that the other part of the path leaves it: no work of
    it can make a step longer or shorter by more, since the rest of the step takes as long beside it.

    Args:
        busy: float64[2] ns per step in which a GPU works, for whatever the host does.
    """
    steps, is_host = leaves.step_ns, leaves.below(HOST)
    host = leaves.total_of(is_host & np.isin(leaves.kinds, HOST_WORK))
    calls = is_host & (leaves.kinds == "call")
    count, total = leaves.count[:, calls], leaves.total[:, calls]
    each = np.divide(total, count, out=np.zeros_like(total), where=count > 0).min(axis=0)  # longer ones may have waited
    host += count @ each
    beside_host = np.full(2, np.inf) if (host > steps).any() else _beside(steps, host)  # of many threads
    return {GPU: beside_host, HOST: _beside(steps, busy)}


def _beside(steps: Floats, other: Floats) -> Floats:
    """float64[2] ns that work of ``other`` leaves of ``steps``, of its own side and, where the other part changes, too,
    of whichever side has more: what changes first is waited for beside the other one's time of then.
    """
    return np.asarray(np.maximum(np.minimum(steps - other, steps.max() - other.max()), 0.0))


def account(
    lines: Lines, root: Node, slack: Mapping[str, Floats], facts: Sequence[Fact]
) -> tuple[list[tuple[Line, float]], dict[str, Remainder]]:
    """(each line with the µs per step that it accounts for itself, those in the direction of the change first, the
    largest first; by first label what is in none): together the change of the step. ``slack``: see `slack_of`; of QUEUE
    how much less, and more, the GPU is idle.
    """
    parts, number = [str(label) for label in root.children], len(lines.shown)
    rests = [_rest(lines.others, part) for part in parts]
    every = (*lines.shown, *(Line((), rest) for rest in rests))
    part_of = np.array([line.chain[0] for line in every], object)
    waiting = np.array([QUEUE in line.chain for line in every], bool)
    moved = np.array([line.node.change for line in every])
    work = np.array([*(_own(line.node.work, line.node) for line in lines.shown), *(_own(r.change, r) for r in rests)])
    own, reach = _within_reach(work, part_of, waiting, slack)
    for which in (waiting, ~waiting):
        exposed = {part: float((moved - own)[part_of == part].sum()) for part in parts}
        left = _left(np.where(which, own, 0.0), part_of, exposed, _of_communication(root), facts)
        for part, factor in left.items():
            own = _scaled(own, factor, which & (part_of == part))
    reach = {part: left[part] * reach.get(part, ALL) for part in parts}
    if np.abs(moved - own).max(initial=0.0) < thresholds.WORTH_A_LINE * lines.scale:
        own = moved
    remainders = {}
    for part, ns in zip(parts, own[number:].tolist(), strict=True):
        exposure = float((moved - own)[part_of == part].sum())
        others = (line.node.work for line in lines.others if line.chain[0] == part)
        longer = sum(max(us, 0.0) for us in others) * float(reach[part][1])
        remainders[part] = Remainder(
            longer_us=longer / 1000,
            shorter_us=(ns - longer) / 1000,
            exposure_us=exposure / 1000,
            exposed=_exposed(root.children[part], exposure),
            reach=Pair(*reach[part].tolist()),
        )
    return _in_order(lines.shown, (own[:number] / 1000).tolist(), root.change), remainders


def _own(change: float, node: Node) -> float:
    """``change``, as far as the time of ``node`` in all does so."""
    return common(change, float(node.total @ (-1, 1)))


def _rest(others: Sequence[Line], part: str) -> Node:
    """What is in no line of a part of the path, as one."""
    rest = Node(part, 1)
    for line in others:
        if line.chain[0] == part:
            rest.take(line.node)
    return rest


def _of_communication(root: Node) -> float:
    """How much more communication is exposed: what ranks wait in anyway hides work, or is hidden, as another part."""
    gpu = root.children.get(GPU)
    node = gpu.children.get(COMMUNICATION) if gpu is not None else None
    return float(node.change - _own(node.change, node)) if node is not None else 0.0


def _within_reach(
    own: Floats,
    part_of: NDArray[np.object_],
    waiting: NDArray[np.bool_],
    slack: Mapping[str, Floats],
) -> tuple[Floats, dict[str, Floats]]:
    """(``own``, each in a part of the path, as far as the other part leaves it; see `Remainder.reach`); ``waiting``:
    what is launched and not started, which follows from what the host does.
    """
    reach = {}
    for part in np.unique(part_of[~waiting]):
        if part in slack:
            mine = ~waiting & (part_of == part)
            reach[part] = _room(own[mine], slack[part])
            own = _scaled(own, reach[part], mine)
    if QUEUE in slack:
        room = np.maximum(slack[HOST] - _sums(own[~waiting & (part_of == HOST)]), 0.0)
        own = _scaled(own, _room(own[waiting], np.minimum(slack[QUEUE], room)), waiting)
    return own, reach


def _room(own: Floats, most: Floats) -> Floats:
    """How much of what is less, and of what is more, of ``own`` there is room for in ``most``: float64[2], 0 to 1."""
    sums = _sums(own)
    return np.asarray(np.minimum(np.divide(most, sums, out=np.ones(2), where=sums > 0), 1.0))


def _sums(own: Floats) -> Floats:
    """float64[2]: what is less, and what is more, in all."""
    return np.array([-own[own < 0].sum(), own[own > 0].sum()])


def _scaled(own: Floats, part: Floats, which: NDArray[np.bool_]) -> Floats:
    """``own`` with only ``part`` of what is less, and of what is more, of ``which``."""
    return np.where(which, own * np.where(own > 0, part[1], part[0]), own)


def _left(
    own: Floats,
    part_of: NDArray[np.object_],
    exposed: Mapping[str, float],
    communication: float,
    facts: Sequence[Fact],
) -> dict[str, Floats]:
    """How much is left of what is less, and of what is more, of ``own`` in each part, once what is ``exposed`` in
    another part, or of ``communication``, in place of it is taken off; all of it if one side alone waits for the GPU,
    which exposes by itself.
    """
    exposure = sum(exposed.values())
    apart = {part: ns - communication * (part == GPU) for part, ns in exposed.items()}
    along = sum(ns for ns in (*apart.values(), communication) if ns * exposure > 0)
    is_of_wait, out = bool(wait_of(facts, exposure)), {}
    for part, ns in apart.items():
        its_own = ns * exposure / along if ns * exposure > 0 else 0.0  # of what does not cancel
        opposed = abs(float(own[(part_of == part) & (own * exposure < 0)].sum()))
        left = max(0.0, 1 - abs(exposure - its_own) / opposed) if opposed and not is_of_wait else 1.0
        out[part] = np.array([left, 1.0] if exposure > 0 else [1.0, left])
    return out


def _in_order(lines: Sequence[Line], own: Sequence[float], change: float) -> list[tuple[Line, float]]:
    sign = 1 if change >= 0 else -1

    def order(both: tuple[Line, float]) -> tuple[bool, bool, float, str]:
        line, us = both
        label, is_along = line.node.label, sign * us > 0
        return not is_along, is_along and label == START, -abs(us), label  # START is not of the program

    return sorted(zip(lines, own, strict=True), key=order)


def _exposed(whole: Node, exposure: float) -> str:
    """What most of the ``exposure`` of a part of the step is of, in words; empty where nothing is most of it."""
    others = QUEUE, SINGLES, OTHER_CALLERS  # which are no work, or of no kind
    parts = [Line((whole.label,), part) for part in whole.children.values() if part.label not in others]
    calls = whole.children.get(OTHER_CALLERS)
    parts += [Line((whole.label, OTHER_CALLERS), call) for call in calls.children.values()] if calls else []
    largest = max(parts, key=lambda line: abs(line.node.exposure), default=None)
    moved = sum(abs(line.node.exposure) for line in parts)
    if largest is None or largest.node.exposure * exposure <= 0:
        return ""
    return label_of(largest) if abs(largest.node.exposure) >= thresholds.MOSTLY * moved else ""
