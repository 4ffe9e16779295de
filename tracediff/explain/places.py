"""Places: the step's path by the line of code, outside of torch, that each part of it runs for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.groups import Group
from tracediff.explain.effects import Floats
from tracediff.explain.leaves import LOADING, Leaves
from tracediff.profile.placement.python_callers import CODE

Operation = tuple[str, str | None, str | None, str | None]
"""Match name, shapes, dtypes and strides of an operator."""
UNPLACED = ""
"""The line of what has none."""


@dataclass
class Place:
    """One line of code on one side.

    Attributes:
        path: ns per step that the step waits for its work; over all places of a side they add up to the step.
        runs: float64[runs] ns per step of its work in each run, on the path or not.
        operations: the operators that it calls → numerators per step.
    """

    path: float
    runs: Floats
    operations: Counter[Operation] = field(default_factory=Counter)


Places = dict[str, Place]
"""``model.py(12): forward``, LOADING or UNPLACED → its place."""


def places_of(leaves: Leaves, groups: Sequence[Group], trees: tuple[CallTree, CallTree]) -> tuple[Places, Places]:
    """The places of both sides."""
    first, second = (_of_side(leaves, groups, tree, side) for side, tree in enumerate(trees))
    return first, second


def _of_side(leaves: Leaves, groups: Sequence[Group], tree: CallTree, side: int) -> Places:
    by_op: dict[str, Counter[str]] = {}
    out: Places = {}

    def at(line: str) -> Place:
        return out.setdefault(line, Place(0.0, np.zeros(len(leaves.runs[side]))))

    for call in tree.calls:
        if call.kind == "op":
            line = call.line or UNPLACED
            by_op.setdefault(call.label, Counter())[line] += call.self_ns
            at(line).operations[call.label, call.shapes, call.types, call.strides] += call.count
    for leaf, kind in enumerate(leaves.kinds):
        if not leaves.total[side, leaf]:
            continue
        for line, part in _parts(leaves, groups, by_op, leaf, kind, side).items():
            place = at(line)
            place.path += part * float(leaves.path[side, leaf])
            place.runs = place.runs + part * leaves.runs[side][:, leaf]
    return out


def _parts(
    leaves: Leaves, groups: Sequence[Group], by_op: dict[str, Counter[str]], leaf: int, kind: str, side: int
) -> dict[str, float]:
    """Line → the part of a leaf's time that is its."""
    name, group = leaves.names[side][leaf], leaves.groups[leaf]
    if kind == "loading":
        return {LOADING: 1.0}
    if kind == "python" and CODE.search(name):
        return {name: 1.0}
    if group >= 0:
        ns: Counter[str] = Counter()
        for item in groups[group].items[side]:
            ns[item.line or UNPLACED] += item.ns
    else:
        ns = by_op.get(leaves.ops[side][leaf] or name, Counter())
    whole = sum(ns.values())
    return {line: part / whole for line, part in ns.items()} if whole else {UNPLACED: 1.0}
