"""Work by the call that holds it: an annotation that a side calls more often, further modules of a class, functions and
operators that one side alone calls; and what one side does in place of other work. Each is one part of the tree,
whatever families its kernels are of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from tracediff import thresholds
from tracediff.aggregate.averages import ANNOTATION
from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.explain.amounts import HEAVY
from tracediff.explain.called import function_of, is_own_name
from tracediff.explain.leaves import largest_kernel, operator_of
from tracediff.explain.programs import ClassCalls, ModulePath, class_of, in_modules, is_operator
from tracediff.explain.repeated import OPTIMIZERS, Repeated
from tracediff.formatting import ARROW, with_more
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import family_of
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.placement.scopes import OPTIMIZER, PHASES
from tracediff.structs import Pair, total

OPERATOR = "::"
"""In the names of operators."""
Holder = Callable[[Item], str]
"""The name of what holds work of one side; empty where nothing does."""
Place = tuple[int, int]
"""The innermost call that both sides make around another, and which of the calls in it that both make, and that contain
gemm, convolution or attention, precedes that; their nodes in control's tree, −1 where there is none.
"""
Region = tuple[Place, str]
"""A place, and the function of Python that its work runs for; empty where the other side does not have it."""


def holders_of(comparison: Comparison, repeated: Sequence[Repeated], classes: Pair[ClassCalls]) -> dict[int, str]:
    """Index of a group of work → the call that holds all of it. ``classes`` are of both sides' modules.

    Annotations that are ``repeated``, optimizers, and an annotation, module or kernel that alone changed hold the work
    of both sides; modules of which there are more, and what the other side does not call, that of one side, and what
    replaces it that of both.
    """
    groups, trees = comparison.work.groups, comparison.trees
    out = _of_both_sides(comparison, repeated)
    rest = {g: group for g, group in enumerate(groups) if g not in out}
    out |= _in_region(rest, trees) or _of_one_kernel(rest)
    in_place = {g: group for g, group in rest.items() if g not in out and (not all(group.members) or _is_unlike(group))}
    one_sided = {g: group for g, group in in_place.items() if not all(group.members)}
    if not in_place:
        return out
    modules = {one.path: one.name for one in repeated if one.path and one.factor == 1}
    out |= _held(one_sided, trees.map(lambda tree: _outermost(tree, lambda _, module: modules.get(module, ""))))
    one_sided = {g: group for g, group in one_sided.items() if g not in out}
    own = _held(one_sided, _own_calls(trees, classes))
    families: dict[str, set[str]] = defaultdict(set)
    for g, name in own.items():
        families[name].add(groups[g].family)
    says_more = {name for name, some in families.items() if len(some) > 1 or OPERATOR not in name}  # than its family
    own = {g: name for g, name in own.items() if name in says_more}
    in_place = {g: group for g, group in in_place.items() if g not in out}
    holders = out | own | _replacements(in_place, own, comparison)
    return {g: name for g, name in holders.items() if name}


def _of_both_sides(comparison: Comparison, repeated: Sequence[Repeated]) -> dict[int, str]:
    """Index of a group → the annotation, or the optimizer, that holds it; see `holders_of`."""
    annotations = _replaced_annotations(comparison.ops) | {one.raw_name: one.name for one in repeated if one.raw_name}
    if not annotations:
        return {}
    annotations |= _of_the_optimizer(comparison.ops, annotations)

    def name_of(call: Call, _: ModulePath) -> str:
        return annotations.get(call.name, "") if call.kind in ("annotation", "phase") else ""

    groups = dict(enumerate(comparison.work.groups))
    return _held(groups, comparison.trees.map(lambda tree: _outermost(tree, name_of)))


def _in_region(groups: Mapping[int, Group], trees: Pair[CallTree]) -> dict[int, str]:
    """Index of a group → the smallest annotation, or class of modules, that holds it, if it holds most of what moved,
    and on a side less than half of the time, and neither one family of work, nor one group of it, nor what one side
    alone does is most of that.
    """
    regions = trees.map(_regions)
    inside: dict[str, list[int]] = defaultdict(list)
    moved, of_family = 0, Counter[str]()
    for g, group in groups.items():
        moved += abs(group.delta)
        of_family[group.family] += group.delta
        around = [of_side[item.node] for of_side, items in zip(regions, group.items, strict=True) for item in items]
        for name in frozenset.intersection(*around) if around else ():
            inside[name].append(g)
    if not moved or max(map(abs, of_family.values())) >= thresholds.MAIN_PART * moved:
        return {}
    whole, smallest = total(group.time for group in groups.values()), (1.0, "")
    for name, some in inside.items():
        time = total(groups[g].time for g in some)
        part = min(ns / of_all if of_all else 1.0 for ns, of_all in zip(time, whole, strict=True))
        is_most = abs(time.delta) >= thresholds.MAIN_PART * moved and time.delta * whole.delta > 0
        is_of_one = max(abs(groups[g].delta) for g in some) >= thresholds.MOSTLY * abs(time.delta)
        one_sided = sum(groups[g].delta for g in some if not all(groups[g].members))
        is_replaced = abs(one_sided) >= thresholds.MOSTLY * abs(time.delta)
        if is_most and not is_of_one and not is_replaced and part < thresholds.MOSTLY:
            smallest = min(smallest, (part, name))
    return dict.fromkeys(inside.get(smallest[1], ()), smallest[1])


def _of_one_kernel(groups: Mapping[int, Group]) -> dict[int, str]:
    """Index of a group → the kernel of both sides, if it holds most of what moved, and several operators launch it."""
    of_kernel: dict[str, list[int]] = defaultdict(list)
    for g, group in groups.items():
        control, test = map(largest_kernel, group.members)
        if control == test:
            of_kernel[control].append(g)
    moved = sum(abs(group.delta) for group in groups.values())
    for name, some in of_kernel.items():
        delta, operators = sum(groups[g].delta for g in some), {operator_of(groups[g]) for g in some}
        if abs(delta) >= max(thresholds.MAIN_PART * moved, 1) and len(operators) > 1:
            return dict.fromkeys(some, name)
    return {}


def _regions(tree: CallTree) -> list[frozenset[str]]:
    """Of each call, the annotations and the classes of the modules at or around it; last, of work without one."""
    out: list[frozenset[str]] = []
    for call in tree.calls:
        around = out[call.parent] if call.parent >= 0 else frozenset()
        name = call.label if call.kind == "annotation" else class_of(call.label) if call.kind == "module" else ""
        out.append(around | {name} if name else around)
    return [*out, frozenset()]


def _outermost(tree: CallTree, name_of: Callable[[Call, ModulePath], str]) -> Holder:
    """The outermost call around work that has a name; ``name_of``: (call, classes of the module that it is, and of
    those around it; empty of other calls) → its name.
    """
    around: list[str] = []
    for module, call in in_modules(tree):
        name = around[call.parent] if call.parent >= 0 else ""
        around.append(name or name_of(call, tuple(map(class_of, module)) if call.kind == "module" else ()))
    return lambda item: around[item.node] if item.node >= 0 else ""


def _held(groups: Mapping[int, Group], holders: Pair[Holder]) -> dict[int, str]:
    """Index of a group → what holds all its work."""
    out = {}
    for g, group in groups.items():
        names = {holder(item) for holder, items in zip(holders, group.items, strict=True) for item in items}
        if len(names) == 1 and (name := names.pop()):
            out[g] = name
    return out


def _of_the_optimizer(ops: Iterable[Op], annotations: Mapping[str, str]) -> dict[str, str]:
    """The phase of optimizers → the name of its annotation, if each side has one optimizer and it is among these."""
    steps = [{op.raw_name for op in ops if op.raw_name.startswith(OPTIMIZERS) and op.count[side]} for side in (0, 1)]
    names = {annotations.get(name, "") for side in steps for name in side}
    if len(names) != 1 or not len(steps[0]) == len(steps[1]) == 1:
        return {}
    return {PHASES[OPTIMIZER]: names.pop()}


def _replaced_annotations(ops: Iterable[Op]) -> dict[str, str]:
    """``Optimizer.step#AdamW.step`` → ``AdamW.step → SGD.step``: annotations by torch of what one side alone calls."""
    annotated = [op for op in ops if op.category == ANNOTATION and "#" in op.raw_name]
    sides = [{op.raw_name for op in annotated if op.count[side]} for side in (0, 1)]
    kinds: dict[str, Pair[list[str]]] = defaultdict(lambda: Pair([], []))
    for side, names in enumerate(sides):
        for name in sorted(names - sides[1 - side]):
            kinds[name.partition("#")[0]][side].append(name)
    return {
        name: ARROW.join(one[0].partition("#")[2] for one in both if one)
        for both in kinds.values()
        if max(map(len, both)) == 1  # else nothing shows which replaces which
        for name in chain(*both)
    }


def _own_calls(trees: Pair[CallTree], classes: Pair[ClassCalls]) -> Pair[Holder]:
    """The function, or else the outermost operator, annotation or class of modules, around work that the other side
    does not call at all.
    """
    functions = trees.map(lambda tree: {function_of(call.line) for call in tree.calls if call.line})
    labels = trees.map(lambda tree: {(call.kind, call.label) for call in tree.calls})

    def holder(side: int) -> Holder:
        def own_name(call: Call, module: ModulePath) -> str:
            is_own = (call.kind, call.label) not in labels[1 - side]
            if call.kind == "annotation" and is_own:
                return call.label
            if module and all(classes):
                return module[-1] if module in classes[side] and module not in classes[1 - side] else ""
            return display_name(call.label) if is_operator(call) and is_own else ""

        around = _outermost(trees[side], own_name)

        def name_of(item: Item) -> str:
            function = function_of(item.line) if item.line and functions[1 - side] else ""
            is_own = is_own_name(function) and function not in functions[1 - side]
            return function if is_own else around(item)

        return name_of

    return Pair(holder(0), holder(1))


def _replacements(groups: Mapping[int, Group], names: Mapping[int, str], comparison: Comparison) -> dict[int, str]:
    """Index of a group → ``aten::bmm + 2 more → attention``, of all the work in the places of its own, where the other
    side does other work; empty where the place is not known well enough to say so.

    Args:
        groups: those of one side, or of work that is not alike, by index.
        names: index of a group → what one side alone calls that holds it, if anything does.
    """
    regions = _places_of(groups, comparison)
    out: dict[int, str] = {}
    for some in _connected(regions):
        inside = {g for region in some for g in regions[region]}
        ns: Pair[Counter[str]] = Pair(Counter(), Counter())
        for g in inside:
            for of_side, members in zip(ns, groups[g].members, strict=True):
                for member in members:
                    of_side[names.get(g) or _operator(member) or member.family] += member.ns
        least, most = sorted(of_side.total() for of_side in ns)
        if least and least >= thresholds.WORTH_A_LINE * most:  # next to nothing replaces nothing
            is_known = any(_is_known(region, comparison.trees.control) for region in some)
            what = f"{ARROW.join(map(_largest, ns))}{_where(some, comparison.trees.control)}"
            out |= dict.fromkeys(inside, what if is_known else "")
    return out


def _places_of(groups: Mapping[int, Group], comparison: Comparison) -> dict[Region, list[int]]:
    """Region → indices of the groups that have work there."""
    trees, pairing = comparison.trees, comparison.pairing
    shared = Pair({node: node for node in pairing.test_of}, pairing.control_of)
    places = Pair(*map(_calls_around, trees, shared))
    functions = trees.map(lambda tree: {function_of(call.line) for call in tree.calls if call.line})

    def region(item: Item, side: int) -> Region:
        function = function_of(item.line) if item.line else ""
        return places[side][item.node], function if function in functions[1 - side] else ""

    out: dict[Region, list[int]] = defaultdict(list)
    for g, group in groups.items():
        for where in {region(item, side): None for side in (0, 1) for item in group.items[side]}:
            out[where].append(g)
    return out


def _operator(item: Item) -> str:
    """The operator that launched it, or that it is; empty of kernels that none did."""
    name = (item.op or "") if item.category in GPU_WORK else item.name
    return display_name(match_name(name)) if name else ""


def _is_unlike(group: Group) -> bool:
    """Whether it is all else of a module, of other families on the other side."""
    families = {members[0].family for members in group.members if members}
    return bool(group.module) and "module" in group.level and len(families) > 1


def _calls_around(tree: CallTree, shared: Mapping[int, int]) -> list[Place]:
    """Of each call its place; last, of work without one. ``shared``: node of a call that both sides make → its node in
    control's tree.
    """
    is_heavy = [is_operator(call) and family_of(call.label) in HEAVY for call in tree.calls]
    for node in range(len(tree.calls) - 1, -1, -1):  # children come after their parents
        if is_heavy[node] and tree.calls[node].parent >= 0:
            is_heavy[tree.calls[node].parent] = True
    out: list[Place] = [(-1, -1)] * (len(tree.calls) + 1)
    for parent, children in sorted(tree.children().items()):
        place, before = out[parent]
        for node in children:
            out[node] = (shared[node], -1) if node in shared else (place, before)
            if node in shared and is_heavy[node] and (parent < 0 or parent in shared):
                before = shared[node]
    return out


def _connected(regions: Mapping[Region, Sequence[int]]) -> Iterator[list[Region]]:
    """Regions that share a group, directly or by others: those of equal layers do."""
    of_group: dict[int, list[Region]] = defaultdict(list)
    for region, inside in regions.items():
        for g in inside:
            of_group[g].append(region)
    left = dict.fromkeys(regions)
    while left:
        together = [left.popitem()[0]]
        for region in together:
            near = dict.fromkeys(other for g in regions[region] for other in of_group[g] if other in left)
            together += near
            for other in near:
                del left[other]
        yield together


def _is_known(region: Region, control: CallTree) -> bool:
    """Whether a region is less than all that a phase runs."""
    (node, before), function = region
    return bool(function) or before >= 0 or bool(_name_of(node, control))


def _where(regions: Sequence[Region], control: CallTree) -> str:
    """`` in forward()``: the function, or else the call, if it is one, that all are in."""
    names = {function or _name_of(node, control) for (node, _), function in regions}
    return f" in {name}" if len(names) == 1 and (name := names.pop()) else ""


def _name_of(node: int, control: CallTree) -> str:
    """What a call is called, of modules their class; empty of phases, and of none."""
    if node < 0 or (call := control.calls[node]).kind == "phase":
        return ""
    return class_of(call.label) if call.kind == "module" else call.display_name


def _largest(ns: Counter[str]) -> str:
    """``aten::bmm + 2 more``: the name with most time, and how many more take a part of it that is worth a line."""
    name = max(ns, key=lambda name: (ns[name], name))
    return with_more(name, sum(time >= thresholds.WORTH_A_LINE * ns.total() for time in ns.values()) - 1)
