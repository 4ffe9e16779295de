"""The call trees of both sides as one: calls that are the same and lie below the same call are one node, others are
on one side only. And as a flame graph, with the kernels below the calls that launched them.

A frame has only its own amounts; a frame with everything below it is their sum, so that the numbers of a flame graph
close whatever is merged, inverted or left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from msgspec import Struct

from tracediff import bounds, thresholds
from tracediff.aggregate.call_tree import Call, CallTree, Trees
from tracediff.arrays import AnyArray
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.diff.matching.items import Item
from tracediff.diff.views import UNKNOWN, moved_lines
from tracediff.patterns import late
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name
from tracediff.structs import NONE, SIDES, FrozenStruct, Pair, total


class MergedCall(Struct, kw_only=True):
    """One call of either side; numerators over the comparison's scale.

    Attributes:
        parent: position of the node above, −1 for a phase. depth: 0 for a phase.
        calls: NO_CALL on a side that does not make it.
        time: GPU time (without a GPU self time of operators) of everything below.
    """

    parent: int
    depth: int
    calls: Pair[Call]
    time: Pair[int] = NONE

    @property
    def call(self) -> Call:
        """What both sides call, that of control."""
        return self.calls.test if self.calls.control is NO_CALL else self.calls.control

    @property
    def side(self) -> str:
        """Which side makes it: both, control or test."""
        makers = [side for side, call in zip(SIDES, self.calls, strict=True) if call is not NO_CALL]
        return makers[0] if len(makers) == 1 else "both"

    @property
    def count(self) -> Pair[int]:
        """Occurrences."""
        return self.calls.map(lambda call: call.count)

    @property
    def host(self) -> Pair[int]:
        """Duration on the host, with everything below."""
        return self.calls.map(lambda call: call.total)

    @property
    def self_time(self) -> Pair[int]:
        """Duration on the host without that of the operators below."""
        return self.calls.map(lambda call: call.self_ns)


NO_CALL = Call(-1, "", "", None, 0)
"""What a side has of a call that only the other makes."""
Positions = tuple[dict[int, int], dict[int, int]]
"""Of control and test: position of a call in its tree → position of its node in the merged tree."""


def merge_calls(trees: Trees, pairing: Pairing) -> tuple[list[MergedCall], Positions]:
    """The merged tree, parents before children, and where the calls of both trees are in it. Where the children of a
    node differ, its own numbers still compare: it is their lowest shared call.
    """
    nodes: list[MergedCall] = []
    positions: Positions = ({}, {})
    children = [tree.children() for tree in trees]
    work = _together(children, pairing, -1, -1, -1)
    while work:
        a, b, parent = work.pop()
        calls = Pair(*(NO_CALL if node is None else tree.calls[node] for tree, node in zip(trees, (a, b), strict=True)))
        here = len(nodes)
        for position, node in zip(positions, (a, b), strict=True):
            if node is not None:
                position[node] = here
        nodes.append(MergedCall(parent=parent, depth=nodes[parent].depth + 1 if parent >= 0 else 0, calls=calls))
        work += _together(children, pairing, a, b, here)
    _add_work(nodes, positions, trees)
    return nodes, positions


def _together(
    children: list[dict[int, list[int]]], pairing: Pairing, a: int | None, b: int | None, parent: int
) -> list[tuple[int | None, int | None, int]]:
    """The children of a node, each with ``parent``, the last first: pairs in the control's order, then what only the
    test has.
    """
    control, test = (
        of_side.get(node, []) if node is not None else [] for of_side, node in zip(children, (a, b), strict=True)
    )
    test_children = set(test)
    partners = [pairing.test_of.get(child, -1) for child in control]
    rows: list[tuple[int | None, int | None, int]] = [
        (child, partner if partner in test_children else None, parent)
        for child, partner in zip(control, partners, strict=True)
    ]
    paired = set(partners)
    rows += [(None, child, parent) for child in test if child not in paired]
    return rows[::-1]


def _add_work(nodes: list[MergedCall], positions: Positions, trees: Trees) -> None:
    for which, tree in enumerate(trees):
        for work in tree.work:
            here = positions[which].get(work.node, -1)
            while here >= 0:
                nodes[here].time = nodes[here].time.plus(which, work.ns)
                here = nodes[here].parent


def folded(trees: Trees) -> list[tuple[str, int, int]]:
    """[(stack, control, test)]: work by its stack ``phase;module;op;kernel``, as flame-graph tools read it."""
    sums: dict[str, Pair[int]] = defaultdict(lambda: NONE)
    for which, tree in enumerate(trees):
        stacks: list[str] = []
        for call in tree.calls:
            name = call.display_name.replace(";", ",")
            stacks.append(f"{stacks[call.parent]};{name}" if call.parent >= 0 else name)
        for work in tree.work:
            kernel = display_name(work.name).replace(";", ",")
            stack = stacks[work.node] if work.node >= 0 else "unknown"
            whole = stack if work.category == "cpu_op" else f"{stack};{kernel}"
            sums[whole] = sums[whole].plus(which, work.ns)
    return [(stack, *both) for stack, both in sorted(sums.items())]


CALL_UNKNOWN = "(call unknown)"
INSTANCE = late(r"^(?P<cls>.+)\[(?P<k>\d{1,18})\]$")


class Frame(FrozenStruct, kw_only=True):
    """One box, with amounts that its children do not have; numerators over the comparison's scale.

    Attributes:
        parent: position of the frame it is in, −1 for the whole.
        kind: whole, phase, annotation, module, line, op, kernel; or rest, for those that are left out of its parent.
        name: display name; of a module its class. A kernel that was replaced: ``control's → test's``.
        instance: ordinal of a module among siblings of its class, None where it is the only one.
        shapes: input shapes as recorded, None where there are none.
        work: GPU time, without a GPU self time of operators. host: self time of an operator on the host.
        count: calls of an operator, events of a kernel; 0 for others.
        left_out: of a rest, how many frames it sums.
    """

    parent: int
    kind: str
    name: str
    instance: int | None = None
    shapes: str | None = None
    work: Pair[int] = NONE
    host: Pair[int] = NONE
    count: Pair[int] = NONE
    left_out: int = 0

    def plus(self, side: int, amounts: tuple[int, int, int]) -> Frame:
        """The same with these ``amounts`` of work, host and count more on a side."""
        work, host, count = (
            pair.plus(side, n) for pair, n in zip((self.work, self.host, self.count), amounts, strict=True)
        )
        return self.replace(work=work, host=host, count=count)

    @property
    def calls(self) -> Pair[int]:
        """Calls of an operator; a kernel is none."""
        return NONE if self.kind == "kernel" else self.count

    @property
    def quantities(self) -> tuple[Pair[int], Pair[int], Pair[int]]:
        """All that the size of a box can measure."""
        return self.work, self.host, self.calls


def flame_graph(trees: Trees, pairing: Pairing) -> list[Frame]:
    """Every call and kernel of both trees, parents before children; the first frame is the whole."""
    nodes, positions = merge_calls(trees, pairing)
    frames = [Frame(parent=-1, kind="whole", name="all work"), *map(_call, nodes)]
    for place, kernels in sorted(_kernels(trees, positions, frames).items()):
        if place == len(frames):
            frames.append(Frame(parent=0, kind="phase", name=CALL_UNKNOWN))
        frames += _leaves(place, frames[place].kind, kernels)
    return frames


def of_one(tree: CallTree) -> list[Frame]:
    """The frames of one set; all are of the control."""
    return flame_graph(Pair(tree, CallTree(tree.denominator)), Pairing())


def _call(node: MergedCall) -> Frame:
    call = node.call
    instance_match = INSTANCE.match(call.display_name) if call.kind == "module" else None
    return Frame(
        parent=node.parent + 1,
        kind=call.kind,
        name=instance_match["cls"] if instance_match else call.display_name,
        instance=int(instance_match["k"]) if instance_match else None,
        shapes=call.shapes,
        host=node.self_time,
        count=node.count,
    )


Names = tuple[tuple[str, str], ...]
"""Kind and name of frames from the outermost on."""


def line_graph(trees: Trees, items: Sequence[Sequence[Item]]) -> list[Frame]:
    """Every operator and kernel of the trees below the line of code that it runs for, instead of its callers.

    Args:
        items: of control and test, whose lines are taken where the trees have none.
    """
    sides = [[*_with_lines(tree, of_side)] for tree, of_side in zip(trees, items, strict=True)]
    moved = moved_lines(*({line for line, _, _ in rows if line} for rows in sides))
    places: dict[tuple[int, str, str], int] = {}
    frames = [Frame(parent=-1, kind="whole", name="all work")]
    for side, rows in enumerate(sides):
        for line, path, own in rows:
            here = moved.get(line, line) if line and side == 0 else line
            place = 0
            for kind, name in (("line", here or UNKNOWN), *path):
                parent, place = place, places.setdefault((place, kind, name), len(frames))
                if place == len(frames):
                    frames.append(Frame(parent=parent, kind=kind, name=name))
            frames[place] = frames[place].plus(side, own)
    return frames


def _with_lines(tree: CallTree, items: Sequence[Item]) -> Iterator[tuple[str | None, Names, tuple[int, int, int]]]:
    """(the line that it runs for, what is below it, work, host and count) of each operator and of the
    kernels below it.
    """
    line_of_work = {item.key: item.line for item in items}
    lines = [call.line for call in tree.calls]
    for work in tree.work:
        if work.node >= 0:
            lines[work.node] = lines[work.node] or line_of_work.get(work.key)
    for line, call in zip(lines, tree.calls, strict=True):
        if call.kind == "op":
            yield line, (("op", display_name(call.name)),), (0, call.self_ns, call.count)
    for work in tree.work:
        line = line_of_work.get(work.key) or (lines[work.node] if work.node >= 0 else None)
        around, ns = tree.op(work.node), work.ns
        op: Names = (("op", display_name(around)),) if around is not None else ()
        if work.category == "cpu_op":
            yield line, op, (ns, 0, 0)
        else:
            kernel = display_name(table_name(work.name))
            yield line, (*op, ("kernel", kernel)), (ns, 0, work.count)


Kernels = dict[str, tuple[Pair[int], Pair[int]]]
"""Name → count and time, those of control first."""


def _kernels(trees: Trees, positions: Positions, frames: list[Frame]) -> dict[int, Kernels]:
    """Frame → the kernels right below it; those of unknown calls at the position after the last frame. The self time
    of an operator is not a kernel: it is added to its frame.
    """
    kernels_of_frame: dict[int, Kernels] = {}
    for which, tree in enumerate(trees):
        for work in tree.work:
            place = positions[which].get(work.node, len(frames) - 1) + 1
            if work.category == "cpu_op" and place < len(frames):
                frames[place] = frames[place].plus(which, (work.ns, 0, 0))
                continue
            kernels, name = kernels_of_frame.setdefault(place, {}), display_name(table_name(work.name))
            count, ns = kernels.get(name, (NONE, NONE))
            kernels[name] = count.plus(which, work.count), ns.plus(which, work.ns)
    return kernels_of_frame


def _leaves(place: int, kind: str, kernels: Kernels) -> Iterable[Frame]:
    """The kernels of one call: equal names of both sides are one frame, and so are the few that replace each other."""
    removed, added = ([name for name, (count, _) in kernels.items() if not count[side]] for side in (1, 0))
    alone = [*removed, *added]
    names_of_leaf = {name: [name] for name in (*(name for name in kernels if name not in alone), *alone)}
    if kind == "op" and removed and added and max(len(removed), len(added)) <= bounds.KERNELS_REPLACED:
        for name in alone:
            del names_of_leaf[name]
        names_of_leaf[f"{' + '.join(removed)} → {' + '.join(added)}"] = alone
    for title, names in names_of_leaf.items():
        count, work = (total(pairs) for pairs in zip(*(kernels[name] for name in names), strict=True))
        yield Frame(parent=place, kind="kernel", name=title, work=work, count=count)


def pruned(
    frames: list[Frame], least: float = bounds.SMALL_FRAME, most: int = bounds.FRAMES
) -> tuple[list[Frame], float]:
    """The frames that are ``least`` of the whole in any quantity once equal siblings are merged, at most about
    ``most``, and the fraction that this took; what is left out of a frame is one child of it, a rest.
    """
    merged = _merged(frames)
    shares = _shares(frames, merged)
    is_large = [shares[k] >= least for k in merged]
    while sum(is_large) > most:
        least = max(1.5 * least, 1e-6)
        is_large = [shares[k] >= least for k in merged]
    is_large[0] = True
    out: list[Frame] = []
    position: list[int] = []
    rests: dict[int, list[Frame]] = {}
    for k, frame in enumerate(frames):
        ancestor = position[frame.parent] if k else -1
        if is_large[k]:
            position.append(len(out))
            out.append(frame.replace(parent=ancestor))
        else:
            position.append(ancestor)
            rests.setdefault(ancestor, []).append(frame)
    sums = [_rest(ancestor, left_out) for ancestor, left_out in rests.items()]
    return out + [rest for rest in sums if any(map(any, rest.quantities))], least


def _rest(parent: int, frames: list[Frame]) -> Frame:
    work, host, calls = (total(pairs) for pairs in zip(*(f.quantities for f in frames), strict=True))
    return Frame(parent=parent, kind="rest", name="…", work=work, host=host, count=calls, left_out=len(frames))


def _merged(frames: list[Frame]) -> list[int]:
    """Of each frame a number that it shares with those of the same kind and name below the same (merged) frame;
    numbers of parents are smaller.
    """
    number_of_key: dict[tuple[int, str, str], int] = {}
    numbers: list[int] = []
    for frame in frames:
        parent = numbers[frame.parent] if frame.parent >= 0 else -1
        numbers.append(number_of_key.setdefault((parent, frame.kind, frame.name), len(number_of_key)))
    return numbers


def _sums(frames: list[Frame], merged: list[int]) -> tuple[list[int], AnyArray]:
    """Of each merged frame its parent, and its quantities with everything below it: object[frames, 6], control and test
    of each.
    """
    sums = np.zeros((max(merged) + 1, 6), object)  # of Python's integers, which no scale is too large for
    parents = [-1] * len(sums)
    for frame, k in zip(frames, merged, strict=True):
        parents[k] = merged[frame.parent] if frame.parent >= 0 else -1
        sums[k] += [*chain(*frame.quantities)]
    for k in range(len(sums) - 1, 0, -1):
        sums[parents[k]] += sums[k]
    return parents, sums


def _shares(frames: list[Frame], merged: list[int]) -> list[float]:
    """Of each merged frame, with everything below it, its largest share of the whole in any quantity."""
    _, sums = _sums(frames, merged)
    wholes = [max(sums[0][j : j + 2]) for j in (0, 0, 2, 2, 4, 4)]
    return [
        max((amount / whole for amount, whole in zip(each, wholes, strict=True) if whole), default=0.0) for each in sums
    ]


def largest(frames: list[Frame], amount: Callable[[Pair[int]], int]) -> tuple[str, Pair[int]]:
    """The innermost call that has most of ``amount`` of the work of each call around it: its name, and its work."""
    merged = _merged(frames)
    parents, sums = _sums(frames, merged)
    children: dict[int, list[int]] = {}
    for k, parent in enumerate(parents):
        children.setdefault(parent, []).append(k)
    work = [Pair(*each[:2]) for each in sums]
    kinds = {k: frame.kind for frame, k in zip(frames, merged, strict=True)}
    node = 0
    while inner := [k for k in children.get(node, ()) if kinds[k] != "kernel"]:
        most = max(inner, key=lambda k: abs(amount(work[k])))
        if node and abs(amount(work[most])) < thresholds.INNER_FRAME * abs(amount(work[node])):
            break
        node = most
    largest_frames = [frame for frame, k in zip(frames, merged, strict=True) if k == node]
    instances = "[*]" if len(largest_frames) > 1 and largest_frames[0].instance is not None else ""
    return f"{largest_frames[0].name}{instances}", work[node]
