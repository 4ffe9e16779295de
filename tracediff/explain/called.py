"""What programs call that is no operator: optimizers and loaders of data, modules, and functions of Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

from tracediff import thresholds
from tracediff.aggregate.averages import ANNOTATION
from tracediff.aggregate.call_tree import Trees
from tracediff.diff.comparison import Comparison
from tracediff.diff.ops import Op
from tracediff.explain.facts import (
    COMPILED,
    GRAPH_REPLAYS,
    ONE_SIDED_CALLS,
    OTHER_PROGRAM,
    REPEATED,
    REWRITTEN,
    SAME_CALLS,
    Fact,
)
from tracediff.explain.leaves import Leaves
from tracediff.explain.programs import ClassCalls, Differing, in_place, listed, operator_calls
from tracediff.explain.repeated import STEP, may_be_why, often, work_below
from tracediff.formatting import with_more
from tracediff.profile.analyses.leaf_keys import callee_label
from tracediff.structs import Pair

CallsOfSides = Pair[dict[str, float]]
"""Of each side, the name of what is called → its time, or what else it is ranked by."""
PROFILER = "profiler.py("
"""Before the line of a function that records."""
NEXT = ".__next__"
"""After the class of a loader of data, in the annotation of what it does."""


def one_sided_calls(
    leaves: Leaves,
    comparison: Comparison,
    classes: Pair[ClassCalls],
    differing: Differing,
    others: Set[str],
) -> list[Fact]:
    """one-sided-calls: what only one side calls in every step, of what is no operator: optimizers and loaders of data
    by torch's annotations, classes of modules, the program's functions that take a part of the step, and functions of
    libraries that are called by code which both sides run. None beside what replaces all of these. ``classes`` are of
    both sides' modules, ``differing`` operators, ``others`` the codes of facts that may say more of the program.
    """
    if {GRAPH_REPLAYS, COMPILED} & others:
        return []
    trees = comparison.trees
    sources = (
        _annotated_calls(comparison.ops, comparison.scale),
        _module_calls(trees, classes),
        _own_functions(leaves, trees),
        _python_calls(leaves),
    )
    every = [{name for calls, _ in sources for name in calls[side]} for side in (0, 1)]
    judged: tuple[set[str], set[str]] = (set(), set())  # by an earlier source
    own: list[CallsOfSides] = []
    for calls, candidates in sources:
        own.append(_no_calls())
        for side, mine in enumerate(candidates):
            names = sorted(mine.keys() - every[1 - side] - judged[side], key=lambda name: (-mine[name], name))
            own[-1][side].update({name: mine[name] for name in names})
            judged[side].update(calls[side])
    control, test = ([name for calls in own for name in calls[side]] for side in (0, 1))
    both = zip(comparison.labels, (control, test), strict=True)
    parts = [f"only in {label}: {listed(names)}" for label, names in both if names]
    setting = " and ".join(_instead_of_calls(own, others, differing, float(leaves.step_ns.max())))
    values = ", ".join(control), ", ".join(test)
    return [Fact(ONE_SIDED_CALLS, f"called from Python {'; '.join(parts)}", *values, setting=setting)] if parts else []


def _instead_of_calls(own: Sequence[CallsOfSides], others: Set[str], differing: Differing, step_ns: float) -> list[str]:
    """``with SGD instead of AdamW``, ``with RMSNorm``, ``with f() and without g()``: of the optimizers, loaders of data
    and classes of modules that only one side calls, each side's first; without any, of the program's functions, and
    of libraries' those that take a part of the step of ``step_ns``, a small one if no operators are replaced. Of
    sides that call the same operators only what torch annotates or what has no counterpart, as modules and functions
    may only have other names.
    """
    annotated, modules, functions, of_libraries = own
    kinds = ([[class_in(name) for name in side if name.endswith(end)] for side in annotated] for end in (STEP, NEXT))
    out = [text for control, test in kinds for text in instead("".join(control[:1]), "".join(test[:1]))]
    if SAME_CALLS in others and all(any(calls[side] for calls in own[1:]) for side in (0, 1)):
        return out
    out += _of_modules(*modules)
    if out or {REPEATED, OTHER_PROGRAM} & others:
        return out
    if not any(functions):
        is_replaced = all(in_place(differing)) or REWRITTEN in others
        least = (thresholds.WORTH_A_LINE if is_replaced else thresholds.NO_DIFFERENCE) * step_ns
        functions = of_libraries.map(lambda side: {name: ns for name, ns in side.items() if ns >= least})
    first, second = (with_more(next(iter(side)), len(side) - 1) if side else "" for side in functions)
    return [*instead("", second), *instead(first, "")]  # nothing shows that one replaces the other


def _of_modules(control: Mapping[str, float], test: Mapping[str, float]) -> list[str]:
    """``with RMSNorm instead of LayerNorm``; not as far out, ``with SE`` and ``without Dropout``."""
    first, second = (next(iter(side), "") for side in (control, test))
    if not first or not second or control[first] == test[second]:
        return instead(first, second)
    return [f"with {second}", f"without {first}"]


def class_in(name: str) -> str:
    """The class of ``AdamW.step``, of what torch annotates; any other name as it is."""
    return name.partition(".")[0]


def instead(control: str, test: str) -> list[str]:
    """What test has instead of what control has, either of which may be empty, in words."""
    if test:
        return [f"with {test} instead of {control}" if control else f"with {test}"]
    return [f"without {control}"] if control else []


def largest_difference(differing: Differing, comparison: Comparison) -> list[str]:
    """``with aten::matmul``, ``calling aten::linear 3 instead of 120 times``: of the first operator that may be why the
    step changes; see `may_be_why`.
    """
    works = comparison.trees.map(work_below)
    for name, numbers in differing.items():
        work = Pair(works[0]["op", name], works[1]["op", name])
        if may_be_why(numbers[1] - numbers[0], work, comparison):
            control, test = (name if number else "" for number in numbers)
            return [often(name, *numbers)] if control and test else instead(control, test)
    return []


def _annotated_calls(ops: Sequence[Op], scale: int) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, of each class what takes longest) that torch annotates: ``Optimizer.step#AdamW.step`` → ns per step; those
    of ``ops`` are over ``scale``.
    """
    every, longest = _no_calls(), _no_calls()
    for op in sorted(ops, key=lambda op: -sum(op.total)):
        name = op.raw_name.partition("#")[2]
        if op.category != ANNOTATION or "." not in name:
            continue
        for side in (0, 1):
            if op.count[side]:
                every[side][name] += op.total[side] / scale
                if class_in(name) not in map(class_in, longest[side]):
                    longest[side][name] += op.total[side] / scale
    return every, longest


def _module_calls(trees: Trees, classes: Pair[ClassCalls]) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those in every step) classes of modules: ``RMSNorm`` → more, the further out they are; none where a side
    recorded no modules. Classes that only have other names are of neither side.
    """
    every, in_each = _no_calls(), _no_calls()
    operators: list[dict[str, Counter[str]]] = [defaultdict(Counter), defaultdict(Counter)]
    for side, tree in enumerate(trees):
        for path, (_, calls) in classes[side].items():
            every[side][path[-1]] += calls.total()
            operators[side][path[-1]] += calls
            if max(calls.values()) >= tree.denominator:
                in_each[side][path[-1]] = max(in_each[side][path[-1]], 1 / len(path))
    if not all(every):
        return _no_calls(), _no_calls()
    return every, _without_renamed(in_each, operators)


def _without_renamed(candidates: CallsOfSides, operators: Sequence[Mapping[str, Counter[str]]]) -> CallsOfSides:
    """``candidates`` without those of one side that call the same operators as often as one of the other side alone."""
    alone = [mine.keys() - others.keys() for mine, others in (operators, operators[::-1])]
    renamed = {
        name
        for one in alone[0]
        for other in alone[1]
        if operators[0][one] == operators[1][other] and operators[0][one]
        for name in (one, other)
    }
    return candidates.map(lambda side: {name: size for name, size in side.items() if name not in renamed})


def _python_calls(leaves: Leaves) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those in every step by functions that both sides run): ``clip_grad_norm_()`` → ns per step."""
    every, shared = _no_calls(), _no_calls()
    python = [i for i, kind in enumerate(leaves.kinds) if kind == "python"]
    chains = {i: leaves.single[i].chain if i in leaves.single else leaves.chains[i] for i in python}
    callers = [{chains[i][2:3] for i in python if leaves.total[side, i]} for side in (0, 1)]
    for side in (0, 1):
        for i in python:
            ns = float(leaves.total[side, i])
            callee = leaves.ops[side][i]
            if not ns or callee.startswith(PROFILER) or not (name := callee_label(callee)):
                continue
            every[side][name] += ns
            if leaves.in_each[side, i] and ns >= thresholds.TESTED_US * 1000 and chains[i][2:3] in callers[1 - side]:
                shared[side][name] += ns
    return every, shared


def _own_functions(leaves: Leaves, trees: Trees) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those that take a part of the step) functions outside of torch: ``attend()`` → ns per step of their
    operators and Python, but for loading data; none of programs that share less than they do not.
    """
    every, large = _no_calls(), _no_calls()
    operators: list[dict[str, Counter[str]]] = [defaultdict(Counter), defaultdict(Counter)]
    for side, tree in enumerate(trees):
        for call, number in operator_calls(tree):
            if number and call.line:
                name = function_of(call.line)
                every[side][name] += call.self_ns / tree.denominator
                operators[side][name][call.label] += call.count
        for i, kind in enumerate(leaves.kinds):
            if kind == "python" and leaves.total[side, i]:
                every[side][function_of(leaves.names[side][i])] += float(leaves.total[side, i])
    common_names = every[0].keys() & every[1].keys()
    if len(common_names) <= len(every[0].keys() ^ every[1].keys()):
        return _no_calls(), _no_calls()
    for side, calls in enumerate(every):
        least = thresholds.NO_DIFFERENCE * float(leaves.path[side].sum())
        large[side].update({name: calls[name] for name in calls if is_own_name(name) and calls[name] >= least})
    return every, _without_renamed(large, operators)


def is_own_name(function: str) -> bool:
    """Whether a program gave it, which any class may not have."""
    return function == "<lambda>()" or (function[:-2].isidentifier() and not function.startswith("__"))


def function_of(line: str) -> str:
    """``forward()`` of ``model.py(12): forward``."""
    return f"{line.rpartition(': ')[2]}()"


def _no_calls() -> CallsOfSides:
    return Pair(defaultdict(float), defaultdict(float))
