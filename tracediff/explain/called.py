"""What programs call that is no operator: optimizers and loaders of data, modules, and functions of Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import isclose

from tracediff import thresholds
from tracediff.aggregate.averages import ANNOTATION
from tracediff.diff.comparison import Comparison
from tracediff.diff.ops import Op
from tracediff.explain.amounts import Trees
from tracediff.explain.facts import (
    COMPILED,
    GRAPH_REPLAYS,
    ONE_SIDED_CALLS,
    OTHER_PROGRAM,
    REPEATED,
    SAME_CALLS,
    Fact,
)
from tracediff.explain.leaves import Leaves
from tracediff.explain.programs import Differing, class_of, listed, modules_around, operator_calls, repeated_modules
from tracediff.formatting import count, counts, plural, times, with_more
from tracediff.profile.analyses.leaf_keys import callee_label

CallsOfSides = tuple[dict[str, float], dict[str, float]]
"""Of each side, the name of what is called → its time."""
STEP = ".step"
"""After the class of an optimizer, in the annotation of its step."""


def one_sided_calls(leaves: Leaves, comparison: Comparison, others: Sequence[Fact]) -> list[Fact]:
    """one-sided-calls: what only one side calls in every step, of what is no operator: optimizers and loaders of data
    by torch's annotations, classes of modules, the program's functions that take a part of the step, and functions of
    libraries that are called by code which both sides run. ``others`` are facts that may say more of the program.
    """
    trees = comparison.trees
    in_programs = _module_calls(trees), _own_functions(leaves, trees), _python_calls(leaves)
    sources = _annotated_calls(comparison.ops), *in_programs
    every = [{name for calls, _ in sources for name in calls[side]} for side in (0, 1)]
    own: list[list[str]] = [[], []]
    for _, candidates in sources:
        for side, mine in enumerate(candidates):
            names = mine.keys() - every[1 - side] - set(own[side])
            own[side] += sorted(names, key=lambda name: (-mine[name], name))
    both = zip(comparison.labels, own, strict=True)
    parts = [f"only {label}'s code calls {listed(names)}" for label, names in both if names]
    control, test = map(", ".join, own)
    setting = _instead_of_calls(own, {fact.code for fact in others})
    return [Fact(ONE_SIDED_CALLS, ", ".join(parts), control, test, setting=setting)] if parts else []


def _instead_of_calls(own: Sequence[Sequence[str]], others: Collection[str]) -> str:
    """``with SGD instead of AdamW``, ``with RMSNorm`` or ``without Dropout``: of the classes of optimizers, loaders of
    data and modules that only one side calls, each side's first. Without any, of functions: ``with clip_grad_norm_()``,
    ``without histc() + 2 more``, unless another fact, ``others`` are their codes, names what replaced operators. Of
    sides that call the same operators only what torch annotates or what has no counterpart, as modules and functions
    may only have other names.
    """
    if SAME_CALLS in others and all(own):
        own = [[name for name in side if "." in name] for side in own]
    classes = ([class_in(name) for name in side] for side in own)
    setting = instead(*(next(filter(str.isidentifier, names), "") for names in classes))
    if not setting and not {REPEATED, GRAPH_REPLAYS, COMPILED, OTHER_PROGRAM} & {*others}:
        functions = ([name for name in side if name.endswith("()")] for side in own)
        setting = instead(*(with_more(names[0], len(names) - 1) if names else "" for names in functions))
    return "".join(setting)


def class_in(name: str) -> str:
    """The class of ``AdamW.step``, of what torch annotates; any other name as it is."""
    return name.partition(".")[0]


def instead(control: str, test: str, lead: str = "with") -> list[str]:
    """What test has instead of what control has, either of which may be empty, in words, the first of them ``lead``."""
    if test:
        return [f"{lead} {test} instead of {control}" if control else f"{lead} {test}"]
    return [f"without {control}"] if control else []


def largest_difference(differing: Differing) -> list[str]:
    """``with aten::matmul``, ``calling aten::linear 3 instead of 120 times``: of the first operator."""
    for name, numbers in differing.items():
        control, test = (name if number else "" for number in numbers)
        return [often(name, *numbers)] if control and test else instead(control, test)
    return []


def often(name: str, control: float, test: float) -> str:
    """``calling AdamW.step 1 instead of 4 times``."""
    return f"calling {name} {count(test)} instead of {plural(control, 'time')}"


def _annotated_calls(ops: Sequence[Op]) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, of each class what takes longest) that torch annotates: ``Optimizer.step#AdamW.step``."""
    every, longest = _no_calls(), _no_calls()
    for op in sorted(ops, key=lambda op: -sum(op.total)):
        name = op.raw_name.partition("#")[2]
        if op.category != ANNOTATION or "." not in name:
            continue
        for side in (0, 1):
            if op.count[side]:
                every[side][name] += op.total[side]
                if name.partition(".")[0] not in {other.partition(".")[0] for other in longest[side]}:
                    longest[side][name] += op.total[side]
    return every, longest


def _module_calls(trees: Trees) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those in every step) classes of modules: ``RMSNorm`` → ns of its own operators; none where a side recorded
    no modules.
    """
    every, in_each = _no_calls(), _no_calls()
    for side, tree in enumerate(trees):
        for module, call in zip(modules_around(tree), tree.calls, strict=True):
            if module:
                every[side][class_of(module[-1])] += call.self_ns
                if call.count >= tree.denominator:
                    in_each[side][class_of(module[-1])] += call.self_ns
    return (every, in_each) if all(every) else (_no_calls(), _no_calls())


def _python_calls(leaves: Leaves) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those in every step by functions that both sides run): ``clip_grad_norm_()`` → ns per step."""
    every, shared = _no_calls(), _no_calls()
    python = [i for i, kind in enumerate(leaves.kinds) if kind == "python"]
    callers = [{leaves.chains[i][2:3] for i in python if leaves.total[side, i]} for side in (0, 1)]
    for side in (0, 1):
        for i in python:
            ns, is_in_each = float(leaves.total[side, i]), leaves.count[side, i] >= 1
            if not ns or not (name := callee_label(leaves.ops[side][i])):
                continue
            every[side][name] += ns
            if is_in_each and ns >= thresholds.TESTED_US * 1000 and leaves.chains[i][2:3] in callers[1 - side]:
                shared[side][name] += ns
    return every, shared


def _own_functions(leaves: Leaves, trees: Trees) -> tuple[CallsOfSides, CallsOfSides]:
    """(all, those that take a part of the step) functions outside of torch: ``attend()`` → ns per step of their
    operators and Python, but for loading data; none of programs that share less than they do not.
    """
    every, large = _no_calls(), _no_calls()
    for side, tree in enumerate(trees):
        for call, number in zip(tree.calls, operator_calls(tree), strict=True):
            if number and call.line:
                every[side][_function(call.line)] += call.self_ns / tree.denominator
        for i, kind in enumerate(leaves.kinds):
            if kind == "python" and leaves.total[side, i]:
                every[side][_function(leaves.names[side][i])] += float(leaves.total[side, i])
    common_names = every[0].keys() & every[1].keys()
    if len(common_names) <= len(every[0].keys() ^ every[1].keys()):
        return _no_calls(), _no_calls()
    for side, calls in enumerate(every):
        least = thresholds.WORTH_A_LINE * float(leaves.path[side].sum())
        large[side].update({name: ns for name, ns in calls.items() if ns >= least and name[:-2].isidentifier()})
    return every, large


def _function(line: str) -> str:
    """``forward()`` of ``model.py(12): forward``."""
    return f"{line.rpartition(': ')[2]}()"


def repeated(ops: Sequence[Op], trees: Trees) -> list[Fact]:
    """repeated: the steps of optimizers that a side makes more often, of how many modules of a class it calls more, and
    which modules it calls several times as often.
    """
    texts, values = [], []
    for op in ops:
        name = op.raw_name.partition("#")[2]
        per_step = [number / tree.denominator for number, tree in zip(op.count, trees, strict=True)]
        if op.category == ANNOTATION and name.endswith(STEP) and all(per_step) and not isclose(*per_step):
            texts.append(f"{name} {counts(*per_step)}")
            values.append(often(name, *per_step))
    for module, numbers, factor in repeated_modules(trees):
        texts.append(f"{module} {counts(*numbers)}" if factor == 1 else f"{module} {times(factor)} × as often")
        more = f"with {count(numbers[1])} instead of {count(numbers[0])} {module}"
        values.append(more if factor == 1 else f"calling {module} {times(factor)} × as often")
    return [Fact(REPEATED, f"calls per step: {listed(texts)}", test=values[0], setting=values[0])] if texts else []


def _no_calls() -> CallsOfSides:
    return defaultdict(float), defaultdict(float)
