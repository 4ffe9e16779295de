"""What a side calls more often: annotations, such as steps of optimizers, and modules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import isclose

from tracediff import bounds, thresholds
from tracediff.aggregate.averages import ANNOTATION
from tracediff.aggregate.call_tree import CallTree, Trees
from tracediff.diff.comparison import Comparison
from tracediff.explain.amounts import work_within
from tracediff.explain.facts import REPEATED, Fact
from tracediff.explain.lines import pace
from tracediff.explain.programs import ClassCalls, ModulePath, class_of, in_modules, repeated_modules
from tracediff.explain.tree import Node, is_near_one
from tracediff.formatting import count, counts, plural, times
from tracediff.profile.placement.scopes import OPTIMIZER, PHASES
from tracediff.runtimes import is_graph_launch
from tracediff.structs import FrozenStruct, Pair

OPTIMIZERS = "Optimizer.step#"
"""Before the names of steps of optimizers."""
STEP = ".step"
"""After the class of an optimizer, in the annotation of what it does."""


class Repeated(FrozenStruct, kw_only=True):
    """What is not called as often.

    Attributes:
        name: of it. raw_name: of an annotation as recorded. path: of modules their class and those around it.
        numbers: how often it is called per step, or how many modules there are.
        work: ns of the work within it, on the comparison's scale.
        factor: of modules, how many times as many operator calls they make; 1 where there are more of them.
    """

    name: str
    raw_name: str = ""
    path: ModulePath = ()
    numbers: Pair[float]
    work: Pair[int]
    factor: float = 1.0

    @property
    def often(self) -> str:
        """``1 → 3 times``, ``12 → 24 modules``, ``1.5 × the operator calls``."""
        if self.factor != 1:
            return f"{times(self.factor)} × the operator calls"
        return f"{counts(*self.numbers)} {'modules' if self.path else 'times'}"

    @property
    def more(self) -> float:
        """How many times as many calls there are."""
        return self.factor * self.numbers.test / self.numbers.control

    def happened(self, node: Node) -> str:
        """``6 → 4 times, each 1.25 × as long``: of annotations, whose ``node`` is all of them, how long each takes."""
        if self.path or not node.is_of_both:
            return self.often
        each = float(node.total[1] / node.total[0]) * self.numbers.control / self.numbers.test
        if is_near_one(each):
            return f"{self.often}, each as long"
        return f"{self.often}, each {pace(each, f', {times(each)} × as long').removeprefix(', ')}"

    @property
    def setting(self) -> str:
        """``calling AdamW.step 1 instead of 4 times``."""
        if self.factor != 1:
            more = f"{times(self.factor)} × the" if self.factor > 1 else f"{times(1 / self.factor)} × fewer"
            return f"with {more} operator calls in {self.name}"
        if self.path:
            return f"calling {count(self.numbers.test)} instead of {count(self.numbers.control)} {self.name}"
        return often(self.name, *self.numbers)


def may_be_why(more: float, work: Pair[int], comparison: Comparison) -> bool:
    """Whether the step may change because of ``more`` calls, or fewer, which hold this ``work``: more make no step
    shorter, and most of what changes of all work is within them.
    """
    sign = 1 if more > 0 else -1
    is_most = sign * work.delta >= thresholds.MOSTLY * abs(comparison.work.time.delta)
    return sign * comparison.verdict.way >= 0 and is_most


def often(name: str, control: float, test: float) -> str:
    """``calling AdamW.step 1 instead of 4 times``."""
    return f"calling {name} {count(test)} instead of {plural(control, 'time')}"


def repeated_of(comparison: Comparison, classes: Pair[ClassCalls]) -> list[Repeated]:
    """What is annotated, and changes the step, that a side calls more often, or else graphs that it replays more often;
    of how many modules of a class it calls more, and in which it makes all operator calls several times as often.
    """
    least = thresholds.WORTH_A_LINE * max(comparison.step_time.period)
    modules = [
        Repeated(
            name=_in_place(path, classes, factor),
            path=path,
            numbers=Pair(*map(float, numbers)),
            work=work_in(comparison.trees, path),
            factor=factor,
        )
        for path, numbers, factor in repeated_modules(*classes)
    ]
    return [
        *(_annotations(comparison, least) or _replays(comparison)),
        *(one for one in modules if one.factor == 1 or max(one.work) >= least),
    ]


def _replays(comparison: Comparison) -> list[Repeated]:
    """The call that launches graphs; what these do is the work without operators."""
    trees = comparison.trees
    work = trees.map(lambda tree: sum(work.ns for work in tree.work if tree.op(work.node) is None))
    launches = [op for op in comparison.ops if is_graph_launch(op.raw_name) and all(op.count)]
    return [
        Repeated(name=op.name, numbers=numbers, work=work)
        for op in launches
        if not isclose(*(numbers := op.count.map(comparison.number)))
    ]


def _in_place(path: ModulePath, classes: Pair[ClassCalls], factor: float) -> str:
    """``Block``, or ``Linear in Block`` where there are others, or of a ``factor`` in the model."""
    others = {other for other in classes[0].keys() | classes[1].keys() if other[-1] == path[-1] and other != path}
    if len(path) == 1 or (factor == 1 and not others):
        return path[-1]
    return f"{path[-1]} in {path[-2] if factor == 1 else path[0]}"


def facts_of_repeated(repeated: Sequence[Repeated], comparison: Comparison) -> list[Fact]:
    """repeated: what is called more or less often, the largest first; the verdict says the first that may be why."""
    repeated = list({(one.name, one.often): one for one in reversed(repeated)}.values())[::-1]  # in several places
    facts = []
    for one in repeated[: bounds.EXAMPLES]:
        more, period = "more" if one.more > 1 else "less", "" if one.path else f" {comparison.basis}"
        setting = one.setting if may_be_why(one.more - 1, one.work, comparison) else ""
        facts.append(Fact(REPEATED, f"called {more} often: {one.name} {one.often}{period}", setting=setting))
    return facts


def work_in(trees: Trees, path: ModulePath) -> Pair[int]:
    """The time of the work within modules of a class, ``path`` with those around it."""

    def below(tree: CallTree) -> int:
        modules = enumerate(in_modules(tree))
        return work_within(tree, {i for i, (module, _) in modules if tuple(map(class_of, module)) == path})

    return trees.map(below)


def _annotations(comparison: Comparison, least: float) -> list[Repeated]:
    """The steps of optimizers, and other annotations whose time, or that of the work below them, changes by ``least``
    or more: the largest first, of those called as often as each other the one with most work
    below it, or nearly so, of the shortest name.
    """
    trees = comparison.trees
    works = trees.map(work_below)
    alike: dict[Pair[float], list[tuple[float, int, Repeated]]] = defaultdict(list)
    for op in comparison.ops:
        whole = op.name.strip("# ")  # as of compiled graphs, of which each has a hash
        name = whole.partition("#")[2] or whole
        numbers = Pair(*(number / tree.denominator for number, tree in zip(op.count, trees, strict=True)))
        if op.category != ANNOTATION or not all(numbers) or isclose(*numbers):
            continue
        place = ("phase", PHASES[OPTIMIZER]) if op.raw_name.startswith(OPTIMIZERS) else ("annotation", op.raw_name)
        work = Pair(works[0][place], works[1][place])
        change = max(abs(op.total.delta), abs(work.delta))
        if change >= least or name.endswith(STEP):
            one = Repeated(name=name, raw_name=op.raw_name, numbers=numbers, work=work)
            alike[numbers].append((change, abs(work.delta), one))
    return [
        _of_most_work(same) for same in sorted(alike.values(), key=lambda same: -max(change for change, *_ in same))
    ]


def _of_most_work(alike: Sequence[tuple[float, int, Repeated]]) -> Repeated:
    """Of annotations that are called as often: no optimizer's, if others are; the one with nearly most of the work."""
    most = (1 - thresholds.WORTH_A_LINE) * max(work for _, work, _ in alike)
    some = [one for _, work, one in alike if work >= most]
    return min(some, key=lambda one: (one.name.endswith(STEP), len(one.name), one.name))


def work_below(tree: CallTree) -> Counter[tuple[str, str]]:
    """(kind, name, of operators label) of calls → ns of the work below them, over the denominator of ``tree``."""
    ns: Counter[tuple[str, str]] = Counter()
    for work in tree.work:
        around, node = set(), work.node
        while node >= 0:
            call = tree.calls[node]
            around.add((call.kind, call.label if call.kind == "op" else call.name))
            node = call.parent
        ns.update(dict.fromkeys(around, work.ns))
    return ns
