"""The cascade: level by level, what is left of both sides is matched, until every item is in exactly one group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable

from tracediff.diff.matching.calls import Pairing, shape_key
from tracediff.diff.matching.fusion import by_fusion
from tracediff.diff.matching.groups import Leftover, Match
from tracediff.diff.matching.items import Item
from tracediff.diff.matching.sequence import by_sequence
from tracediff.profile.calltree import CallTree
from tracediff.profile.families import OTHER


def cascade(control: list[Item], test: list[Item], trees: tuple[CallTree, CallTree], pairing: Pairing) -> list[Match]:
    """All items of both sides in groups; items in order of running."""
    left = Leftover(control, test)
    matches: list[Match] = []
    levels: tuple[Callable[[], list[Match]], ...] = (
        lambda: by_operator(left, trees, pairing),
        lambda: _by_key(left, "module", _module),
        lambda: by_fusion(left, matches, trees),
        lambda: by_sequence(left),
        lambda: _by_key(left, "family", _family),
    )
    for level in levels:
        found = level()
        matches += found
        left.take(found)
    return matches + _one_sided(left)


def by_operator(left: Leftover, trees: tuple[CallTree, CallTree], pairing: Pairing) -> list[Match]:
    """Levels exact and op: the items below one call; where only an operator further out has work on both sides, the items below that."""
    held: dict[int, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))  # control call → items below it and below its partner
    partners = pairing.test_of, pairing.control_of
    for side, items in enumerate((left.control, left.test)):
        for item in items:
            at = _paired(trees[side], item.node, partners[side])
            if at >= 0:
                held[at if side == 0 else pairing.control_of[at]][side].append(item)
    moved = True
    while moved:
        moved = False
        for a in sorted(held, key=lambda a: -_depth(trees[0], a)):
            if all(held[a]) or not any(held[a]):
                continue
            side = 0 if held[a][0] else 1
            node = a if side == 0 else pairing.test_of[a]
            outer = _paired(trees[side], trees[side].calls[node].parent, partners[side])
            items = held.pop(a)[side]
            if outer >= 0:
                held[outer if side == 0 else pairing.control_of[outer]][side].extend(items)
                moved = True
    return [(_trust(trees, pairing, *sides), *sides, (a, pairing.test_of[a])) for a, sides in held.items() if all(sides)]


def _paired(tree: CallTree, node: int, partner: dict[int, int]) -> int:
    """The innermost operator at or around ``node`` that has a partner, −1 for none."""
    while node >= 0 and tree.calls[node].kind == "op":
        if node in partner:
            return node
        node = tree.calls[node].parent
    return -1


def _depth(tree: CallTree, node: int) -> int:
    depth = 0
    while node >= 0:
        node, depth = tree.calls[node].parent, depth + 1
    return depth


def _trust(trees: tuple[CallTree, CallTree], pairing: Pairing, control: list[Item], test: list[Item]) -> str:
    """exact where both sides run the same kernels below the same operators, op otherwise."""
    seen = [
        Counter((item.match, shape_key(label(tree, item.node), tree.calls[item.node].shapes), label(tree, item.node)) for item in items)
        for tree, items in zip(trees, (control, test), strict=True)
    ]
    return "exact" if seen[0] == seen[1] and pairing.shapes_agree else "op"


def label(tree: CallTree, node: int) -> str:
    """What the operator at ``node`` is called in matching."""
    return tree.calls[node].label


def _by_key(left: Leftover, level: str, key: Callable[[Item], Hashable]) -> list[Match]:
    """One group for each key that both sides have."""
    sides: list[dict[Hashable, list[Item]]] = []
    for items in (left.control, left.test):
        of: dict[Hashable, list[Item]] = defaultdict(list)
        for item in items:
            of[key(item)].append(item)
        sides.append(of)
    return [(level, items, sides[1][k], None) for k, items in sides[0].items() if k is not None and k in sides[1]]


def _module(item: Item) -> Hashable:
    return (item.module, item.phase) if item.module and item.phase != "unknown" else None


def _family(item: Item) -> Hashable:
    return (item.family, item.phase) if item.family != OTHER else None


def _one_sided(left: Leftover) -> list[Match]:
    """What came and what went, by name, operator, module and phase."""
    matches: list[Match] = []
    for level, items in (("removed", left.control), ("added", left.test)):
        of: dict[Hashable, list[Item]] = defaultdict(list)
        for item in items:
            of[item.match, item.op, item.module, item.phase].append(item)
        matches += [(level, group, [], None) if level == "removed" else (level, [], group, None) for group in of.values()]
    return matches
