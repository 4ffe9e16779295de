"""Lines: the nodes that explain the change in few words, in the order of what they account for."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.explain.leaves import GPU, HOST, MIXED, OPERATORS, SINGLES
from tracediff.explain.singles import SHARE
from tracediff.explain.tree import ROOT, Node

GROSS = 0.2
"""Part of all movement that is the least scale of a line: where changes cancel, the step's own change is none."""
TOLD = 0.6
"""Part of a node's effects from which one is what happened to it, and of its children's changes from which one child is
named.
"""
CANCELS = 1.3
"""Times its change that the changes of a node's children may add up to, without regard to sign, if it is to stand for
them.
"""
THIRD = 1 / 3
"""Part of the children's changes that one must have, if they are to be named instead of their parent."""
UNIFORM = 0.35
"""Part of the children's changes that may differ from what the parent predicts, if they are to be uniform."""
AGAINST = 3
"""Most lines against the direction of the step's change."""
MOST = 10
"""Most lines."""
ALWAYS_SPLIT = (ROOT, HOST, SINGLES, MIXED)


@dataclass(frozen=True)
class Line:
    """One line: a node, and the labels around it."""

    trail: tuple[str, ...]
    node: Node


@dataclass(frozen=True)
class Lines:
    """What accounts for the step's change, in ns per step: the lines' work, the exposure and the rest.

    Attributes:
        shown: the lines, in the direction of the change first. exposure: same work, now on or off the path, by first
            label. rest: what is in none of them. scale: what their size is judged against.
    """

    shown: tuple[Line, ...]
    exposure: dict[str, float]
    rest: float
    scale: float


def lines_of(root: Node) -> Lines:
    """The lines of a tree."""
    change = root.change
    scale = round(max(abs(change), GROSS * sum(abs(child.work) for child in root.children.values())), 3)  # of ns
    found = [line for line in _cut(root, scale, ()) if line.node.depth and line.node.agrees]
    sign = 1 if change >= 0 else -1
    found.sort(key=lambda line: (-sign * line.node.work, line.node.label))
    most_against = AGAINST if abs(change) >= 1 else MOST // 2  # a step that takes as long has no direction
    along = [line for line in found if sign * line.node.work > 0][: MOST - most_against]
    against = [line for line in found if sign * line.node.work <= 0][::-1][:most_against]
    shown = (*along, *against[::-1])
    exposure = {child.label: child.exposure for child in root.children.values()}
    rest = change - sum(line.node.work for line in shown) - root.exposure
    return Lines(shown, exposure, rest, scale)


def _cut(node: Node, scale: float, trail: tuple[str, ...]) -> list[Line]:
    """The lines of a node: its own, or those of its children where these say more."""
    children = list(node.children.values())
    if not children or isinstance(next(iter(node.children)), int) or (trail and trail[-1] == MIXED):
        return [Line(trail, node)]
    inner = (*trail, node.label) if node.depth else trail
    if len(children) == 1:
        return _cut(children[0], scale, inner)
    counting = [child for child in children if abs(child.work) >= SHARE * scale]
    if not counting or (
        node.label not in ALWAYS_SPLIT
        and node.agrees
        and abs(node.work) >= SHARE * scale
        and _stands_for(node, counting)
    ):
        return [Line(trail, node)]
    out = [line for child in counting for line in _cut(child, scale, inner)]
    others = _together([child for child in children if child not in counting], node)
    if abs(others.work) >= SHARE * scale:
        out.append(Line(inner, others))
    return out


def _stands_for(node: Node, counting: list[Node]) -> bool:
    """Whether one line for ``node`` says as much as lines for its children."""
    children = node.children.values()
    movement = sum(abs(child.work) for child in children)
    effect, share = node.main_effect
    if effect == "amount" and share >= TOLD and movement <= CANCELS * abs(node.work):
        return True
    if node.depth == 1 and node.label in (GPU, OPERATORS):
        return False
    if not node.total.all():  # one side has none of it
        return True
    largest = max(abs(child.work) for child in children)
    if largest >= TOLD * movement:
        return False
    if len(counting) > 1:
        predicted = node.work / float(node.total.sum())
        off = sum(abs(child.work - predicted * float(child.total.sum())) for child in children)
        if off <= UNIFORM * movement:
            return True
    return largest < THIRD * movement


def _together(nodes: list[Node], parent: Node) -> Node:
    """One node for what is too small for lines of its own."""
    label = f"other {SINGLES}" if parent.label == SINGLES else f"rest of {parent.label}" if parent.depth else "rest"
    out = Node(label, parent.depth + 1)
    for node in nodes:
        out.take(node)
    return out
