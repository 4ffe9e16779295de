"""A part of the work: a comparison with the groups, operators and tree of selected devices, phases, families and
modules only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group, Member, WorkTime, qualified_names
from tracediff.diff.matching.items import Item, inherited
from tracediff.diff.ops import GPU_WORK, Op, gpu_or_cpu
from tracediff.profile.kernels.match_names import table_name

OPERATOR = "cpu_op"


@dataclass(frozen=True)
class Part:
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

    def contains(self, work: Member | Item, category: str) -> bool:
        """Whether a piece of work is selected."""
        device = gpu_or_cpu(category)
        return (
            self.device in (None, device)
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
    here = [_here(comparison, tree, part) for tree in comparison.trees]
    gpu = comparison.control.has_gpu or comparison.test.has_gpu
    return replace(
        comparison,
        gpu_time=replace(
            comparison.gpu_time, groups=groups if gpu else (), unattributed_control=0, unattributed_test=0
        ),
        host_time=WorkTime(() if gpu else groups),
        ops=tuple(
            sorted(_ops(comparison, part, groups, here), key=lambda op: (-abs(op.delta), op.category, op.raw_name))
        ),
        trees=_trees(comparison, groups, here),
        families=tuple(f for f in comparison.families if f.name in part.families or not part.families)
        if not part.has_place
        else (),
    )


def _groups(comparison: Comparison, part: Part) -> list[Group]:
    groups = []
    for group in comparison.work.groups:
        kept = [tuple(m for m in side if part.contains(m, m.category)) for side in group.sides]
        if kept == list(group.sides):
            groups.append(group)
        elif kept[0] or kept[1]:  # what its operator's occurrences count is no longer all of it
            items = [tuple(i for i in side if part.contains(i, i.work.category)) for side in group.items]
            groups.append(
                replace(
                    group, control=kept[0], test=kept[1], control_ops=None, test_ops=None, items=(items[0], items[1])
                )
            )
    return sorted(
        groups, key=lambda g: (-abs(g.delta), g.name, g.level, [(m.name, m.op or "") for m in g.control + g.test])
    )


def _ops(comparison: Comparison, part: Part, groups: Iterable[Group], here: list[list[bool]]) -> list[Op]:
    """GPU work as its groups have it; operators as they are, or summed over the calls of the phases and modules."""
    ops = []
    on_gpu = _sums(
        ((m.category, m.name), which, (m.count, m.ns, m.ns))
        for g in groups
        for which, side in enumerate(g.sides)
        for m in side
    )
    on_host = _sums(_calls(comparison, here)) if part.has_place else None
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


Sums = dict[tuple[str, str], list[int]]
"""(category, table name) → count, total, self of control, then of test."""


def _sums(parts: Iterable[tuple[tuple[str, str], int, tuple[int, int, int]]]) -> Sums:
    sums: Sums = {}
    for (category, name), which, values in parts:
        entry = sums.setdefault((category, table_name(name)), [0] * 6)
        for k, value in enumerate(values):
            entry[3 * which + k] += value
    return sums


def _calls(
    comparison: Comparison, here: list[list[bool]]
) -> Iterable[tuple[tuple[str, str], int, tuple[int, int, int]]]:
    """The operators' calls at the chosen phases and modules, over the comparison's scale."""
    for which, tree in enumerate(comparison.trees):
        factor = comparison.scale // tree.denominator
        for call, is_here in zip(tree.calls, here[which], strict=True):
            if is_here and call.kind == "op":
                yield (OPERATOR, call.name), which, (factor * call.count, factor * call.total, factor * call.self_ns)


def _with(op: Op, sums: Sums) -> list[Op]:
    """``op`` with the numbers of the part, none where it does not occur there."""
    numbers = sums.get((op.category, table_name(op.raw_name)))
    if not numbers:
        return []
    if numbers == [op.control_count, op.control_total, op.control_self, op.test_count, op.test_total, op.test_self]:
        return [op]
    names = ("control_count", "control_total", "control_self", "test_count", "test_total", "test_self")
    kept = dict(zip(names, numbers, strict=True))
    return [replace(op, **kept, time_change="untested", p_value=None, q_value=None, relative=None, interval=None)]  # type: ignore[arg-type]


def _here(comparison: Comparison, tree: CallTree, part: Part) -> list[bool]:
    """For each call of ``tree``, whether its phase and module are selected."""
    phases, modules = inherited(tree, qualified_names((comparison.control.manifest, comparison.test.manifest)))
    return [part.selects_place(phase, module) for phase, module in zip(phases, modules, strict=True)]


def _trees(comparison: Comparison, groups: Iterable[Group], here: list[list[bool]]) -> tuple[CallTree, CallTree]:
    """Both trees with the work of ``groups``; calls elsewhere stay, so that the pairing holds, but count nothing."""
    trees = []
    for which, tree in enumerate(comparison.trees):
        work = sorted((item.work for g in groups for item in g.items[which]), key=lambda w: (w.order, w.name, w.node))
        calls = [call if is_here else _uncounted(call) for call, is_here in zip(tree.calls, here[which], strict=True)]
        trees.append(CallTree(tree.denominator, calls, work))
    return trees[0], trees[1]


def _uncounted(call: Call) -> Call:
    return replace(call, count=0, total=0, self_ns=0)
