"""Level fusion: a fused kernel against the operators that it computes.

What was matched before gives anchors (matrix products, mostly) that occur in the same order on both sides. Between the
same two anchors an operator belongs to the first fused kernel of the other side that lists it; a kernel shares its
group with another that lists one of the same operators.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable

from tracediff import bounds
from tracediff.aggregate.call_tree import CallTree, Trees
from tracediff.arrays import group_by
from tracediff.diff.matching.align import Joined, align, ascending, equal_in_turn
from tracediff.diff.matching.call_pairs import STEADY, shape_key
from tracediff.diff.matching.items import VIEWS, Item, Leftover, Match, Sides, base_name
from tracediff.structs import Pair

PRODUCTS = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1, "_scaled_mm": 0}
"""Matrix products by base name → position of their first factor."""


def by_fusion(leftover: Leftover, matches: list[Match], trees: Trees) -> list[Match]:
    """Groups of fused kernels with the operators they compute, phase by phase."""
    fusions: list[Match] = []
    for phase, (a, b) in leftover.by_phase():
        both = {i.match_name for i in a if i.fused} & {
            i.match_name for i in b if i.fused
        }  # their partners are each other, which other levels find
        a, b = ([i for i in items if i.match_name not in both] for items in (a, b))
        if a and b and any(i.fused for i in (*a, *b)):
            fusions += _in_phase(a, b, [m.items for m in matches if m.items[0][0].phase == phase], trees)
    return fusions


def _in_phase(a: list[Item], b: list[Item], matched: list[Sides], trees: Trees) -> list[Match]:
    products = _products(a, b, trees)
    heavy = [(x, y) for x, y in matched if x[0].family in STEADY]
    anchors = ascending([(_first(x), _first(y)) for x, y in (*heavy, *products)])
    joined: Joined[int] = Joined()
    for x, y in products:
        for item in (*x, *y):
            joined.join(id(x[0]), id(item))
    apart = set(STEADY).intersection(*({i.family for i in items if not i.fused} for items in (a, b)))
    sides = (_by_gap(a, [x for x, _ in anchors]), _by_gap(b, [y for _, y in anchors]))
    for gap in sorted(sides[0].keys() & sides[1].keys()):
        here = sides[0][gap], sides[1][gap]
        for items, others, tree in ((here[0], here[1], trees[0]), (here[1], here[0], trees[1])):
            # Two fused kernels are partners by their order, if at all; so are products where both sides run them.
            unfused = [i for i in items if not i.fused and i.family not in apart]
            _give_to_kernels(unfused, [k for k in others if k.fused], tree, joined)
    return _matches(joined, a, b)


def _matches(joined: Joined[int], a: list[Item], b: list[Item]) -> list[Match]:
    """The groups that hold items of both sides."""
    place = {member: number for number, group in enumerate(joined.groups()) for member in group}
    groups: dict[int, Sides] = defaultdict(lambda: Pair([], []))
    for side, items in enumerate((a, b)):
        for item in items:
            if id(item) in place:
                groups[place[id(item)]][side].append(item)
    return [Match("fusion", sides) for sides in groups.values() if all(sides)]


def _give_to_kernels(items: list[Item], kernels: list[Item], tree: CallTree, joined: Joined[int]) -> None:
    """Join each item to the first of ``kernels`` that computes its operator (or one further out), and kernels that
    share an operator.
    """
    chains = [list(_lists(item, tree)) for item in items] if kernels else []
    computing = _computing(kernels, {op for chain in chains for op in chain})
    names = {k.match_name for k in kernels}
    owner: dict[str, Item] = {}
    joined_ops: set[tuple[str, str]] = set()
    for item, chain in zip(items, chains, strict=False):
        own_name = item.match_name if item.match_name in names else ""
        for op in chain:
            first = next((k for k in computing.get(op, ()) if k.match_name != item.match_name), None)
            if first is None:
                continue
            joined.join(id(item), id(owner.setdefault(op, first)))
            if not VIEWS.match(op) and (op, own_name) not in joined_ops:
                joined_ops.add((op, own_name))
                for kernel in computing[op]:
                    if kernel.match_name != own_name:
                        joined.join(id(kernel), id(first))
            break


def _computing(kernels: list[Item], ops: set[str]) -> dict[str, list[Item]]:
    """Base name of an operator → the kernels whose lists hold it, in order: a list is searched for all of ``ops`` at
    once, by as many of its words as an operator has.
    """
    lengths = sorted({op.count("_") + 1 for op in ops if op.count("_") < bounds.OPERATOR_WORDS})
    listed_ops: dict[tuple[str, ...], set[str]] = {}
    kernels_of_op: dict[str, list[Item]] = defaultdict(list)
    for kernel in kernels:
        if kernel.fused not in listed_ops:
            lists = [entry.split("_") for entry in kernel.fused]
            listed_ops[kernel.fused] = {
                op
                for words in lists
                for length in lengths
                for k in range(len(words) - length + 1)
                if (op := "_".join(words[k : k + length])) in ops
            }
        for op in listed_ops[kernel.fused]:
            kernels_of_op[op].append(kernel)
    return kernels_of_op


def _lists(item: Item, tree: CallTree) -> Iterable[str]:
    """Base names that a fused kernel's list may have for ``item``: its operators from the innermost outwards, those
    that move data first.
    """
    chain, node = [base_name(item.match_name)] if item.op is None or item.match_name == item.op else [], item.node
    while node >= 0 and tree.calls[node].kind == "op":
        chain.append(base_name(tree.calls[node].name))
        node = tree.calls[node].parent
    chain = list(dict.fromkeys(chain))
    return sorted(chain, key=lambda op: VIEWS.match(op) is not None)


def _products(a: list[Item], b: list[Item], trees: Trees) -> list[tuple[list[Item], list[Item]]]:
    """What calls of matrix products of equal dimensions run, in order: compiled code computes a biased product as a
    plain one and adds the bias elsewhere.
    """
    sides = []
    for items, tree in ((a, trees[0]), (b, trees[1])):
        candidates = (item for item in items if item.family == "gemm" or not item.fused)
        of_call = group_by(candidates, lambda item: item.node)
        dims = {node: _dimensions(node, tree) for node in of_call}
        sides.append([(of_call[node], d) for node, d in dims.items() if d])
    dims_of = [d for _, d in sides[0]], [d for _, d in sides[1]]
    pairs = align(*dims_of)
    pairs += equal_in_turn(pairs, *dims_of)
    return [(sides[0][i][0], sides[1][j][0]) for i, j in pairs]


def _dimensions(node: int, tree: CallTree) -> Hashable:
    """(rows, inner, columns) of the matrix product that a call is, None for other calls."""
    if node < 0 or tree.calls[node].kind != "op":
        return None
    call = tree.calls[node]
    first = PRODUCTS.get(base_name(call.name))
    shapes = shape_key(call.label, call.shapes)
    if first is None or len(shapes) < first + 2:
        return None
    try:
        x, y = json.loads(shapes[first]), json.loads(shapes[first + 1])
        return (*x, y[-1])
    except (ValueError, TypeError, IndexError):
        return None


def _first(items: list[Item]) -> int:
    return min(item.order for item in items)


def _by_gap(items: list[Item], anchors: list[int]) -> dict[int, list[Item]]:
    """Items by how many anchors ran before them."""
    return group_by(items, lambda item: bisect_right(anchors, item.order))
