"""`Comparison`: all results of comparing two sets; one of a part of the work, and the call stacks of any of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tracediff.aggregate.call_tree import CallTree, Trees, Work
from tracediff.aggregate.summary import Side
from tracediff.diff.accounts import GpuTime, StepTime, TableDiff
from tracediff.diff.groups import Group, WorkTime, qualified_names
from tracediff.diff.matching.call_pairs import Pairing
from tracediff.diff.matching.items import Item, inherited
from tracediff.diff.ops import GPU_WORK, Op, TestedWork, gpu_or_cpu, sorted_ops
from tracediff.diff.preflight import OTHER_OPTIONS, REFUSED, Comparability
from tracediff.diff.statistics.many import UNTESTED
from tracediff.diff.verdict import STEP, WHOLE_FILE, Unprofiled, Verdict
from tracediff.diff.views import UNKNOWN, Sum, WorkChange, by_operator, every_instance, sorted_sums, work_changes
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import is_compiled_call, table_name
from tracediff.structs import NONE, Amounts, FrozenStruct, Pair, side_sums

if TYPE_CHECKING:
    from tracediff.explain.explanation import Cause, Explanation
    from tracediff.explain.facts import Fact
    from tracediff.source.changed_code import ChangedCode
else:  # of later stages: help() shows what is annotated
    Explanation = ChangedCode = Any


class Scaled(FrozenStruct):
    """Results of one set or of two. Counts and times are integer numerators: x / scale events, x / scale nanoseconds.

    Attributes:
        scale: the common denominator.
    """

    scale: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """Control and test, or the one set."""
        raise NotImplementedError

    @property
    def has_gpu(self) -> bool:
        """Whether any side has GPU events."""
        return any(side.has_gpu for side in self.sides)

    @property
    def is_whole_file(self) -> bool:
        """Whether times are of whole files, as no side has steps."""
        return all(side.whole_file for side in self.sides)

    @property
    def basis(self) -> str:
        """What times and counts are of: ``per step``, or without steps ``over the whole file``."""
        return WHOLE_FILE if self.is_whole_file else STEP

    @property
    def each(self) -> str:
        """What there are several of: ``step``, or without steps ``file``."""
        return "file" if self.is_whole_file else "step"

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale


class Comparison(Scaled, dict=True):
    """Control and test side by side.

    Attributes:
        control, test: the files, ranks and steps of the sides.
        comparability: whether the sides are comparable, with the cautions.
        verdict, step_time, gpu_time, ops: see their classes; if `comparability` is refused and not forced, gpu_time
            has no groups and ops is empty.
        host_time: the self time of operators in groups if neither side has a GPU; else empty.
        trees, pairing: the call trees of both sides, and which calls are the same.
        families: the significance of the change of each family of work.
        launched_work: of the GPU work below each operator, by its table name; empty without a GPU.
        unprofiled: the test of the steps without the profiler, where both sides have them.
        explanation: why the step changed; None if the comparison was refused.
        tables: the further tables with which both sets were loaded.
        changed_code: the changed lines that changed work runs for; None if no commits were given.
        common_change: median relative change of all tested operators, 0 if none was tested.
    """

    control: Side
    test: Side
    comparability: Comparability
    verdict: Verdict
    step_time: StepTime
    gpu_time: GpuTime
    host_time: WorkTime
    ops: tuple[Op, ...]
    trees: Trees
    pairing: Pairing
    families: tuple[TestedWork, ...]
    launched_work: tuple[TestedWork, ...]
    common_change: float
    unprofiled: Unprofiled | None = None
    explanation: Explanation | None = None
    tables: tuple[TableDiff, ...] = ()
    changed_code: ChangedCode | None = None

    @property
    def sides(self) -> Pair[Side]:
        """Control and test."""
        return Pair(self.control, self.test)

    @property
    def labels(self) -> Pair[str]:
        """The names of both sides."""
        return self.sides.map(lambda side: side.label)

    @property
    def runs(self) -> Pair[int]:
        """How many runs each side has."""
        return self.sides.map(lambda side: side.runs)

    @property
    def believed_unprofiled(self) -> Unprofiled | None:
        """The steps without the profiler, where the verdict is from these."""
        return self.unprofiled if self.unprofiled and self.unprofiled.believed else None

    @property
    def has_other_options(self) -> bool:
        """Whether the profiler recorded the sides with other options, which slow the host more or less."""
        return OTHER_OPTIONS in self.comparability.codes

    @property
    def tested(self) -> Verdict | Unprofiled:
        """The steps that the verdict's result is about."""
        return self.believed_unprofiled or self.verdict

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Why the step changed, line by line; none if the comparison was refused."""
        return self.explanation.causes if self.explanation is not None else ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What the explanation says of the comparison; none if that was refused."""
        return self.explanation.facts if self.explanation is not None else ()

    @property
    def work(self) -> WorkTime:
        """The work that was matched: GPU events if there are any, else the self time of operators."""
        return self.gpu_time if self.gpu_time.groups else self.host_time

    @cached_property
    def work_changes(self) -> tuple[WorkChange, ...]:
        """The work with its instances merged, the largest change first."""
        return tuple(work_changes(self.work))

    @cached_property
    def work_by_operator(self) -> tuple[Sum, ...]:
        """All of the work by operator, work without one by family, the largest change first; without a GPU also the
        self time of compiled code, which no operator has.
        """
        compiled = (op for op in self.ops if op.category == "cpu_op" and is_compiled_call(op.raw_name))
        ops = () if self.gpu_time.groups else compiled
        return tuple(sorted_sums((*by_operator(self.work), *(Sum(op.time, op.count, name=op.name) for op in ops))))

    @cached_property
    def module_instances(self) -> Counter[str]:
        """Path of a module with ``[*]`` → how many instances it has."""
        return Counter(map(every_instance, {m.module or UNKNOWN for _, m in self.work.members()}))

    @cached_property
    def gpu_below(self) -> dict[str, Pair[int]]:
        """Table name of an operator → GPU time of the work that its calls launched, also through others; empty without
        a GPU.
        """
        time_of_name: dict[str, Pair[int]] = {}
        for side, tree in enumerate(self.trees if self.gpu_time.groups else ()):
            names: list[frozenset[str]] = []  # of the operators from the root to each call, each once
            for call in tree.calls:
                ancestors = names[call.parent] if call.parent >= 0 else frozenset()
                names.append(ancestors | {table_name(call.name)} if call.kind == "op" else ancestors)
            for work in tree.work:
                for name in names[work.node] if work.node >= 0 else ():
                    time_of_name[name] = time_of_name.get(name, NONE).plus(side, work.ns)
        return time_of_name

    @property
    def was_refused(self) -> bool:
        """Whether the sides were not compared."""
        return self.comparability.level == REFUSED and not self.ops


OPERATOR = "cpu_op"


class Part(FrozenStruct):
    """The selected work; an empty attribute selects all.

    Attributes:
        device: gpu or cpu, None for both. phases, families: of the work.
        modules: paths; each with everything below it.
    """

    device: str | None = None
    phases: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not (self.device or self.phases or self.families or self.modules)

    @property
    def has_place(self) -> bool:
        """Whether it selects by phase or module."""
        return bool(self.phases or self.modules)

    def selects_place(self, phase: str, module: str | None) -> bool:
        """Whether work of this phase and module path is selected."""
        return (not self.phases or phase in self.phases) and (
            not self.modules or any(_below(module, path) for path in self.modules)
        )

    def contains(self, work: Item) -> bool:
        """Whether a piece of work is selected."""
        return (
            self.device in (None, gpu_or_cpu(work.category))
            and (not self.families or work.family in self.families)
            and self.selects_place(work.phase, work.module)
        )


def _below(module: str | None, path: str) -> bool:
    return module is not None and (module == path or module.startswith((f"{path}/", f"{path}.")))


def only(comparison: Comparison, part: Part) -> Comparison:
    """The comparison of ``part``: its groups' members, operators and tree add up as those of the whole do.

    Results for the whole step (verdict, states, explanation, preflight, health, ranks, tables, busy time) do not
    change. With selected phases or modules, operators are summed over their calls there; operators that only wrap
    others, runtime calls and annotations have no node in the tree and are left out. Work that is kept out of matching
    belongs to no part. Operators whose numbers change are untested.
    """
    if part.is_all or comparison.was_refused:
        return comparison
    groups = tuple(_groups(comparison, part))
    qualified = qualified_names(comparison.sides)
    here = [  # of each call of both trees, whether its phase and module are selected
        [part.selects_place(phase, module) for phase, module in zip(*inherited(tree, qualified), strict=True)]
        for tree in comparison.trees
    ]
    return replace(
        comparison,
        gpu_time=comparison.gpu_time.replace(groups=groups if comparison.has_gpu else (), unattributed=NONE),
        host_time=WorkTime(() if comparison.has_gpu else groups),
        ops=sorted_ops(_ops(comparison, part, groups, here)),
        trees=_trees(comparison, groups, here),
        families=tuple(f for f in comparison.families if f.name in part.families or not part.families)
        if not part.has_place
        else (),
        launched_work=(),
    )


def _groups(comparison: Comparison, part: Part) -> list[Group]:
    groups = []
    for group in comparison.work.groups:
        items = group.items.map(lambda side: tuple(i for i in side if part.contains(i)))
        if items.map(len) == group.items.map(len):
            groups.append(group)
        elif any(items):  # what its operator's occurrences count is no longer all of it
            groups.append(group.replace(ops=None, items=items))
    return sorted(
        groups, key=lambda g: (-abs(g.delta), g.name, g.level, [(m.name, m.op or "") for m in chain(*g.members)])
    )


def _ops(comparison: Comparison, part: Part, groups: Iterable[Group], here: list[list[bool]]) -> list[Op]:
    """GPU work as its groups have it; operators as they are, or summed over the calls of the phases and modules."""
    ops = []
    members = WorkTime(tuple(groups)).members()
    on_gpu = side_sums(((m.category, table_name(m.name)), side, (m.count, m.ns, m.ns)) for side, m in members)
    on_host = side_sums(_calls(comparison, here)) if part.has_place else None
    for op in comparison.ops:
        if part.device not in (None, op.device):
            continue
        if op.category in GPU_WORK:
            ops += _with(op, on_gpu)
        elif op.device == "cpu" and (not part.families or op.family in part.families):
            ops += [op] if on_host is None else _with(op, on_host) if op.category == OPERATOR else []
        elif not part.families and not part.has_place:
            ops.append(op)
    return ops


Sums = dict[tuple[str, str], tuple[Pair[int], ...]]
"""(category, table name) → count, total and self time."""


def _calls(
    comparison: Comparison, here: list[list[bool]]
) -> Iterable[tuple[tuple[str, str], int, tuple[int, int, int]]]:
    """The operators' calls at the chosen phases and modules, as parts of `Sums`."""
    for which, tree in enumerate(comparison.trees):
        for call, is_here in zip(tree.calls, here[which], strict=True):
            if is_here and call.kind == "op":
                yield (OPERATOR, table_name(call.name)), which, (call.count, call.total, call.self_ns)


def _with(op: Op, sums: Sums) -> list[Op]:
    """``op`` with the numbers of the part, none where it does not occur there."""
    numbers = sums.get((op.category, table_name(op.raw_name)))
    if not numbers:
        return []
    if numbers == (op.count, op.total, op.self_time):
        return [op]
    count, times, self_times = numbers
    return [op.replace(count=count, total=times, self_time=self_times, significance=UNTESTED)]


def _trees(comparison: Comparison, groups: Iterable[Group], here: list[list[bool]]) -> Trees:
    """Both trees with the work of ``groups``; calls elsewhere stay, so that the pairing holds, but count nothing."""
    trees = []
    for which, tree in enumerate(comparison.trees):
        work: list[Work] = [item for g in groups for item in g.items[which]]
        work.sort(key=lambda w: (w.order, w.name, w.node))
        calls = [
            call if is_here else replace(call, count=0, total=0, self_ns=0)
            for call, is_here in zip(tree.calls, here[which], strict=True)
        ]
        trees.append(CallTree(tree.denominator, calls, work))
    return Pair(*trees)


class CallPlace(Amounts, kw_only=True):
    """One stack. The time of an operator includes everything below it; else it is that of the GPU work.

    Attributes:
        stack: from the phase to the call itself. shapes: its inputs as recorded, of work its grid and block; None where
            not recorded.
    """

    stack: tuple[str, ...]
    shapes: str | None


def places(comparison: Comparison, category: str, raw_name: str) -> list[CallPlace]:
    """All stacks that contain ``raw_name`` or another spelling of its row in a table, the longest time first; empty if
    it is in no tree.
    """
    innermost = () if category == "cpu_op" else (display_name(raw_name),)
    return _placed(
        (((*_stack(tree, node), *innermost), shapes), which, (ns, count))
        for which, tree in enumerate(comparison.trees)
        for node, shapes, count, ns in _occurrences(tree, category, table_name(raw_name))
    )


def places_of(comparison: Comparison, group: Group) -> list[CallPlace]:
    """All stacks that contain a group's work; shapes are those of its operator where they are known, else grid and
    block.
    """
    return _placed(
        ((_stack_of(tree, item), _shapes(tree, item)), which, (item.ns, item.count))
        for which, (tree, items) in enumerate(zip(comparison.trees, group.items, strict=True))
        for item in items
    )


Place = tuple[tuple[str, ...], str | None]
"""Stack and shapes, as of a `CallPlace`."""


def _placed(occurrences: Iterable[tuple[Place, int, tuple[int, int]]]) -> list[CallPlace]:
    """Occurrences (place, side, ns and count) summed, the longest time first."""
    rows = [
        CallPlace(time, count, stack=stack, shapes=shapes)
        for (stack, shapes), (time, count) in side_sums(occurrences).items()
        if any(count)
    ]
    return sorted(rows, key=lambda p: (-max(p.time), p.stack, p.shapes or ""))


def _stack_of(tree: CallTree, item: Item) -> tuple[str, ...]:
    """The calls around an item, and it itself if it is GPU work."""
    stack = _stack(tree, item.node)
    return tuple(stack if item.category == OPERATOR else [*stack, display_name(item.name)])


def _shapes(tree: CallTree, item: Item) -> str | None:
    return (tree.calls[item.node].shapes if item.node >= 0 else None) or item.launch_shape


def _occurrences(tree: CallTree, category: str, name: str) -> Iterator[tuple[int, str | None, int, int]]:
    """(node, shapes, count, ns)."""
    if category == "cpu_op":
        for node, call in enumerate(tree.calls):
            if call.kind == "op" and table_name(call.name) == name:
                yield node, call.shapes, call.count, call.total
        return
    for work in tree.work:
        if work.category == category and table_name(work.name) == name:
            yield work.node, work.launch_shape, work.count, work.ns


def _stack(tree: CallTree, node: int) -> list[str]:
    names: list[str] = []
    while node >= 0:
        call = tree.calls[node]
        names.append(call.display_name)
        node = call.parent
    return names[::-1]
