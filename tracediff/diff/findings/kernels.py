"""Findings of matched work whose speed changed: all kernels, families, modules, single and replaced kernels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.state_change import passes, tested
from tracediff.diff.groups import Group, Member
from tracediff.diff.module_instances import class_of
from tracediff.diff.reach import reach
from tracediff.diff.verdict import change_text
from tracediff.formatting import change, part, plural
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.kernels.match_names import is_generated, match_name
from tracediff.runtimes import MEMCPY

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind

LEAST = 0.01
"""Smallest change that is reported, as a fraction of all work."""
LEAST_RELATIVE = 0.02
"""Relative change of the time of a family, module or kernel below which it counts as equal."""
SAME_TIME = 0.05
"""Relative change of the convolutions that run other kernels below which it is a choice of algorithms only."""
ONE_NAME = 0.8
"""Fraction of a family's change from which one name, or one module, stands for it."""
OFFSETTING = 0.5
"""A family whose change is a smaller part of the changes of its names has no change of its own."""
COMMON_GROUPS, COMMON_PART, COMMON_WITHIN = 8, 0.75, 0.5
"""All kernels changed alike: so many groups; a part of the time that lies within a fraction of the common change."""
MODULE_PART = 0.7
"""Fraction of the whole change from which one class of modules stands for it."""
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
    """The members of ``side`` that run beside those that the other side has, too; none where others replaced them."""
    names, others = group.match_names[side], group.match_names[1 - side]
    return tuple(m for m in group.sides[side] if match_name(m.name) not in others) if others < names else ()


def replaced(group: Group) -> bool:
    """Whether other kernels do this work than before."""
    return group.match_names[0] != group.match_names[1] and not all(
        is_generated(m.name) for m in (*group.control, *group.test)
    )


def throughout(comparison: Comparison) -> list[Finding]:
    """all-kernels: all kernels changed by about the same factor."""
    if not comparison.gpu_time.groups:
        return []
    same = {i: g for i, g in matched(comparison).items() if not replaced(g) and g.control_ns and g.test_ns}
    if len(same) < COMMON_GROUPS or len({g.family for g in same.values()}) < 2:
        return []
    logs = sorted((math.log(g.test_ns / g.control_ns), g.control_ns) for g in same.values())
    common, found = _weighted_median(logs), part_of(comparison, same)
    if abs(math.expm1(common)) < LEAST_RELATIVE or not matters(comparison, found.delta):
        return []
    if not any(_passes_family(comparison, family, found.delta) for family in {g.family for g in same.values()}):
        return []
    if not _alike(same.values(), common) or not _alike(_without_largest_family(list(same.values())), common):
        return []
    return [_slower(comparison, kinds.ALL_KERNELS, "all GPU kernels together", found, "", _names(comparison, found))]


def _alike(groups: Iterable[Group], common: float) -> bool:
    """Whether most of the time of ``groups`` changed by about ``common``, a logarithm."""
    near = whole = 0
    for group in groups:
        whole += group.control_ns
        if abs(math.log(group.test_ns / group.control_ns) - common) <= COMMON_WITHIN * abs(common):
            near += group.control_ns
    return near >= COMMON_PART * whole > 0


def _without_largest_family(groups: list[Group]) -> list[Group]:
    """The groups outside of the family that changed most: what changed alike is not the change of one family."""
    changes: dict[str, int] = defaultdict(int)
    for group in groups:
        changes[group.family] += abs(group.delta)
    most = max(changes, key=lambda f: (changes[f], f))
    return [group for group in groups if group.family != most]


def _weighted_median(values: list[tuple[float, int]]) -> float:
    half, seen = sum(w for _, w in values) / 2, 0
    for value, w in values:
        seen += w
        if seen >= half:
            return value
    return 0.0


def families(comparison: Comparison) -> list[Finding]:
    """slower-family, faster-family, slower-kernel and faster-kernel: the same kernels became slower or faster."""
    same = _by_family(comparison, lambda group: not replaced(group))
    return [finding for family, whole in same.items() for finding in _family(comparison, family, whole)]


def _by_family(comparison: Comparison, chosen: Callable[[Group], bool]) -> dict[str, Part]:
    """The ``chosen`` ones of the matched groups by family."""
    by_family: dict[str, list[int]] = defaultdict(list)
    for i, group in matched(comparison).items():
        if chosen(group):
            by_family[group.family].append(i)
    return {family: part_of(comparison, indices) for family, indices in by_family.items()}


def _family(comparison: Comparison, family: str, whole: Part) -> list[Finding]:
    """The family's change; or that of its names, if one stands for it or they offset each other."""
    names = _names(comparison, whole)
    moved = sum(abs(n.delta) for n in names.values())
    alike = abs(whole.delta) >= OFFSETTING * moved
    if alike and max(abs(n.delta) for n in names.values()) < ONE_NAME * abs(whole.delta):
        if not _changed(comparison, whole) or not _passes_family(comparison, family, whole.delta):
            return []
        kind = kinds.SLOWER_FAMILY if whole.delta > 0 else kinds.FASTER_FAMILY
        over = f" over {plural(len(names), 'name')}"
        return [_slower(comparison, kind, f"{family} {noun_of(comparison)}", whole, over, names)]
    return [
        _slower(comparison, kinds.SLOWER_KERNEL if n.delta > 0 else kinds.FASTER_KERNEL, display_name(name), n, "", {})
        for name, n in names.items()
        if _changed(comparison, n) and _passes_kernel(comparison, name, n.delta)
    ]


def _names(comparison: Comparison, whole: Part) -> dict[str, Part]:
    """The groups of ``whole`` by match name, the largest change first."""
    return _parts_by(comparison, whole, lambda group: match_name(group.largest))


def _parts_by(comparison: Comparison, whole: Part, name_of: Callable[[Group], str]) -> dict[str, Part]:
    """The groups of ``whole`` by a name, the largest change first."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for i in whole.indices:
        by_name[name_of(comparison.work.groups[i])].append(i)
    parts = {name: part_of(comparison, indices) for name, indices in by_name.items()}
    return dict(sorted(parts.items(), key=lambda item: (-abs(item[1].delta), item[0])))


def _changed(comparison: Comparison, found: Part) -> bool:
    return matters(comparison, found.delta) and found.relative >= LEAST_RELATIVE


def _passes_family(comparison: Comparison, family: str, delta: int) -> bool:
    return passes(comparison, (f.time_change for f in comparison.families if f.name == family), delta)


def _passes_kernel(comparison: Comparison, name: str, delta: int) -> bool:
    """Whether the change of the kernels of a match name passes the test of operations."""
    return passes(comparison, (op.time_change for op in comparison.ops if match_name(op.counted_as) == name), delta)


def _slower(
    comparison: Comparison, kind: FindingKind, what: str, found: Part, over: str, names: dict[str, Part]
) -> Finding:
    """``what 9.4 % slower: 13.86 → 15.17 ms per step``, with the largest of ``names``, or else the call sites."""
    us = comparison.us
    several = kind not in (kinds.SLOWER_KERNEL, kinds.FASTER_KERNEL)
    times = change(us(found.control), us(found.test))
    title = f"{what} {became(found.control, found.test, several)}: {times} per step{over}"
    groups = [comparison.work.groups[i] for i in found.indices]
    rows = _of_names(comparison, names, found) if names else [of_group(comparison, g) for g in largest(groups)]
    where = f"{_place(comparison, found)}{reaches(comparison)}"
    detail = f"{where}The same {noun_of(comparison)} run on both sides. {kinds.advice_of(kind)}"
    return Finding(
        kind,
        title,
        detail,
        delta_us=us(found.delta),
        weight_us=weight(comparison, found.delta),
        evidence=tuple(rows),
        covers=found.indices,
    )


def became(control: int, test: int, several: bool = False) -> str:
    """``is 9.4 % slower`` or ``takes 2.50 times as long``, in the plural of ``several``."""
    plain = change_text((test - control) / max(control, 1))
    if "times" in plain:
        return f"{'take' if several else 'takes'} {plain}"
    return f"{'are' if several else 'is'} {plain}"


def _place(comparison: Comparison, found: Part) -> str:
    """``All of it is in encoder.layer.3. ``: the module that holds the change, if one does."""
    by_module: dict[str, int] = defaultdict(int)
    for i in found.indices:
        by_module[comparison.work.groups[i].module or ""] += comparison.work.groups[i].delta
    module, delta = max(by_module.items(), key=lambda item: (abs(item[1]), item[0]))
    if not module or len(by_module) < 2 or delta * found.delta < ONE_NAME * found.delta**2:
        return ""
    return f"{part(min(abs(delta), abs(found.delta)), abs(found.delta))} of the change is in {module}. "


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


def _of_names(comparison: Comparison, names: dict[str, Part], whole: Part) -> list[Evidence]:
    """Evidence of the first of ``names`` that changed as ``whole`` did."""
    alike = [name for name, found in names.items() if found.delta * whole.delta > 0][:SHOWN]
    return [_evidence(comparison, display_name(name), names[name]) for name in alike]


def _evidence(comparison: Comparison, name: str, found: Part) -> Evidence:
    groups = [comparison.work.groups[i] for i in found.indices]
    counts = sum(g.control_count for g in groups), sum(g.test_count for g in groups)
    number, us = comparison.number, comparison.us
    return Evidence(name, number(counts[0]), number(counts[1]), us(found.control), us(found.test))


def largest(groups: Iterable[Group]) -> list[Group]:
    """The groups that changed most."""
    return sorted(groups, key=lambda g: (-abs(g.delta), -(g.control_ns + g.test_ns), g.largest))[:SHOWN]


def modules(comparison: Comparison) -> list[Finding]:
    """module-change: most of the change of matched work of several families is in the instances of one module."""
    groups = {i: g for i, g in matched(comparison).items() if g.module}
    whole = part_of(comparison, matched(comparison))
    by_class: dict[str, list[int]] = defaultdict(list)
    for i, group in groups.items():
        by_class[class_of(group.module or "")].append(i)
    found = []
    for name, indices in by_class.items():
        inside = part_of(comparison, indices)
        share = (inside.control + inside.test) / max(whole.control + whole.test, 1)
        several = len(_moved_families([groups[i] for i in indices], inside)) > 1
        if not several or not _changed(comparison, inside) or share > MODULE_PART:
            continue
        if inside.delta * whole.delta < MODULE_PART * whole.delta**2 or tested(comparison):
            continue
        found.append(_module(comparison, name, inside, len({groups[i].module for i in indices})))
    return found


def _moved_families(groups: Iterable[Group], inside: Part) -> list[str]:
    """The families that hold a part of the change of ``inside``."""
    changes: dict[str, int] = defaultdict(int)
    for group in groups:
        changes[group.family] += group.delta
    return [family for family, delta in changes.items() if delta * inside.delta > 0.1 * inside.delta**2]


def _module(comparison: Comparison, name: str, inside: Part, instances: int) -> Finding:
    us = comparison.us
    times = f"{change(us(inside.control), us(inside.test))} per step over {plural(instances, 'instance')}"
    title = f"{name} {became(inside.control, inside.test)}: {times}"
    names = _names(comparison, inside)
    return Finding(
        kinds.MODULE_CHANGE,
        title,
        f"{reaches(comparison)}Most of the change of GPU work is in this module. Read what changed in it.",
        delta_us=us(inside.delta),
        weight_us=weight(comparison, inside.delta),
        evidence=tuple(_of_names(comparison, names, inside)),
        covers=inside.indices,
    )


def swapped(comparison: Comparison) -> list[Finding]:
    """algorithm-swap and cudnn-choice: the same operators run other kernels, and their time changed or did not."""
    found = []
    us = comparison.us
    for family, whole in _by_family(comparison, replaced).items():
        groups = [comparison.work.groups[i] for i in whole.indices]
        times = f"{collapsed(change(us(whole.control), us(whole.test)))} per step"
        replacement = (
            f"{plural(len(groups), f'{family} operator')} {'runs' if len(groups) == 1 else 'run'} other kernels"
        )
        if _changed(comparison, whole) and _passes_family(comparison, family, whole.delta):
            kind = kinds.ALGORITHM_SWAP
            faster = change_text(whole.delta / max(whole.control, 1))
            title = f"{family} {noun_of(comparison)} replaced, {faster}: {times}"
            detail = f"{reaches(comparison)}{replacement} than before. {_why_other_kernels(comparison)}"
        elif family == "conv" and comparison.gpu_time.groups and whole.relative < SAME_TIME:
            kind = kinds.CUDNN_CHOICE
            title = f"other convolution algorithms at similar cost: {times}"
            detail = f"{replacement} than before. This does not explain the change of the step."
        else:
            continue
        swaps = list(_parts_by(comparison, whole, _swap_name).items())[:SHOWN]
        evidence = tuple(_evidence(comparison, name, swap) for name, swap in swaps)
        found.append(
            Finding(
                kind,
                title,
                detail,
                delta_us=us(whole.delta),
                weight_us=weight(comparison, whole.delta) if kind is kinds.ALGORITHM_SWAP else 0.0,
                evidence=evidence,
                covers=whole.indices,
            )
        )
    return found


def _why_other_kernels(comparison: Comparison) -> str:
    if comparison.control.gpu != comparison.test.gpu:
        return "The GPUs differ, and with them the kernels of their libraries; check dtype and layout, too."
    return "Check dtype, layout and library versions."


def _swap_name(group: Group) -> str:
    before, after = (" + ".join(dict.fromkeys(display_name(m.name) for m in side[:2])) for side in group.sides)
    return f"{group.call}: {before} → {after}" if group.call else f"{before} → {after}"


RULES = (throughout, families, modules, swapped)
