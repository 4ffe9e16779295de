"""Pairing two call trees: which call of the control is which call of the test, by shapes as recorded or, where another
batch size scales them, less that ratio.

Whether a side's shapes are another batch's is decided operator by operator: one that shares its shapes with the other
side (`fill_ [1]` always does) says nothing of the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct, field

from tracediff import thresholds
from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.matching.align import Pairs, align, equal_in_turn, only_ones, within_gaps
from tracediff.diff.matching.items import VIEWS, base_name
from tracediff.profile.kernels.families import family_of

TENSORS = {
    "aten::mm": 2,
    "aten::bmm": 2,
    "aten::mv": 2,
    "aten::dot": 2,
    "aten::addmm": 3,
    "aten::baddbmm": 3,
    "aten::_int_mm": 2,
}
"""Operands of operators that compiled code calls with its output as one more."""

Shapes = tuple[str, ...]
"""Shapes of the tensors of one call, as `shape_key` gives them."""
ComparedShapes = dict[str, dict[Shapes, Shapes]]
"""Operator → shapes as recorded → what they are compared as, where that is something else."""
Dimension = tuple[int, int, bool]
"""Control's, test's, and whether it is its tensor's first."""
SCALED = ("scaled",)
"""Stands for all shapes of an operator of which several would become one."""


@lru_cache(maxsize=1 << 16)
def shape_key(op: str, shapes: str | None) -> tuple[str, ...]:
    """Shapes to compare: without arguments that are not tensors, and without an output that is one more operand."""
    if not shapes:
        return ()
    try:
        recorded = json.loads(shapes)
    except ValueError:
        return (shapes,)
    tensor_shapes = (
        [json.dumps(s, separators=(",", ":")) for s in recorded if s] if isinstance(recorded, list) else [shapes]
    )
    return tuple(tensor_shapes[: TENSORS.get(op, len(tensor_shapes))])


def compared_shapes(control: CallTree, test: CallTree) -> tuple[ComparedShapes, ComparedShapes] | None:
    """What the shapes of both sides are compared as; None where a side has no shapes.

    With one ratio r between the sides' dimensions (another batch size), an operator whose shapes differ by no more than
    that, dimension by dimension, has the test's shapes written as the control's.
    """
    shaped = _shapes_by_op(control), _shapes_by_op(test)
    if not shaped[0] or not shaped[1]:
        return None
    ratio = _ratio(_differing(*shaped))
    out: tuple[ComparedShapes, ComparedShapes] = ({}, {})
    if ratio is None:
        return out
    for op in shaped[0].keys() & shaped[1].keys():
        mapped = _mapped(shaped[0][op], shaped[1][op], ratio)
        if mapped is None:
            continue
        if len(set(mapped.values())) == len(mapped):
            out[1][op] = mapped
        else:
            for side, shapes in zip(out, (shaped[0][op], shaped[1][op]), strict=True):
                side[op] = dict.fromkeys(shapes, SCALED)
    return out


def _shapes_by_op(tree: CallTree) -> dict[str, list[Shapes]]:
    out: dict[str, list[Shapes]] = defaultdict(list)
    for call in tree.calls:
        if call.kind == "op" and (key := shape_key(call.label, call.shapes)):
            out[call.label].append(key)
    return out


def _ratio(differing: Iterable[list[Dimension]]) -> Fraction | None:
    """The ratio (test / control) by which most leading dimensions that differ do so, each once per call; None where
    there is no such one.
    """
    ratios: Counter[Fraction] = Counter()
    for call in differing:
        ratios.update({Fraction(t, c) for c, t, leading in call if leading and c})
    if not ratios:
        return None
    (ratio, count), *_ = sorted(ratios.items(), key=lambda r: (-r[1], r[0]))
    return ratio if 2 * count > sum(ratios.values()) else None


def _differing(a: dict[str, list[Shapes]], b: dict[str, list[Shapes]]) -> Iterator[list[Dimension]]:
    """Of each call of both sides the dimensions that differ."""
    for op in a.keys() & b.keys():
        for x, y in zip(a[op], b[op], strict=False):
            yield [dimension for dimension in _dimensions(x, y) or () if dimension[0] != dimension[1]]


def _mapped(control: list[Shapes], test: list[Shapes], ratio: Fraction) -> dict[Shapes, Shapes] | None:
    """Each of the test's shapes → the control's that it is ``ratio`` times; None where one is not that, or no leading
    dimension differs.
    """
    if len(control) != len(test):
        return None
    mapped: dict[Shapes, Shapes] = {}
    scaled = False
    for x, y in zip(control, test, strict=True):
        dims = _dimensions(x, y)
        if dims is None or any(c != t and t != c * ratio for c, t, _ in dims) or mapped.setdefault(y, x) != x:
            return None
        scaled |= any(c != t and leading for c, t, leading in dims)
    return mapped if scaled else None


@lru_cache(maxsize=1 << 16)
def _dimensions(x: Shapes, y: Shapes) -> list[Dimension] | None:
    """Each dimension of two calls; None where their tensors differ in number or rank."""
    a, b = ([list(_flat(json.loads(tensor))) for tensor in shapes] for shapes in (x, y))
    if [len(tensor) for tensor in a] != [len(tensor) for tensor in b]:
        return None
    return [(c, t, k == 0) for p, q in zip(a, b, strict=True) for k, (c, t) in enumerate(zip(p, q, strict=True))]


def _flat(nested: object) -> Iterator[int]:
    if isinstance(nested, list):
        for inner in nested:
            yield from _flat(inner)
    elif isinstance(nested, int):
        yield nested


STEADY = ("gemm", "conv", "attention", "embedding", "communication", "pool", "sort")
"""Families of work that compilers leave where it is."""


class Pairing(Struct):
    """Which calls are the same.

    Attributes:
        test_of: control node → test node. control_of: the other way round.
    """

    test_of: dict[int, int] = field(default_factory=dict)
    control_of: dict[int, int] = field(default_factory=dict)

    def add(self, control: int, test: int) -> None:
        """Pair two calls."""
        self.test_of[control] = test
        self.control_of[test] = control

    def turned(self) -> Pairing:
        """The same with the sides swapped."""
        return Pairing(self.control_of, self.test_of)


class _Side(Struct):
    """A tree with what its calls are compared by.

    Attributes:
        labels: of each call its kind, label and shapes. content: of each call the number of its label and of its
            operators below, in order; views nest by chance of the clock.
    """

    tree: CallTree
    labels: list[tuple[Hashable, ...]]
    children: dict[int, list[int]]
    content: list[int]

    def heavy(self, node: int) -> bool:
        """Whether an operator is of a family that compilers leave where it is."""
        call = self.tree.calls[node]
        return call.kind == "op" and family_of(call.label) in STEADY


def _sides(control: CallTree, test: CallTree) -> tuple[_Side, _Side]:
    numbers: dict[Hashable, int] = {}
    first, second = (
        _side(tree, shapes, numbers)
        for tree, shapes in zip((control, test), compared_shapes(control, test) or (None, None), strict=True)
    )
    return first, second


def _side(tree: CallTree, compared: ComparedShapes | None, numbers: dict[Hashable, int]) -> _Side:
    """A tree with what its calls are compared by.

    Args:
        compared: operator → its shapes as recorded → what they are compared as; None where shapes do not count.
        numbers: of the contents of both sides.
    """
    side = _Side(tree, [_label(call, compared) for call in tree.calls], tree.children(), [0] * len(tree.calls))
    for node in range(len(tree.calls) - 1, -1, -1):  # children come after their parents
        contents = tuple(side.content[c] for c in side.children[node] if not VIEWS.match(base_name(tree.calls[c].name)))
        side.content[node] = numbers.setdefault((side.labels[node], contents), len(numbers))
    return side


def _label(call: Call, compared: ComparedShapes | None) -> tuple[Hashable, ...]:
    if compared is None:
        return call.kind, call.label, ()
    shapes = shape_key(call.label, call.shapes)
    return call.kind, call.label, compared.get(call.label, {}).get(shapes, shapes)


def pair_calls(control: CallTree, test: CallTree) -> Pairing:
    """Pair the calls of both trees: from the phases down by content and order, then what is left by operator and shapes
    within its module.

    Near-linear in the number of calls where the sides resemble each other.
    """
    sides = _sides(control, test)
    pairing = Pairing()
    waiting = [(-1, -1)]
    while waiting:
        a, b = waiting.pop()
        waiting += _pair_in_order(pairing, sides, sides[0].children[a], sides[1].children[b])
    _pair_left_over(pairing, sides)
    return pairing


def _pair_in_order(pairing: Pairing, sides: tuple[_Side, _Side], a: list[int], b: list[int]) -> Pairs:
    """Pair two lists of calls in order of calling: heavy operators first, which give the others their place; by
    content, then by label.

    Returns the new pairs.
    """
    if not a or not b:
        return []
    if [sides[0].content[n] for n in a] == [sides[1].content[n] for n in b]:
        pairs = list(zip(a, b, strict=True))
    else:
        a, b = _called_alike(sides, a, b)
        pairs = [(a[i], b[j]) for i, j in _in_order(sides, a, b)]
    for pair in pairs:
        pairing.add(*pair)
    return pairs


def _in_order(sides: tuple[_Side, _Side], a: list[int], b: list[int]) -> Pairs:
    """Positions in ``a`` and ``b``."""
    lists = tuple(zip(sides, (a, b), strict=True))
    contents: list[list[Hashable]] = [[side.content[n] for n in nodes] for side, nodes in lists]
    labels: list[list[Hashable]] = [[side.labels[n] for n in nodes] for side, nodes in lists]
    heavy = [[i for i, n in enumerate(nodes) if side.heavy(n)] for side, nodes in lists]
    of_heavy: list[list[Hashable]]
    for keys in (labels, contents):
        of_heavy = [[of_side[i] for i in some] for of_side, some in zip(keys, heavy, strict=True)]
        if of_heavy[0] == of_heavy[1]:  # of equal labels: what one holds beside that is no reason for another partner
            break
    pairs = [(heavy[0][i], heavy[1][j]) for i, j in align(*of_heavy)]
    for keys in (contents, labels):
        pairs += within_gaps(sorted(pairs), *keys)
    for keys in (contents, labels):
        pairs += equal_in_turn(pairs, *keys)
    names: list[list[Hashable]] = [[side.labels[n][:2] for n in nodes] for side, nodes in lists]
    return pairs + _only_ones_left(pairs, *names)


def _only_ones_left(pairs: Pairs, a: list[Hashable], b: list[Hashable]) -> Pairs:
    """The elements that ``pairs`` leaves over and that have no equal among those, on either side: of calls without
    their shapes, the same call of another size.
    """
    paired = {i for i, _ in pairs}, {j for _, j in pairs}
    unpaired = [[k for k in range(len(keys)) if k not in mine] for keys, mine in zip((a, b), paired, strict=True)]
    left = only_ones([a[i] for i in unpaired[0]], [b[j] for j in unpaired[1]])
    return [(unpaired[0][i], unpaired[1][j]) for i, j in left]


def _called_alike(sides: tuple[_Side, _Side], a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
    """Without calls that one side makes many times as often: one of many is not the counterpart of a call that replaces
    all of them.
    """
    counts = Counter(sides[0].labels[n] for n in a), Counter(sides[1].labels[n] for n in b)
    batched = {e for e in counts[0].keys() & counts[1].keys() if _batched(counts[0][e], counts[1][e])}
    if not batched:
        return a, b
    return [n for n in a if sides[0].labels[n] not in batched], [n for n in b if sides[1].labels[n] not in batched]


def _batched(few: int, many: int) -> bool:
    few, many = min(few, many), max(few, many)
    return many >= thresholds.BATCHED_CALLS * few and many - few >= 2 * thresholds.BATCHED_CALLS


def _pair_left_over(pairing: Pairing, sides: tuple[_Side, _Side]) -> None:
    """Operators whose parents have no partner: in order of call within their phase and module, by operator and
    shapes.
    """
    places: list[dict[Hashable, list[int]]] = []
    for side, partners in zip(sides, (pairing.test_of, pairing.control_of), strict=True):
        place: dict[Hashable, list[int]] = defaultdict(list)
        where: list[Hashable] = []
        for node, call in enumerate(side.tree.calls):
            path = where[call.parent] if call.parent >= 0 else ()
            where.append((path, call.label) if call.kind in ("phase", "module") else path)
            if call.kind == "op" and node not in partners:
                place[where[node]].append(node)
        turn = _call_order(side)
        places.append({key: sorted(nodes, key=turn.__getitem__) for key, nodes in place.items()})
    for key in places[0].keys() & places[1].keys():
        _pair_in_order(pairing, sides, places[0][key], places[1][key])


def _call_order(side: _Side) -> list[int]:
    """When each node is called: parents before children, siblings in turn."""
    turn = [0] * len(side.tree.calls)
    stack = list(reversed(side.children[-1]))
    for k in range(len(turn)):
        node = stack.pop()
        turn[node] = k
        stack += reversed(side.children[node])
    return turn
