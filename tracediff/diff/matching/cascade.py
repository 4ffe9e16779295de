"""The cascade: level by level, what is left of both sides is matched, until every item is in exactly one group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable

from tracediff import thresholds
from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.matching.call_pairs import Pairing, shape_key
from tracediff.diff.matching.fusion import by_fusion
from tracediff.diff.matching.items import PLACED_AS, Item, Leftover, Match, Nodes, Sides
from tracediff.diff.matching.sequence import by_sequence
from tracediff.pair import NONE, Pair
from tracediff.profile.kernels.families import OTHER


def cascade(control: list[Item], test: list[Item], trees: tuple[CallTree, CallTree], pairing: Pairing) -> list[Match]:
    """All items of both sides in groups; items in order of running."""
    leftover = Leftover(control, test)
    matches: list[Match] = []
    alone: list[Match] = []
    levels: tuple[Callable[[], list[Match]], ...] = (
        lambda: _with_other_sizes(by_operator(leftover, trees, pairing), leftover, trees),
        lambda: _by_key(leftover, "module", _module_of_op),
        lambda: by_fusion(leftover, matches, trees),
        lambda: by_sequence(leftover),
        lambda: _by_key(leftover, "module", _module),
        lambda: _by_key(leftover, "family", _family),
    )
    for level in levels:
        level_matches = level()
        matches += [match for match in level_matches if match[1] and match[2]]
        alone += [match for match in level_matches if not (match[1] and match[2])]
        leftover.take(level_matches)
    matches = _with_rest_of_calls(matches, leftover)
    whole = sum(item.ns for item in (*control, *test))
    return [_placed(match, whole) for match in matches] + alone + _one_sided(leftover)


def _placed(match: Match, whole: int) -> Match:
    """``match``, or, where it is so wide that it names no partner, the same as work that was placed and not matched."""
    level, control, test, shared = match
    wide = (
        max(len(control), len(test)) > thresholds.WIDE_GROUP
        or sum(i.ns for i in (*control, *test)) > thresholds.WIDE_PART * whole
    )
    one_call = max(len({i.node for i in side}) for side in (control, test)) == 1
    return (PLACED_AS[level], control, test, shared) if level in PLACED_AS and wide and not one_call else match


def by_operator(leftover: Leftover, trees: tuple[CallTree, CallTree], pairing: Pairing) -> list[Match]:
    """Levels exact and op: the items below one call; where only an operator further out has work on both sides, the
    items below that.
    """
    # Control call → items below it and below its partner.
    items_of_call: dict[int, Sides] = defaultdict(lambda: ([], []))
    partners = pairing.test_of, pairing.control_of
    for side, items in enumerate((leftover.control, leftover.test)):
        for item in items:
            call = _paired(trees[side], item.node, partners[side])
            if call >= 0:
                items_of_call[call if side == 0 else pairing.control_of[call]][side].append(item)
    depth = _depths(trees[0])
    moved = True
    while moved:
        moved = False
        for a in sorted(items_of_call, key=lambda a: -depth[a]):
            if all(items_of_call[a]) or not any(items_of_call[a]):
                continue
            side = 0 if items_of_call[a][0] else 1
            node = a if side == 0 else pairing.test_of[a]
            outer = _paired(trees[side], trees[side].calls[node].parent, partners[side])
            items = items_of_call.pop(a)[side]
            if outer >= 0:
                items_of_call[outer if side == 0 else pairing.control_of[outer]][side].extend(items)
                moved = True
    pairs = [((a, pairing.test_of[a]), sides) for a, sides in items_of_call.items() if all(sides)]
    return [match for shared, sides in pairs for match in _of_calls(trees, shared, sides)]


def _of_calls(trees: tuple[CallTree, CallTree], shared: tuple[int, int], sides: Sides) -> list[Match]:
    """The work of a pair of calls: one group, and what only one of them does apart, if the rest of what they do is the
    same as often per call.
    """
    calls = [tree.calls[node].count for tree, node in zip(trees, shared, strict=True)]
    counts: list[Counter[Hashable]] = [Counter(), Counter()]
    for of_name, items in zip(counts, sides, strict=True):
        for item in items:
            of_name[item.match] += item.work.count
    both = counts[0].keys() & counts[1].keys()
    alone = [[item for item in items if item.match not in both] for items in sides]
    if all(alone) or not both or any(counts[0][name] * calls[1] != counts[1][name] * calls[0] for name in both):
        alone = [[], []]
    control, test = ([i for i in items if i.match in both] if any(alone) else items for items in sides)
    nodes = (shared[0],), (shared[1],)
    return [(_trust(trees, control, test), control, test, nodes), *_one_sided(Leftover(*alone))]


def _with_other_sizes(matches: list[Match], leftover: Leftover, trees: tuple[CallTree, CallTree]) -> list[Match]:
    """``matches`` where each call that a side makes less often has, of that side, the calls of the same operator in the
    same place that only this side makes, if they are no more than it lacks: ranks and steps with batches of several
    sizes have the same calls of other sizes.
    """
    unmatched = Leftover(leftover.control, leftover.test)
    unmatched.take(matches)
    for side, items in enumerate((unmatched.control, unmatched.test)):
        wanting: dict[Hashable, list[int]] = defaultdict(list)
        for place, match in enumerate(matches):
            if match[3] and _lack(trees, match, side) > 0:
                wanting[_call_place(trees[0], match[3][0][0], match[1][0])].append(place)
        by_call: dict[Hashable, dict[int, list[Item]]] = defaultdict(lambda: defaultdict(list))
        for item in items:
            if item.op is not None:
                by_call[_call_place(trees[side], item.node, item)][item.node].append(item)
        for key in wanting.keys() & by_call.keys():
            _fill(matches, wanting[key], by_call[key], trees, side)
        matches = [match for match in matches if match[1] or match[2]]
    return matches


def _call_place(tree: CallTree, node: int, item: Item) -> Hashable:
    return tree.calls[node].label, item.module, item.phase


def count_of_calls(trees: tuple[CallTree, CallTree], nodes: tuple[Nodes, Nodes]) -> Pair[int]:
    """How often the calls at ``nodes`` of both trees are made."""
    return Pair(*(sum(tree.calls[k].count for k in own) for tree, own in zip(trees, nodes, strict=True)))


def _lack(trees: tuple[CallTree, CallTree], match: Match, side: int) -> int:
    """How many calls of ``match`` a side lacks."""
    calls = count_of_calls(trees, match[3]) if match[3] else NONE
    return calls[1 - side] - calls[side]


def _fill(
    matches: list[Match], places: list[int], rest: dict[int, list[Item]], trees: tuple[CallTree, CallTree], side: int
) -> None:
    """Give those of ``matches`` at ``places`` the calls of ``rest`` (node → items of a side): each in turn the next;
    where these are not as many, all are one group, and the other places are left empty.
    """
    calls = {node: trees[side].calls[node].count for node in rest}
    lacks = [_lack(trees, matches[place], side) for place in places]
    if sum(calls.values()) > sum(lacks):
        return
    if list(calls.values()) == lacks:
        parts = [([place], [node]) for place, node in zip(places, rest, strict=True)]
    else:
        parts = [(places, list(rest))]
    for group, nodes in parts:
        items: Sides = ([], [])
        calls_of: tuple[list[int], list[int]] = ([], [])
        for place in group:
            _, *both, shared = matches[place]
            for k in (0, 1):
                items[k].extend(both[k])
                calls_of[k].extend(shared[k] if shared else ())
            matches[place] = ("op", [], [], None)
        items[side].extend(item for node in nodes for item in rest[node])
        calls_of[side].extend(nodes)
        matches[group[0]] = ("op", *items, (tuple(calls_of[0]), tuple(calls_of[1])))


def _paired(tree: CallTree, node: int, partner: dict[int, int]) -> int:
    """The innermost operator at or around ``node`` that has a partner, −1 for none."""
    while node >= 0 and tree.calls[node].kind == "op":
        if node in partner:
            return node
        node = tree.calls[node].parent
    return -1


def _depths(tree: CallTree) -> list[int]:
    """How many calls are around each."""
    depths: list[int] = []
    for call in tree.calls:
        depths.append(depths[call.parent] + 1 if call.parent >= 0 else 0)
    return depths


def _trust(trees: tuple[CallTree, CallTree], control: list[Item], test: list[Item]) -> str:
    """exact where both sides run the same kernels below the same operators, op otherwise."""
    kernels = [
        Counter(
            (item.match, shape_key(call.label, call.shapes), call.label)
            for item in items
            for call in (tree.calls[item.node],)
        )
        for tree, items in zip(trees, (control, test), strict=True)
    ]
    return "exact" if kernels[0] == kernels[1] else "op"


def _by_key(leftover: Leftover, level: str, key: Callable[[Item], Hashable]) -> list[Match]:
    """One group for each key that both sides have."""
    control, test = _grouped(leftover.control, key), _grouped(leftover.test, key)
    return [(level, items, test[k], None) for k, items in control.items() if k is not None and k in test]


def _grouped(items: list[Item], key: Callable[[Item], Hashable]) -> dict[Hashable, list[Item]]:
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _module_of_op(item: Item) -> Hashable:
    """Of work that an operator launched; other work has its order to go by."""
    return _module(item) if item.op is not None else None


def _module(item: Item) -> Hashable:
    return (item.module, item.phase) if item.module and item.phase != "unknown" else None


def _with_rest_of_calls(matches: list[Match], leftover: Leftover) -> list[Match]:
    """``matches`` where each group of one family has the rest of what its operator calls launched: a kernel that came
    with another, as the quantiser of an attention kernel does, is part of the replacement. What takes longer than the
    other is not: a convolution does not come with the memset before it.
    """
    by_call: tuple[dict[int, Counter[int]], ...] = (defaultdict(Counter), defaultdict(Counter))
    for place, (level, *sides, _) in enumerate(matches):
        if level == "family":
            for ns_of_kind, items in zip(by_call, sides, strict=True):
                for item in items:
                    if item.op is not None:
                        ns_of_kind[item.node][place] += item.ns
    wider = [(level, list(control), list(test), shared) for level, control, test, shared in matches]
    for side, items in enumerate((leftover.control, leftover.test)):
        rest_of: dict[int, list[Item]] = defaultdict(list)
        for item in items:
            if item.node in by_call[side]:
                rest_of[item.node].append(item)
        for node, rest in rest_of.items():
            (place, ns), *others = by_call[side][node].items()
            if not others and sum(item.ns for item in rest) <= ns:
                (wider[place][1], wider[place][2])[side].extend(rest)
    leftover.take(wider)
    return wider


def _family(item: Item) -> Hashable:
    return (item.family, item.phase) if item.family != OTHER else None


def _kind(item: Item) -> Hashable:
    return item.match, item.op, item.module, item.phase


def _one_sided(leftover: Leftover) -> list[Match]:
    """What went and what came, by name, operator, module and phase."""
    removed: list[Match] = [("removed", items, [], None) for items in _grouped(leftover.control, _kind).values()]
    added: list[Match] = [("added", [], items, None) for items in _grouped(leftover.test, _kind).values()]
    return [*removed, *added]
