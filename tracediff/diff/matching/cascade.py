"""The cascade: level by level, what is left of both sides is matched, until every item is in exactly one group."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from itertools import chain

from tracediff import thresholds
from tracediff.aggregate.call_tree import CallTree, Trees
from tracediff.arrays import group_by
from tracediff.diff.matching.call_pairs import Pairing, shape_key
from tracediff.diff.matching.fusion import by_fusion
from tracediff.diff.matching.items import PLACED_AS, Item, Leftover, Match, Sides, scopes_of
from tracediff.diff.matching.sequence import by_sequence
from tracediff.profile.kernels.families import OTHER
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import MEMCPY
from tracediff.structs import Pair


def cascade(items: Sides, trees: Trees, pairing: Pairing) -> list[Match]:
    """All items of both sides in groups; items in order of running."""
    leftover, scopes = Leftover(items), scopes_of(items, trees)
    matches: list[Match] = []
    alone: list[Match] = []
    levels: tuple[Callable[[], list[Match]], ...] = (
        lambda: _with_other_sizes(by_operator(leftover, trees, pairing), leftover, trees),
        lambda: _by_key(leftover, "module", _module_of_op),
        lambda: by_fusion(leftover, matches, trees),
        lambda: by_sequence(leftover, scopes),
        lambda: _by_key(leftover, "module", _module),
        lambda: _by_key(
            leftover, "family", lambda item: (item.family, *scopes[id(item)]) if item.family != OTHER else None
        ),
    )
    for level in levels:
        level_matches = level()
        matches += [match for match in level_matches if all(match.items)]
        alone += [match for match in level_matches if not all(match.items)]
        leftover.take(level_matches)
    _add_rest_of_calls(matches, leftover)
    whole = sum(item.ns for item in chain(*items))
    return [part for match in matches for part in _placed(match, whole)] + alone + _one_sided(leftover.items)


def _placed(match: Match, whole: int) -> list[Match]:
    """``match``; where it is so wide that it names no partner, by operator, as work that was placed and not matched."""
    level, items, _ = match
    if level not in PLACED_AS:
        return [match]
    wide = (
        max(map(len, items)) > thresholds.WIDE_GROUP or sum(i.ns for i in chain(*items)) > thresholds.WIDE_PART * whole
    )
    one_call = max(len({i.node for i in side}) for side in items) == 1
    if not wide or one_call:
        return [match]
    return [part._replace(level=PLACED_AS[level]) if all(part.items) else part for part in _in_operators(match)]


def _in_operators(match: Match) -> list[Match]:
    """``match`` in parts: one for each operator of both sides, and one for all that only one side calls, unless what
    the other calls in its place takes next to no time.
    """
    names = match.items.map(lambda side: {_operator(item) for item in side})
    shared = names.control & names.test
    parts = match.items.map(lambda side: group_by(side, lambda item: op if (op := _operator(item)) in shared else None))
    lone = parts.map(lambda side: side.pop(None, []))
    out = [match._replace(items=Pair(items, parts.test[op])) for op, items in parts.control.items()]
    return [*out, match._replace(items=lone)] if _are_comparable(lone) else [*out, *_one_sided(lone)]


def _are_comparable(sides: Sides) -> bool:
    ns = sides.map(lambda side: sum(item.ns for item in side))
    return all(sides) and min(ns) >= thresholds.WORTH_A_LINE * max(ns)


def _operator(item: Item) -> Hashable:
    """What launched it, or the work itself; a copy is other work than a kernel, or than a copy the other way."""
    return item.match_name if item.category == MEMCPY else item.category, match_name(item.op or item.name)


def by_operator(leftover: Leftover, trees: Trees, pairing: Pairing) -> list[Match]:
    """Levels exact and op: the items below one call; where only an operator further out has work on both sides, the
    items below that.
    """
    # Control call → items below it and below its partner.
    items_of_call: dict[int, Sides] = defaultdict(lambda: Pair([], []))
    partners = pairing.test_of, pairing.control_of
    for side, items in enumerate(leftover.items):
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
    pairs = [(Pair(a, pairing.test_of[a]), sides) for a, sides in items_of_call.items() if all(sides)]
    return [match for shared, sides in pairs for match in _of_calls(trees, shared, sides)]


def _of_calls(trees: Trees, shared: Pair[int], sides: Sides) -> list[Match]:
    """The work of a pair of calls: one group, and what only one of them does apart, if the rest of what they do is the
    same as often per call.
    """
    calls = [tree.calls[node].count for tree, node in zip(trees, shared, strict=True)]
    counts: list[Counter[Hashable]] = [Counter(), Counter()]
    for of_name, items in zip(counts, sides, strict=True):
        for item in items:
            of_name[item.match] += item.count
    both = counts[0].keys() & counts[1].keys()
    alone = sides.map(lambda items: [item for item in items if item.match not in both])
    if all(alone) or not both or any(counts[0][name] * calls[1] != counts[1][name] * calls[0] for name in both):
        alone = Pair([], [])
    shared_work = sides.map(lambda items: [item for item in items if item.match in both]) if any(alone) else sides
    return [Match(_trust(trees, shared_work), shared_work, shared.map(lambda node: (node,))), *_one_sided(alone)]


def _with_other_sizes(matches: list[Match], leftover: Leftover, trees: Trees) -> list[Match]:
    """``matches`` where each call that a side makes less often has, of that side, the calls of the same operator in the
    same place that only this side makes, if they are no more than it lacks: ranks and steps with batches of several
    sizes have the same calls of other sizes.
    """
    unmatched = Leftover(leftover.items)
    unmatched.take(matches)
    for side, items in enumerate(unmatched.items):
        wanting: dict[Hashable, list[int]] = defaultdict(list)
        for place, match in enumerate(matches):
            if _lack(trees, match, side) > 0:
                wanting[_call_place(trees[0], match.calls[0][0], match.items[0][0])].append(place)
        by_call: dict[Hashable, dict[int, list[Item]]] = defaultdict(lambda: defaultdict(list))
        for item in items:
            if item.op is not None:
                by_call[_call_place(trees[side], item.node, item)][item.node].append(item)
        for key in wanting.keys() & by_call.keys():
            _fill(matches, wanting[key], by_call[key], trees, side)
        matches = [match for match in matches if any(match.items)]
    return matches


def _call_place(tree: CallTree, node: int, item: Item) -> Hashable:
    return tree.calls[node].label, item.module, item.phase


def count_of_calls(trees: Trees, match: Match) -> Pair[int]:
    """How often the calls of ``match`` are made on both sides."""
    return Pair(*(sum(tree.calls[k].count for k in nodes) for tree, nodes in zip(trees, match.calls, strict=True)))


def _lack(trees: Trees, match: Match, side: int) -> int:
    """How many calls of ``match`` a side lacks."""
    calls = count_of_calls(trees, match)
    return calls[1 - side] - calls[side]


def _fill(matches: list[Match], places: list[int], rest: dict[int, list[Item]], trees: Trees, side: int) -> None:
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
        items: Sides = Pair([], [])
        shared: Pair[list[int]] = Pair([], [])
        for place in group:
            for k in (0, 1):
                items[k].extend(matches[place].items[k])
                shared[k].extend(matches[place].calls[k])
            matches[place] = Match("op", Pair([], []))
        items[side].extend(item for node in nodes for item in rest[node])
        shared[side].extend(nodes)
        matches[group[0]] = Match("op", items, shared.map(tuple))


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


def _trust(trees: Trees, sides: Sides) -> str:
    """exact where both sides run the same kernels below the same operators, op otherwise."""
    kernels = [
        Counter(
            (item.match, shape_key(call.label, call.shapes), call.label)
            for item in items
            for call in (tree.calls[item.node],)
        )
        for tree, items in zip(trees, sides, strict=True)
    ]
    return "exact" if kernels[0] == kernels[1] else "op"


def _by_key(leftover: Leftover, level: str, key: Callable[[Item], Hashable]) -> list[Match]:
    """One group for each key that both sides have."""
    control, test = (group_by(side, key) for side in leftover.items)
    return [Match(level, Pair(items, test[k])) for k, items in control.items() if k is not None and k in test]


def _module_of_op(item: Item) -> Hashable:
    """Of work that an operator launched; other work has its order to go by."""
    return _module(item) if item.op is not None else None


def _module(item: Item) -> Hashable:
    return (item.module, item.phase) if item.module and item.phase != "unknown" else None


def _add_rest_of_calls(matches: list[Match], leftover: Leftover) -> None:
    """Add to each group of one family the rest of what its operator calls launched: a kernel that came with another, as
    the quantiser of an attention kernel does, is part of the replacement. What takes longer than the other is not: a
    convolution does not come with the memset before it.
    """
    by_call: tuple[dict[int, Counter[int]], ...] = (defaultdict(Counter), defaultdict(Counter))
    for place, match in enumerate(matches):
        if match.level == "family":
            for ns_of_kind, items in zip(by_call, match.items, strict=True):
                for item in items:
                    if item.op is not None:
                        ns_of_kind[item.node][place] += item.ns
    for side, items in enumerate(leftover.items):
        rest_of_calls = group_by([item for item in items if item.node in by_call[side]], lambda item: item.node)
        for node, rest in rest_of_calls.items():
            (place, ns), *others = by_call[side][node].items()
            if not others and sum(item.ns for item in rest) <= ns:
                matches[place].items[side].extend(rest)
    leftover.take(matches)


def _kind(item: Item) -> Hashable:
    return item.match, item.op, item.module, item.phase


def _one_sided(sides: Sides) -> list[Match]:
    """What went and what came, by name, operator, module and phase."""
    removed, added = (group_by(side, _kind).values() for side in sides)
    return [
        *(Match("removed", Pair(items, [])) for items in removed),
        *(Match("added", Pair([], items)) for items in added),
    ]
