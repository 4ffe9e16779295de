"""The flame graph: the call trees of both sides as one, with the kernels below the calls that launched them.

A frame has only its own amounts; a frame with everything below it is their sum, so that the numbers of a flame graph
close whatever is merged, inverted or left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.diff.tree import Node, Positions, merge_calls
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name

LEAST = 0.001
"""Frames below this fraction of the whole, in every quantity and on both sides, are left out."""
MOST = 12_000
"""Most frames of a graph; beyond it, the smallest are left out too."""
SMALLEST = 1e-6
"""Fraction of the whole from which frames are left out where there are too many."""
MOST_OF = 0.75
"""Part of a call's amount from which the call below it is named instead."""
MOST_REPLACED = 3
"""Most kernels of an operator and side that are shown as one replacement."""
CALL_UNKNOWN = "(call unknown)"
INSTANCE = re.compile(r"^(?P<cls>.+)\[(?P<k>\d{1,18})\]$")
Pair = tuple[int, int]
"""An amount of control and test, numerators over one scale."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One box, with amounts that its children do not have; numerators over the comparison's scale.

    Attributes:
        parent: position of the frame it is in, −1 for the whole.
        kind: whole, phase, annotation, module, op, kernel, or rest, which stands for those left out of its parent.
        name: display name; of a module its class. A kernel that was replaced: ``control's → test's``.
        instance: ordinal of a module among siblings of its class, None where it is the only one.
        shapes: input shapes as recorded, None where there are none.
        work: GPU time, without a GPU self time of operators. host: self time of an operator on the host.
        count: calls of an operator, events of a kernel; 0 for others.
        left_out: of a rest, how many frames it stands for.
    """

    parent: int
    kind: str
    name: str
    instance: int | None = None
    shapes: str | None = None
    work: Pair = (0, 0)
    host: Pair = (0, 0)
    count: Pair = (0, 0)
    left_out: int = 0

    @property
    def calls(self) -> Pair:
        """Calls of an operator; a kernel is none."""
        return (0, 0) if self.kind == "kernel" else self.count

    @property
    def quantities(self) -> tuple[Pair, Pair, Pair]:
        """All that the size of a box can measure."""
        return self.work, self.host, self.calls


def flame_graph(trees: tuple[CallTree, CallTree], pairing: Pairing, scale: int) -> list[Frame]:
    """Every call and kernel of both trees, parents before children; the first frame is the whole.

    Args:
        scale: a multiple of both trees' denominators.
    """
    nodes, positions = merge_calls(trees, pairing, scale)
    frames = [Frame(parent=-1, kind="whole", name="all work"), *map(_call, nodes)]
    for place, kernels in sorted(_kernels(trees, positions, frames, scale).items()):
        if place == len(frames):
            frames.append(Frame(parent=0, kind="phase", name=CALL_UNKNOWN))
        frames += _leaves(place, frames[place].kind, kernels)
    return frames


def of_one(tree: CallTree, scale: int) -> list[Frame]:
    """The frames of one set; all are of the control."""
    return flame_graph((tree, CallTree(tree.denominator)), Pairing(), scale)


def _call(node: Node) -> Frame:
    found = INSTANCE.match(node.name) if node.kind == "module" else None
    return Frame(
        parent=node.parent + 1,
        kind=node.kind,
        name=found["cls"] if found else node.name,
        instance=int(found["k"]) if found else None,
        shapes=node.shapes,
        host=(node.control_self, node.test_self) if node.kind == "op" else (0, 0),
        count=(node.control_count, node.test_count) if node.kind == "op" else (0, 0),
    )


Kernels = tuple[dict[str, list[int]], dict[str, list[int]]]
"""Of control and test: name → [count, ns]."""


def _kernels(
    trees: tuple[CallTree, CallTree], positions: Positions, frames: list[Frame], scale: int
) -> dict[int, Kernels]:
    """Frame → the kernels right below it; those of unknown calls at the position after the last frame. The self time
    of an operator is no kernel: it is added to its frame.
    """
    found: dict[int, Kernels] = {}
    for which, tree in enumerate(trees):
        factor = scale // tree.denominator
        for work in tree.work:
            place = positions[which].get(work.node, len(frames) - 1) + 1
            if work.category == "cpu_op" and place < len(frames):
                own = list(frames[place].work)
                own[which] += factor * work.ns
                frames[place] = replace(frames[place], work=(own[0], own[1]))
                continue
            sums = found.setdefault(place, ({}, {}))[which].setdefault(display_name(table_name(work.name)), [0, 0])
            sums[0] += factor * work.count
            sums[1] += factor * work.ns
    return found


def _leaves(place: int, kind: str, kernels: Kernels) -> Iterable[Frame]:
    """The kernels of one call: equal names of both sides are one frame, and so are the few that replace each other."""
    control, test = kernels
    shared = [name for name in control if name in test]
    removed, added = [n for n in control if n not in test], [n for n in test if n not in control]
    for name in shared:
        yield _leaf(place, name, [control[name]], [test[name]])
    if kind == "op" and removed and added and max(len(removed), len(added)) <= MOST_REPLACED:
        name = f"{' + '.join(removed)} → {' + '.join(added)}"
        yield _leaf(place, name, [control[n] for n in removed], [test[n] for n in added])
        return
    for name in removed:
        yield _leaf(place, name, [control[name]], [])
    for name in added:
        yield _leaf(place, name, [], [test[name]])


def _leaf(place: int, name: str, control: Sequence[Sequence[int]], test: Sequence[Sequence[int]]) -> Frame:
    count, work = ((sum(sums[k] for sums in control), sum(sums[k] for sums in test)) for k in (0, 1))
    return Frame(parent=place, kind="kernel", name=name, work=work, count=count)


def pruned(frames: list[Frame], least: float = LEAST, most: int = MOST) -> tuple[list[Frame], float]:
    """The frames that are ``least`` of the whole in any quantity once equal siblings are merged, at most about
    ``most``, and the fraction that this took; what is left out of a frame is one child of it, a rest.
    """
    merged = _merged(frames)
    shares = _shares(frames, merged)
    kept = [shares[k] >= least for k in merged]
    while sum(kept) > most:
        least = max(1.5 * least, SMALLEST)
        kept = [shares[k] >= least for k in merged]
    kept[0] = True
    out: list[Frame] = []
    position: list[int] = []
    rests: dict[int, list[Frame]] = {}
    for k, frame in enumerate(frames):
        above = position[frame.parent] if k else -1
        if kept[k]:
            position.append(len(out))
            out.append(replace(frame, parent=above))
        else:
            position.append(above)
            rests.setdefault(above, []).append(frame)
    sums = [_rest(above, left_out) for above, left_out in rests.items()]
    return out + [rest for rest in sums if any(map(any, rest.quantities))], least


def _rest(above: int, frames: list[Frame]) -> Frame:
    work, host, calls = (total(pairs) for pairs in zip(*(f.quantities for f in frames), strict=True))
    return Frame(parent=above, kind="rest", name="…", work=work, host=host, count=calls, left_out=len(frames))


def total(pairs: Iterable[Pair]) -> Pair:
    """The sum of both sides."""
    control, test = zip(*pairs, strict=True)
    return sum(control), sum(test)


def _merged(frames: list[Frame]) -> list[int]:
    """Of each frame a number that it shares with those of the same kind and name below the same (merged) frame;
    numbers of parents are smaller.
    """
    known: dict[tuple[int, str, str], int] = {}
    numbers: list[int] = []
    for frame in frames:
        above = numbers[frame.parent] if frame.parent >= 0 else -1
        numbers.append(known.setdefault((above, frame.kind, frame.name), len(known)))
    return numbers


def _sums(frames: list[Frame], merged: list[int]) -> tuple[list[int], list[list[int]]]:
    """Of each merged frame its parent, and its quantities with everything below it: control and test of each."""
    sums = [[0] * 6 for _ in range(max(merged) + 1)]
    parents = [-1] * len(sums)
    for frame, k in zip(frames, merged, strict=True):
        parents[k] = merged[frame.parent] if frame.parent >= 0 else -1
        for j, amount in enumerate(amount for pair in frame.quantities for amount in pair):
            sums[k][j] += amount
    for k in range(len(sums) - 1, 0, -1):
        for j in range(6):
            sums[parents[k]][j] += sums[k][j]
    return parents, sums


def _shares(frames: list[Frame], merged: list[int]) -> list[float]:
    """Of each merged frame, with everything below it, its largest share of the whole in any quantity."""
    _, sums = _sums(frames, merged)
    wholes = [max(sums[0][j : j + 2]) for j in (0, 0, 2, 2, 4, 4)]
    return [
        max((amount / whole for amount, whole in zip(each, wholes, strict=True) if whole), default=0.0) for each in sums
    ]


def largest(frames: list[Frame], amount: Callable[[Pair], int]) -> tuple[str, Pair]:
    """The innermost call that has most of ``amount`` of the work of each call around it: its name, and its work."""
    merged = _merged(frames)
    parents, sums = _sums(frames, merged)
    below: dict[int, list[int]] = {}
    for k, above in enumerate(parents):
        below.setdefault(above, []).append(k)
    work = [(each[0], each[1]) for each in sums]
    kinds = {k: frame.kind for frame, k in zip(frames, merged, strict=True)}
    at = 0
    while inner := [k for k in below.get(at, ()) if kinds[k] != "kernel"]:
        most = max(inner, key=lambda k: abs(amount(work[k])))
        if at and abs(amount(work[most])) < MOST_OF * abs(amount(work[at])):
            break
        at = most
    named = [frame for frame, k in zip(frames, merged, strict=True) if k == at]
    instances = "[*]" if len(named) > 1 and named[0].instance is not None else ""
    return f"{named[0].name}{instances}", work[at]
