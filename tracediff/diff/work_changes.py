"""Matched work with its instances merged: one row for an operator with its kernels on both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tracediff.diff.groups import Group, Member, WorkTime
from tracediff.diff.matching.match import PLACED
from tracediff.diff.module_instances import every_instance
from tracediff.diff.ops import GPU_WORK
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name

NAMED = 2
"""Kernels of a row that are named."""


@dataclass(frozen=True, kw_only=True)
class WorkChange:
    """Work that is the same, in all its instances; counts and times are numerators over the comparison's scale.

    Attributes:
        operator: that launched it, ``A → B`` if another one does now; of work without an operator empty.
        shapes: the inputs of that operator, empty where unknown. module: its path with ``[*]`` for instances, empty
            where unknown or several.
        family: what kind of work. level: how it was matched, the weakest of its groups.
        control_names, test_names: match names of what ran, the longest time first; of operators without GPU work empty.
        groups: positions in the work's groups.
    """

    operator: str
    shapes: str
    module: str
    family: str
    control_names: tuple[str, ...]
    test_names: tuple[str, ...]
    control_count: int
    test_count: int
    control_ns: int
    test_ns: int
    groups: tuple[int, ...]

    @property
    def delta(self) -> int:
        """test − control time."""
        return self.test_ns - self.control_ns

    @cached_property
    def control_kernels(self) -> tuple[str, ...]:
        """Short names of what ran on the control side, the longest time first."""
        return tuple(dict.fromkeys(map(display_name, self.control_names)))

    @cached_property
    def test_kernels(self) -> tuple[str, ...]:
        """Short names of what ran on the test side, the longest time first."""
        return tuple(dict.fromkeys(map(display_name, self.test_names)))

    @property
    def kernels(self) -> str:
        """``old → new``, the name alone if both sides or only one side runs it."""
        before, after = (_some(names) for names in (self.control_kernels, self.test_kernels))
        return f"{before} → {after}" if before and after and before != after else before or after

    @property
    def name(self) -> str:
        """Operator and kernels in one text."""
        return "  ".join(part for part in (self.operator, self.kernels) if part)


def _some(names: tuple[str, ...]) -> str:
    """The first of ``names``, and how many more there are."""
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return " + ".join([*names[:NAMED], *more])


def work_changes(work: WorkTime) -> list[WorkChange]:
    """All of ``work``, each group in one row, the largest change first; the rows add up to the groups."""
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for position, group in enumerate(work.groups):
        alike[_key(group)].append(position)
    rows = [_merged(work, positions) for positions in alike.values()]
    return sorted(rows, key=_place)


def _place(row: WorkChange) -> tuple[object, ...]:
    """The largest change first."""
    names = row.operator, row.control_names, row.test_names, row.module, row.shapes
    return -abs(row.delta), -max(row.control_ns, row.test_ns), *names


def one_group(groups: Sequence[Group]) -> Group:
    """Groups of the same work in instances of a module as one group."""
    if len(groups) == 1:
        return groups[0]
    counts = [[getattr(g, name) for g in groups] for name in ("control_ops", "test_ops")]
    control_ops, test_ops = (sum(side) if None not in side else None for side in counts)
    return replace(
        groups[0],
        module=groups[0].module and every_instance(groups[0].module),
        control=_one_side(m for g in groups for m in g.control),
        test=_one_side(m for g in groups for m in g.test),
        control_ops=control_ops,
        test_ops=test_ops,
        items=(tuple(i for g in groups for i in g.items[0]), tuple(i for g in groups for i in g.items[1])),
    )


def _one_side(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members, with those of the same work added up, the largest first."""
    sums: dict[tuple[object, ...], Member] = {}
    for m in members:
        key = m.name, m.category, m.op, m.family, m.phase, every_instance(m.module or "")
        same = sums.get(key)
        sums[key] = replace(same, count=same.count + m.count, ns=same.ns + m.ns) if same else m
    return tuple(sorted(sums.values(), key=lambda m: -m.ns))


def _key(group: Group) -> tuple[object, ...]:
    """What distinguishes rows; work that names no partner has a row per family."""
    if group.level in PLACED:
        return group.level, group.family, group.phase
    kernels = tuple(frozenset(_kernels(side)) for side in group.sides)
    return _operator(group), _shapes(group), every_instance(group.module or ""), kernels


def _merged(work: WorkTime, positions: list[int]) -> WorkChange:
    groups = [work.groups[p] for p in positions]
    first = max(groups, key=lambda g: g.control_ns + g.test_ns)
    modules = {every_instance(g.module or "") for g in groups}
    placed = first.level in PLACED
    sides = [_members(groups, side) for side in (0, 1)]
    return WorkChange(
        operator=f"several {first.family} operators" if placed else _operator(first),
        shapes="" if placed else _shapes(first),
        module=modules.pop() if len(modules) == 1 else "",
        family=first.family,
        control_names=tuple(_kernels(sides[0])),
        test_names=tuple(_kernels(sides[1])),
        control_count=sum(g.control_count for g in groups),
        test_count=sum(g.test_count for g in groups),
        control_ns=sum(g.control_ns for g in groups),
        test_ns=sum(g.test_ns for g in groups),
        groups=tuple(positions),
    )


def _members(groups: list[Group], side: int) -> list[Member]:
    return [member for group in groups for member in group.sides[side]]


def _kernels(members: list[Member] | tuple[Member, ...]) -> list[str]:
    """Match names of GPU work, the longest time first."""
    times: dict[str, int] = defaultdict(int)
    for member in members:
        if member.category in GPU_WORK:
            times[match_name(member.name)] += member.ns
    return sorted(times, key=lambda name: (-times[name], name))


def _operator(group: Group) -> str:
    """The operator of both sides; without GPU work the members themselves."""
    if group.call:
        return group.call.partition("(")[0]
    before, after = (_one_operator(side) for side in group.sides)
    return f"{before} → {after}" if before and after and before != after else before or after


def _one_operator(members: tuple[Member, ...]) -> str:
    names = dict.fromkeys(name for m in members if (name := m.op if m.category in GPU_WORK else m.name))
    first = next(iter(names), "")
    return f"{first} + {len(names) - 1} more" if len(names) > 1 else display_name(first) if first else ""


def _shapes(group: Group) -> str:
    return f"({shapes}" if (shapes := (group.call or "").partition("(")[2]) else ""
