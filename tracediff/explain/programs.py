"""What the programs of two sides call, by their call trees: which operators, how often, in which phases and modules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import fsum, isclose, log

from tracediff import bounds, thresholds
from tracediff.aggregate.call_tree import Call, CallTree, Trees
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.explain.amounts import HEAVY, CallShares, flop_calls, nodes_around, work_within
from tracediff.explain.reasons import PLACES
from tracediff.explain.tree import is_near_one
from tracediff.formatting import counts, times, with_more
from tracediff.profile.analyses.leaf_keys import COMPILER
from tracediff.profile.kernels.families import family_of
from tracediff.profile.placement.scopes import BACKWARD, BACKWARD_OP, OTHER, PHASES
from tracediff.structs import Pair


def common(sides: Sequence[Mapping[str, float]], factor: float = 1.0) -> float:
    """The part (0–1) of all calls that both sides make, where control made ``factor`` times as many."""
    both, every = agreeing(sides, factor)
    return both / max(every, 1e-9)


def agreeing(sides: Sequence[Mapping[str, float]], factor: float = 1.0) -> tuple[float, float]:
    """(calls that both sides make, those of either), where control made ``factor`` times as many."""
    pairs = [(factor * sides[0].get(n, 0.0), sides[1].get(n, 0.0)) for n in sides[0].keys() | sides[1].keys()]
    return fsum(map(min, pairs)), fsum(map(max, pairs))  # which does not depend on the order of a set


def median_factor(control: Mapping[str, float], test: Mapping[str, float]) -> float:
    """How many times as often test makes the calls of control that it makes, too; 1 where there are none."""
    ratios = sorted(test[name] / number for name, number in control.items() if test.get(name))
    return ratios[len(ratios) // 2] if ratios else 1.0


def is_contained(sides: Sequence[Mapping[str, float]]) -> bool:
    """Whether one side makes all calls of the other, and more."""
    both, every = agreeing(sides)
    return isclose(both, min(sum(side.values()) for side in sides)) and not isclose(both, every)


def is_mostly_contained(sides: Sequence[Mapping[str, float]]) -> bool:
    """Whether one side makes nearly all calls of the other, and the sides do not make as many."""
    calls = [sum(side.values()) for side in sides]
    return agreeing(sides)[0] >= thresholds.KNOWN_AMOUNT * min(calls) and not isclose(*calls)


OUTERMOST, INNERMOST, EVERY = "in no other", "that hold no other", "within others or not"
"""Which calls of operators are counted."""


def operators(tree: CallTree, which: str) -> dict[str, float]:
    """Operator → calls per step of ``which``; without autograd's nodes, which are around those of the backward pass,
    and without those of a DataLoader and of compilation.
    """
    out: dict[str, float] = defaultdict(float)
    parents = {call.parent for call in tree.calls if call.kind == "op"}
    inside: list[bool] = []  # another operator
    for i, (call, number) in enumerate(operator_calls(tree)):
        around = tree.calls[call.parent] if call.parent >= 0 else None
        inside.append(around is not None and (inside[call.parent] or is_operator(around)))
        is_other = {OUTERMOST: inside[i], INNERMOST: i in parents, EVERY: False}[which]
        if number and is_operator(call) and not is_other:
            out[call.label] += number
    return dict(out)


def is_operator(call: Call) -> bool:
    """Whether it is an operator, and no node of autograd."""
    return call.kind == "op" and not BACKWARD_OP.match(call.label)


def calls_by_shape(tree: CallTree) -> Counter[tuple[str, str | None]]:
    """(operator, shapes of its inputs) → calls, on the scale of ``tree``."""
    calls = Counter[tuple[str, str | None]]()
    for call in tree.calls:
        if call.kind == "op":
            calls[call.label, call.shapes] += call.count
    return calls


def launching_operators(tree: CallTree) -> set[str]:
    """The operators below most calls of which there is work."""
    nodes = {work.node for work in tree.work if work.node >= 0}
    nodes |= nodes_around(tree, nodes)
    calls, launching = Counter[str](), Counter[str]()
    for node, call in enumerate(tree.calls):
        if call.kind == "op":
            calls[call.label] += call.count
            launching[call.label] += call.count if node in nodes else 0
    return {name for name, number in launching.items() if number and number >= thresholds.MOSTLY * calls[name]}


def operator_calls(tree: CallTree) -> Iterator[tuple[Call, float]]:
    """Each call, and how often it calls an operator per step; 0 of what is none, or of a DataLoader or compilation."""
    is_aside: list[bool] = []  # made by a DataLoader or compilation
    for call in tree.calls:
        compiles = call.kind == "annotation" and COMPILER in call.name
        is_aside.append(_loads(call) or compiles or (call.parent >= 0 and is_aside[call.parent]))
        yield call, call.count / tree.denominator if call.kind == "op" and not is_aside[-1] else 0.0


def _loads(call: Call) -> bool:
    return call.kind == "phase" and call.name == PHASES[OTHER]


def loads_data(tree: CallTree) -> bool:
    """Whether a DataLoader calls operators within the steps."""
    return any(call.kind == "op" and call.parent >= 0 and _loads(tree.calls[call.parent]) for call in tree.calls)


def in_parts(trees: Trees) -> str:
    """How many times as often the calls that do the FLOPs are made, if all of them are, as for a batch in parts."""
    calls = trees.map(flop_calls)
    factor = sum(calls[1].values()) / sum(calls[0].values())
    is_all = not is_near_one(factor) and common(calls, factor) >= thresholds.SAME_PROGRAM
    more = f"{times(factor)} × as many" if factor > 1 else f"{times(1 / factor)} × fewer"
    return f"in {more} calls" if is_all else ""


def shared_calls(trees: Trees, pairing: Pairing) -> Pair[CallShares]:
    """Of both sides: the calls that are paired first, then as many of those that are left."""
    calls = Pair(
        _calls_at(trees.control, {node: node for node in pairing.test_of}), _calls_at(trees.test, pairing.control_of)
    )
    shares: Pair[CallShares] = Pair({}, {})
    for key in (key for key in calls[0] if key in calls[1]):
        control, test = places = [side[key] for side in calls]
        both = {node: min(number, test[node][0]) for node, (number, _) in control.items() if node in test and node >= 0}
        left = [fsum(number for number, _ in side.values()) - fsum(both.values()) for side in places]
        for share, side, unpaired in zip(shares, places, left, strict=True):
            whole = fsum(ns for _, ns in side.values())
            paired = fsum(ns * both.get(place, 0) / number for place, (number, ns) in side.items() if number)
            rest = (whole - paired) * min(left) / unpaired if unpaired > 0 else 0.0
            share[key] = (paired + rest) / whole if whole else 1.0
    return shares


def _calls_at(tree: CallTree, shared: Mapping[int, int]) -> dict[tuple[str, str], dict[int, tuple[float, float]]]:
    """(outermost operator, operator) → node in control's tree, −1 of all that only this side makes → (calls, ns of its
    own) per step; ``shared``: node of a call that both sides make → its node in control's tree.
    """
    out: dict[tuple[str, str], dict[int, tuple[float, float]]] = defaultdict(dict)
    outermost: list[str] = []
    for node, call in enumerate(tree.calls):
        around = outermost[call.parent] if call.parent >= 0 else ""
        outermost.append(around or (call.display_name if call.kind == "op" else ""))
        if call.kind == "op":
            calls, place = out[outermost[-1], call.display_name], shared.get(node, -1)
            number, ns = calls.get(place, (0.0, 0.0))
            calls[place] = number + call.count / tree.denominator, ns + call.self_ns / tree.denominator
    return out


Differing = dict[str, tuple[float, float]]
"""Operator → its calls per step on both sides, which are not as many; those first whose other calls take most time."""


def differing_calls(trees: Trees) -> Differing:
    """Of the outermost operators, without those of which there are as many, within others or not; or where all of these
    agree, of those inside them. Of what a side calls only within others, all calls count, as it is not missing there.
    """
    count, total_ns = Counter[str](), Counter[str]()
    for tree in trees:
        for call in tree.calls:
            if call.kind == "op":
                count[call.label] += call.count
                total_ns[call.label] += call.total
    outermost, every = (_differing(*(operators(tree, which) for tree in trees)) for which in (OUTERMOST, EVERY))
    calls = {name: (numbers, every[name]) for name, numbers in outermost.items() if name in every}
    both = {name: own if all(own) or not all(in_all) else in_all for name, (own, in_all) in calls.items()} or every
    cost = {name: abs(b - a) * total_ns[name] / max(count[name], 1) for name, (a, b) in both.items()}
    by_cost = sorted(cost, key=lambda name: (-cost[name], name))
    more = [next((name for name in by_cost if sign * (both[name][1] - both[name][0]) > 0), "") for sign in (-1, 1)]
    order = dict.fromkeys([*sorted(filter(None, more), key=by_cost.index), *by_cost])
    return {name: both[name] for name in order}


def examples_of(differing: Differing, times: Mapping[str, str]) -> str:
    """``aten::conv2d 5 → 7, aten::max_pool2d 2 → 0 (−1.2 ms) + 1 more``; ``times`` of some names, in words."""
    texts = [f"{name} {counts(*numbers)}{times.get(name, '')}" for name, numbers in differing.items()]
    return listed(texts, bounds.CALLS_NAMED)


def in_place(differing: Differing) -> tuple[str, str]:
    """The first operators that only control calls, and that only test does, but for those of a backward pass, which
    follow from others; or empty.
    """
    forward = {name: numbers for name, numbers in differing.items() if "backward" not in name.lower()}
    control = next((name for name, numbers in forward.items() if not numbers[1]), "")
    return control, next((name for name, numbers in forward.items() if not numbers[0]), "")


def _differing(control: Mapping[str, float], test: Mapping[str, float]) -> Differing:
    """Name → its numbers on both sides, where they are not the same but for the rounding of means."""
    both = {name: (control.get(name, 0.0), test.get(name, 0.0)) for name in control.keys() | test.keys()}
    return {name: numbers for name, numbers in both.items() if not isclose(*numbers)}


def listed(names: Sequence[str], most: int = bounds.EXAMPLES) -> str:
    """``aten::mul, aten::add, aten::sum + 2 more``: at most so many names."""
    return with_more(", ".join(names[:most]), len(names[most:]))


def phases_of_operators(tree: CallTree) -> set[str]:
    """The phases in which operators are called."""
    return {phase for phase, call in _in_phases(tree) if call.kind == "op" and call.count}


def recomputed(trees: Trees) -> list[list[str]]:
    """Of each side, the operators that both call outermost in the forward pass, and that side alone in its backward
    pass, too, those that are called most often first; none where none of these is a product, a convolution or
    attention.
    """
    forward, backward = ([_calls_in(tree, is_backward=which) for tree in trees] for which in (False, True))
    both = forward[0].keys() & forward[1].keys()
    sides = []
    for mine, others in zip(backward, reversed(backward), strict=True):
        names = sorted(both & (mine.keys() - others.keys()), key=lambda name: (-mine[name], name))
        sides.append(names if others and any(family_of(name) in HEAVY for name in names) else [])
    return sides


def work_in_backward(tree: CallTree, names: Collection[str]) -> float:
    """ns per step of the work of operators of these ``names``, and of those inside them, in the backward pass."""
    nodes = {
        node
        for node, (phase, call) in enumerate(_in_phases(tree))
        if call.kind == "op" and call.label in names and phase == PHASES[BACKWARD]
    }
    return work_within(tree, nodes) / tree.denominator


def _calls_in(tree: CallTree, *, is_backward: bool) -> Counter[str]:
    """Operator → calls in the backward pass; or before it, of those in no other."""
    calls = Counter[str]()
    for phase, call in _in_phases(tree):
        is_outermost = call.parent < 0 or tree.calls[call.parent].kind != "op"
        if call.kind == "op" and (phase == PHASES[BACKWARD] if is_backward else is_outermost and phase not in PLACES):
            calls[call.label] += call.count
    return calls


def _in_phases(tree: CallTree) -> Iterator[tuple[str, Call]]:
    """Each call with the phase that it is in."""
    phases: list[str] = []
    for call in tree.calls:
        phases.append(call.name if call.parent < 0 else phases[call.parent])
        yield phases[-1], call


def same_inputs(trees: Trees) -> float:
    """The part (0–1) of both sides' self time of calls that both make with inputs of these dtypes and strides; all of
    it where no calls are recorded, of which the kernels' names tell.
    """
    sides = [Counter[tuple[str, str | None, str | None]]() for _ in trees]
    for ns, tree in zip(sides, trees, strict=True):
        for call in tree.calls:
            ns[call.label, call.types, call.strides] += call.self_ns
    whole, both = sum(side.total() for side in sides), sides[0].keys() & sides[1].keys()
    return sum(side[key] for side in sides for key in both) / whole if whole else 1.0


ModulePath = tuple[str, ...]
"""Labels of nested modules, from the outermost."""
ClassCalls = dict[ModulePath, tuple[set[ModulePath], Counter[str]]]
"""Classes of nested modules → (the modules, operator → calls in all steps, within these and what they call)."""


def changed_modules(trees: Trees) -> str:
    """The modules that alone call other operators, or the same with other shapes: ``LM.Block[6] (of 12 Block)``, or
    ``4 of 12 Block in LM``. Empty where most of the model does, or none, and where a side has no modules.
    """
    sides = trees.map(_calls_of_modules)
    paths = sides[0].keys() | sides[1].keys()
    changed = [path for path in paths if sides[0].get(path) != sides[1].get(path)]
    if not all(sides) or not changed:
        return ""
    place = _around_both(min(changed), max(changed))
    if len([path for path in paths if path[: len(place)] == place]) <= thresholds.MOSTLY * len(paths):
        alike = max((_alike(paths, place[:depth]) for depth in range(1, len(place) + 1)), key=len)
        return ".".join(place) + (f" (of {len(alike)} {class_of(min(alike)[-1])})" if len(alike) > 1 else "")
    inside = {path[: len(place) + 1] for path in changed}
    alike = _alike(paths, min(inside))
    if place in inside or not inside <= alike or len(inside) > thresholds.MOSTLY * len(alike):
        return ""
    return " in ".join(filter(None, (f"{len(inside)} of {len(alike)} {class_of(min(inside)[-1])}", ".".join(place))))


def _calls_of_modules(tree: CallTree) -> dict[ModulePath, Counter[tuple[str, str | None]]]:
    """Module → (operator, shapes) → its own calls, on the scale of the tree."""
    calls: dict[ModulePath, Counter[tuple[str, str | None]]] = {}
    for module, call in in_modules(tree):
        if module:
            own = calls.setdefault(module, Counter())
            own[call.label, call.shapes] += call.count if call.kind == "op" else 0
    return calls


def in_modules(tree: CallTree) -> Iterator[tuple[ModulePath, Call]]:
    """Each call with the innermost module that it is, or is in; empty for none."""
    modules: list[ModulePath] = []
    for call in tree.calls:  # parents before children
        around = modules[call.parent] if call.parent >= 0 else ()
        modules.append((*around, call.label) if call.kind == "module" else around)
        yield modules[-1], call


def repeated_modules(control: ClassCalls, test: ClassCalls) -> list[tuple[ModulePath, tuple[int, int], float]]:
    """(class and those around it, how many of it the sides call, how many times as often test makes all operator calls
    in these, 1 if these are more modules) of the outermost modules that differ in it. A module in place of one of
    another class is no more.
    """
    paths = sorted(control.keys() & test.keys(), key=lambda path: (len(path), path))
    numbers = {path: (len(control[path][0]), len(test[path][0])) for path in paths}
    around = [Counter[ModulePath](), Counter[ModulePath]()]
    for modules, side in zip(around, (control, test), strict=True):
        for path, (of_class, _) in side.items():
            modules[path[:-1]] += len(of_class)
    factors: dict[ModulePath, float] = {}
    for path in paths:
        calls = control[path][1].total(), test[path][1].total()
        more_modules, more_calls = (log(after / before) for before, after in (numbers[path], calls))
        is_in_place = around[0][path[:-1]] == around[1][path[:-1]]
        if more_modules and not is_in_place and abs(more_calls) >= thresholds.MOSTLY * abs(more_modules):  # not shared
            factors[path] = 1.0
    for path in paths:
        factor = _factor(control[path][1], test[path][1])
        has_more = any(other[: len(path)] == path for other in factors)  # of what it calls
        if factor != 1 and numbers[path][0] == numbers[path][1] and not has_more:
            factors[path] = factor
    outermost = (path for path in factors if not any(path[:depth] in factors for depth in range(1, len(path))))
    return [(path, numbers[path], factors[path]) for path in outermost]


def _factor(control: Mapping[str, int], test: Mapping[str, int]) -> float:
    """How many times as often test makes the calls of control, if nearly all are so; else 1."""
    factor = median_factor(control, test)
    is_all = common((control, test), factor) >= thresholds.KNOWN_AMOUNT
    return factor if is_all and not is_near_one(factor) else 1.0


def calls_by_class(tree: CallTree) -> ClassCalls:
    """The operator calls of the modules of each class in each place."""
    own: dict[ModulePath, Counter[str]] = defaultdict(Counter)
    for module, call in in_modules(tree):
        if module and call.kind == "op":
            own[module][call.label] += call.count
    out: ClassCalls = defaultdict(lambda: (set(), Counter()))
    for module, of_module in own.items():
        for depth in range(1, len(module) + 1):
            modules, calls = out[tuple(map(class_of, module[:depth]))]
            modules.add(module[:depth])
            calls.update(of_module)
    return out


def _around_both(one: ModulePath, other: ModulePath) -> ModulePath:
    """What both begin with; of the least and the largest of some paths that is what all of these begin with."""
    return tuple(a for a, _ in takewhile(lambda labels: labels[0] == labels[1], zip(one, other, strict=False)))


def _alike(paths: Iterable[ModulePath], path: ModulePath) -> set[ModulePath]:
    """The modules of the class of ``path`` within the module around it."""
    depth = len(path)
    within = {other[:depth] for other in paths if len(other) >= depth and other[:-1][: depth - 1] == path[:-1]}
    return {other for other in within if class_of(other[-1]) == class_of(path[-1])}


def class_of(module: str) -> str:
    """Of ``Block[6]`` or ``Block``, the class."""
    return module.partition("[")[0]
