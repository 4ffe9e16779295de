"""The tree: what the leaves' changes add up to, node by node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tracediff.explain.effects import EFFECTS, Floats, split
from tracediff.explain.leaves import PYTHON, QUEUE, Leaves, Step
from tracediff.explain.small import added_up

ROOT = "step"
REPLACED, SINGLE = "replaced", "a single event"
NONE = np.array([np.nan])


@dataclass(eq=False)
class Node:
    """A part of the step; all that is below it adds up to it. Times in ns per step.

    Attributes:
        label: what it is. depth: 0 of the step.
        children: by label, or by the index of their group of work. leaves: indices of the leaves below it.
        path, total, count: float64[2] of control and test, see `Leaves`.
        effects: float64[5], in the order of EFFECTS; together the change on the path.
        note: REPLACED where what one side has replaced what the other has, SINGLE for a single event.
        parts: of what was replaced, how many only control and only test has.
    """

    label: str
    depth: int
    children: dict[Step, Node] = field(default_factory=dict)
    leaves: list[int] = field(default_factory=list)
    path: Floats = field(default_factory=lambda: np.zeros(2))
    total: Floats = field(default_factory=lambda: np.zeros(2))
    count: Floats = field(default_factory=lambda: np.zeros(2))
    effects: Floats = field(default_factory=lambda: np.zeros(len(EFFECTS)))
    note: str = ""
    parts: tuple[int, int] = (0, 0)

    @property
    def change(self) -> float:
        """Of the time on the path: what of the step's change it accounts for."""
        return float(self.path[1] - self.path[0])

    @property
    def exposure(self) -> float:
        """The part of the change that is the same work on or off the path."""
        return float(self.effects[-1])

    @property
    def work(self) -> float:
        """The part of the change that is other work, or as much work in another time."""
        return float(self.effects[:-1].sum())

    @property
    def agrees(self) -> bool:
        """Whether its own time changed in the direction of what it accounts for; its parts may differ in how much of
        them the step waits for. What is less than the resolution of traces, 1 ns, is no change.
        """
        changed = float(self.total[1] - self.total[0])
        return min(abs(self.work), abs(changed)) >= 1 and self.work * changed > 0

    @property
    def main_effect(self) -> tuple[str, float]:
        """(the largest effect but exposure, its part of all)."""
        sizes = np.abs(self.effects[:-1])
        largest = int(np.argmax(sizes))
        return EFFECTS[largest], float(sizes[largest] / sizes.sum()) if sizes.sum() else 0.0

    def take(self, other: Node) -> None:
        """Add what ``other`` is."""
        self.leaves += other.leaves
        self.path, self.total, self.count = self.path + other.path, self.total + other.total, self.count + other.count
        self.effects = self.effects + other.effects

    def walk(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()


def build(leaves: Leaves) -> Node:
    """The tree of ``leaves``."""
    root = Node(ROOT, 0)
    effects = split(leaves.path, leaves.total, leaves.ratio, leaves.unit, leaves.reached, leaves.path.sum(axis=1))
    table = np.stack([getattr(effects, name) for name in EFFECTS], axis=1)
    together = added_up(leaves.chains, leaves.path, leaves.total, table[:, :-1].sum(axis=1))
    order = np.concatenate(together) if together else np.zeros(0, np.int64)
    first = np.cumsum([0, *map(len, together)])[: len(together)]
    path, times, count = (
        np.add.reduceat(columns[:, order], first, axis=1) if together else columns
        for columns in (leaves.path, leaves.total, leaves.count)
    )
    effects_of = np.add.reduceat(table[order], first, axis=0) if together else table
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
        node.effects = node.effects + effects_of[i]
        if mine[0] in leaves.single:
            node.note = SINGLE
    _finish(root)
    return root


def _finish(node: Node) -> None:
    """Add up what is below ``node``; what only one side has there replaced what only the other has."""
    if not node.children:
        return
    for child in node.children.values():
        _finish(child)
    if node.depth > 1 and node.label not in (QUEUE, PYTHON):  # what begins later, or another function, replaces nothing
        _replace(node)
    for child in node.children.values():
        node.take(child)


def _replace(node: Node) -> None:
    sides: tuple[dict[Step, Node], dict[Step, Node]] = ({}, {})
    for step, child in node.children.items():
        if not child.total.all():
            sides[int(child.total[1] > child.total[0])][step] = child
    if not all(sides):
        return
    largest = [max(side.values(), key=lambda n: (float(n.total.sum()), n.label)) for side in sides]
    new = Node(f"{largest[0].label} → {largest[1].label}", node.depth + 1, note=REPLACED)
    new.parts = len(sides[0]), len(sides[1])
    for step in (*sides[0], *sides[1]):
        new.take(node.children.pop(step))
    unknown = split(new.path[:, None], new.total[:, None], NONE, np.array([""], object), NONE, new.path)
    new.effects = np.array([float(getattr(unknown, name)[0]) for name in EFFECTS])
    node.children[new.label] = new
