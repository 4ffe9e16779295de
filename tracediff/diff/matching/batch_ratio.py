"""Shapes of calls as they are compared: as recorded, or, where another batch size scales them, less that ratio.

Whether a side's shapes are another batch's is decided operator by operator: one that shares its shapes with the other
side (`fill_ [1]` always does) says nothing of the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from tracediff.aggregate.call_tree import CallTree

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
    """Shapes to compare: without arguments that are no tensors, and without an output that is one more operand."""
    if not shapes:
        return ()
    try:
        given = json.loads(shapes)
    except ValueError:
        return (shapes,)
    kept = [json.dumps(s, separators=(",", ":")) for s in given if s] if isinstance(given, list) else [shapes]
    return tuple(kept[: TENSORS.get(op, len(kept))])


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


def _dimensions(x: Shapes, y: Shapes) -> list[Dimension] | None:
    """Each dimension of two calls; None where their tensors
    differ in number or rank.
    """
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
