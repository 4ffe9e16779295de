"""The call trees of both sides as one: calls that are the same and stand below the same call are one node, others stand
beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.profile.kernels.display_names import display_name


@dataclass(kw_only=True)
class Node:
    """One call of either side; numerators over the comparison's scale.

    Attributes:
        parent: position of the node above, −1 for a phase. depth: 0 for a phase.
        kind: phase, annotation, module or op. name: readable; of a module its class and ordinal. shapes: as recorded,
            None for none.
        side: both, control or test.
        control_count, test_count: occurrences. control_host, test_host: duration on the host, with everything below.
        control_self, test_self: duration on the host without that of the operators below.
        control_work, test_work: GPU time (without a GPU self time of operators) of everything below.
    """

    parent: int
    depth: int
    kind: str
    name: str
    shapes: str | None
    side: str
    control_count: int = 0
    test_count: int = 0
    control_host: int = 0
    test_host: int = 0
    control_self: int = 0
    test_self: int = 0
    control_work: int = 0
    test_work: int = 0

    @property
    def delta(self) -> int:
        """test − control work."""
        return self.test_work - self.control_work


Positions = tuple[dict[int, int], dict[int, int]]
"""Of control and test: position of a call in its tree → position of its node in the merged tree."""


def merge_trees(trees: tuple[CallTree, CallTree], pairing: Pairing, scale: int) -> list[Node]:
    """The merged tree, parents before children. Where the children of a node differ, its own numbers still compare: it
    is their lowest shared call.
    """
    return merge_calls(trees, pairing, scale)[0]


def merge_calls(trees: tuple[CallTree, CallTree], pairing: Pairing, scale: int) -> tuple[list[Node], Positions]:
    """The nodes of `merge_trees`, and where the calls of both trees are among them."""
    nodes: list[Node] = []
    positions: Positions = ({}, {})
    children = [tree.children() for tree in trees]
    work: list[tuple[int | None, int | None, int]] = [
        (a, b, -1) for a, b in reversed(list(_together(children, pairing, -1, -1)))
    ]
    while work:
        a, b, parent = work.pop()
        side = "both" if a is not None and b is not None else "control" if b is None else "test"
        tree, call_position = (trees[0], a) if a is not None else (trees[1], b)
        assert call_position is not None
        call = tree.calls[call_position]
        name = display_name(call.name) if call.kind == "op" else call.label
        nodes.append(
            Node(
                parent=parent,
                depth=nodes[parent].depth + 1 if parent >= 0 else 0,
                kind=call.kind,
                name=name,
                shapes=call.shapes,
                side=side,
            )
        )
        here = len(nodes) - 1
        for which, node in ((0, a), (1, b)):
            if node is not None:
                positions[which][node] = here
                _count(nodes[here], which, trees[which], node, scale)
        work += [(x, y, here) for x, y in reversed(list(_together(children, pairing, a, b)))]
    _add_work(nodes, positions, trees, scale)
    return nodes, positions


def _together(
    children: list[dict[int, list[int]]], pairing: Pairing, a: int | None, b: int | None
) -> Iterator[tuple[int | None, int | None]]:
    """The children of a node: pairs in the control's order, then what only the test has."""
    below = set(children[1].get(b, ())) if b is not None else set()
    paired = set()
    for child in children[0].get(a, ()) if a is not None else ():
        partner = pairing.test_of.get(child)
        if partner is not None and partner in below:
            paired.add(partner)
            yield child, partner
        else:
            yield child, None
    for child in children[1].get(b, ()) if b is not None else ():
        if child not in paired:
            yield None, child


def _count(node: Node, which: int, tree: CallTree, call_position: int, scale: int) -> None:
    call, factor = tree.calls[call_position], scale // tree.denominator
    if which == 0:
        node.control_count, node.control_host = factor * call.count, factor * call.total
        node.control_self = factor * call.self_ns
    else:
        node.test_count, node.test_host = factor * call.count, factor * call.total
        node.test_self = factor * call.self_ns


def _add_work(nodes: list[Node], positions: Positions, trees: tuple[CallTree, CallTree], scale: int) -> None:
    for which, tree in enumerate(trees):
        factor = scale // tree.denominator
        for work in tree.work:
            here = positions[which].get(work.node, -1)
            while here >= 0:
                if which == 0:
                    nodes[here].control_work += factor * work.ns
                else:
                    nodes[here].test_work += factor * work.ns
                here = nodes[here].parent


def folded(trees: tuple[CallTree, CallTree], scale: int) -> list[tuple[str, int, int]]:
    """[(stack, control, test)]: work by its stack ``phase;module;op;kernel``, numerators over ``scale``, as flame-graph
    tools read it.
    """
    sums: dict[str, list[int]] = {}
    for which, tree in enumerate(trees):
        stacks: list[str] = []
        for call in tree.calls:
            name = (display_name(call.name) if call.kind == "op" else call.label).replace(";", ",")
            stacks.append(f"{stacks[call.parent]};{name}" if call.parent >= 0 else name)
        for work in tree.work:
            kernel = display_name(work.name).replace(";", ",")
            stack = stacks[work.node] if work.node >= 0 else "unknown"
            whole = stack if work.category == "cpu_op" else f"{stack};{kernel}"
            sums.setdefault(whole, [0, 0])[which] += scale // tree.denominator * work.ns
    return [(stack, *both) for stack, both in sorted(sums.items())]  # type: ignore[misc]
