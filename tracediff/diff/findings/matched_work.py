"""The matched work as the rules of findings see it: parts of it, their change and weight, and their evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.diff.findings.finding import Evidence
from tracediff.diff.findings.state_change import passes
from tracediff.diff.groups import Group, Member
from tracediff.diff.reach import reach
from tracediff.formatting import part
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.kernels.match_names import is_generated, match_name
from tracediff.runtimes import MEMCPY

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Smallest change that is reported, as a fraction of all work."""
LEAST_RELATIVE = 0.02
"""Relative change of the time of a family, module or kernel below which it counts as equal."""
REACHES = 0.7
"""Part of a change of GPU time that reaches the step below which findings say so."""
SHOWN = 5


@dataclass(frozen=True)
class Part:
    """Some of the comparison's groups, by their indices, and their time on both sides (numerators)."""

    indices: frozenset[int]
    control: int
    test: int

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control

    @property
    def relative(self) -> float:
        """The change as a fraction of the longer side."""
        return abs(self.delta) / max(self.control, self.test, 1)


def part_of(comparison: Comparison, indices: Iterable[int]) -> Part:
    """The groups ``indices``."""
    chosen = frozenset(indices)
    groups = [comparison.work.groups[i] for i in chosen]
    return Part(chosen, sum(g.control_ns for g in groups), sum(g.test_ns for g in groups))


def matters(comparison: Comparison, delta: int) -> bool:
    """Whether a change of work is large enough to be reported."""
    return abs(delta) >= LEAST * max(comparison.work.control, comparison.work.test, 1)


def weight(comparison: Comparison, delta: int) -> float:
    """The part of the step's change that a change of work accounts for, in µs."""
    return comparison.us(delta) * reach(comparison)


def matched(comparison: Comparison) -> dict[int, Group]:
    """The groups with work on both sides whose time says how fast it is: not communication, whose kernels wait, nor
    copies, nor fused work, nor work that changed by its count.
    """
    return {
        i: g
        for i, g in enumerate(comparison.work.groups)
        if g.control
        and g.test
        and g.level != "fusion"
        and g.family != COMMUNICATION
        and counted(g) is None
        and not all(m.category == MEMCPY for m in (*g.control, *g.test))
    }


def counted(group: Group) -> tuple[tuple[Member, ...], tuple[Member, ...]] | None:
    """The members of both sides by which ``group`` changed, if it did by how often work is done; None if by how long it
    takes.
    """
    if not group.control or not group.test:
        return group.sides
    if group.level == "fusion":
        return None
    extra = additional(group, 0), additional(group, 1)
    if any(extra) and 2 * abs(change_of(extra)) > abs(group.delta) and change_of(extra) * group.delta >= 0:
        return extra
    if group.call is None and group.match_names[0].isdisjoint(group.match_names[1]):
        return None  # other kernels of other operators: their numbers do not compare
    differs = group.counts[0] != group.counts[1] and 2 * abs(group.parts[0]) > abs(group.delta)
    return group.sides if differs else None


def change_of(sides: tuple[tuple[Member, ...], tuple[Member, ...]]) -> int:
    """test − control time of members."""
    return sum(m.ns for m in sides[1]) - sum(m.ns for m in sides[0])


def additional(group: Group, side: int) -> tuple[Member, ...]:
    """The members of ``side`` that run beside those that the other side has, too, and as often; none where others
    replaced them.
    """
    names, others = group.match_names[side], group.match_names[1 - side]
    extra = tuple(m for m in group.sides[side] if match_name(m.name) not in others)
    shared = sum(m.count for m in group.sides[side]) - sum(m.count for m in extra)
    return extra if others < names and shared == sum(m.count for m in group.sides[1 - side]) else ()


def replaced(group: Group) -> bool:
    """Whether other kernels do this work than before."""
    return group.match_names[0] != group.match_names[1] and not all(
        is_generated(m.name) for m in (*group.control, *group.test)
    )


def by_family(comparison: Comparison, chosen: Callable[[Group], bool]) -> dict[str, Part]:
    """The ``chosen`` ones of the matched groups by family."""
    by_family: dict[str, list[int]] = defaultdict(list)
    for i, group in matched(comparison).items():
        if chosen(group):
            by_family[group.family].append(i)
    return {family: part_of(comparison, indices) for family, indices in by_family.items()}


def parts_by(comparison: Comparison, whole: Part, name_of: Callable[[Group], str]) -> dict[str, Part]:
    """The groups of ``whole`` by a name, the largest change first."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for i in whole.indices:
        by_name[name_of(comparison.work.groups[i])].append(i)
    parts = {name: part_of(comparison, indices) for name, indices in by_name.items()}
    return dict(sorted(parts.items(), key=lambda item: (-abs(item[1].delta), item[0])))


def is_changed(comparison: Comparison, found: Part) -> bool:
    return matters(comparison, found.delta) and found.relative >= LEAST_RELATIVE


def passes_family(comparison: Comparison, family: str, delta: int) -> bool:
    return passes(comparison, (f.time_change for f in comparison.families if f.name == family), delta)


def noun_of(comparison: Comparison) -> str:
    """What the work consists of."""
    return "kernels" if comparison.gpu_time.groups else "operators"


def reaches(comparison: Comparison) -> str:
    """How much of a change of GPU time the step has, where it is far from all."""
    share = reach(comparison)
    return "" if share >= REACHES else f"Only about {part(share, 1)} of it reaches the step: the GPU is idle for long. "


def of_group(comparison: Comparison, group: Group, name: str | None = None) -> Evidence:
    """Evidence of a group: its counts and times."""
    number, us = comparison.number, comparison.us
    return Evidence(
        name or group.call or group.name,
        number(group.control_count),
        number(group.test_count),
        us(group.control_ns),
        us(group.test_ns),
    )


def of_part(comparison: Comparison, name: str, found: Part) -> Evidence:
    groups = [comparison.work.groups[i] for i in found.indices]
    counts = sum(g.control_count for g in groups), sum(g.test_count for g in groups)
    number, us = comparison.number, comparison.us
    return Evidence(name, number(counts[0]), number(counts[1]), us(found.control), us(found.test))


Sums = list[int]
"""Count of control and of test, ns of control and of test; numerators."""


def add_members(sums: Sums, side: int, members: Iterable[Member]) -> None:
    """Add what ``members`` of one side (0 control, 1 test) take."""
    for member in members:
        sums[side] += member.count
        sums[side + 2] += member.ns


def largest_sums(by_name: dict[str, Sums]) -> list[tuple[str, Sums]]:
    """Those whose time changed most."""
    return sorted(by_name.items(), key=lambda item: (-abs(item[1][3] - item[1][2]), item[0]))[:SHOWN]


def of_sums(comparison: Comparison, name: str, sums: Sums) -> Evidence:
    """Evidence of ``sums``."""
    number, us = comparison.number, comparison.us
    return Evidence(name, number(sums[0]), number(sums[1]), us(sums[2]), us(sums[3]))


def largest(groups: Iterable[Group]) -> list[Group]:
    """The groups that changed most."""
    return sorted(groups, key=lambda g: (-abs(g.delta), -(g.control_ns + g.test_ns), g.largest))[:SHOWN]
