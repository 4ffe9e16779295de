"""Findings of the same kernels whose speed changed: all kernels, families, modules, single kernels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.matched_work import (
    LEAST_RELATIVE,
    SHOWN,
    Part,
    by_family,
    is_changed,
    largest,
    matched,
    matters,
    noun_of,
    of_group,
    of_part,
    part_of,
    parts_by,
    passes_family,
    reaches,
    replaced,
    weight,
)
from tracediff.diff.findings.state_change import passes, tested
from tracediff.diff.groups import Group
from tracediff.diff.module_instances import class_of
from tracediff.diff.verdict import change_text
from tracediff.formatting import change, part, plural
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind

ONE_NAME = 0.8
"""Fraction of a family's change from which one name, or one module, stands for it."""
OFFSETTING = 0.5
"""A family whose change is a smaller part of the changes of its names has no change of its own."""
COMMON_GROUPS, COMMON_PART, COMMON_WITHIN = 8, 0.75, 0.5
"""All kernels changed alike: so many groups; a part of the time that lies within a fraction of the common change."""
MODULE_PART = 0.7
"""Fraction of the whole change from which one class of modules stands for it."""


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
    if not any(passes_family(comparison, family, found.delta) for family in {g.family for g in same.values()}):
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
    same = by_family(comparison, lambda group: not replaced(group))
    return [finding for family, whole in same.items() for finding in _family(comparison, family, whole)]


def _family(comparison: Comparison, family: str, whole: Part) -> list[Finding]:
    """The family's change; or that of its names, if one stands for it or they offset each other."""
    names = _names(comparison, whole)
    moved = sum(abs(n.delta) for n in names.values())
    alike = abs(whole.delta) >= OFFSETTING * moved
    if alike and max(abs(n.delta) for n in names.values()) < ONE_NAME * abs(whole.delta):
        if not is_changed(comparison, whole) or not passes_family(comparison, family, whole.delta):
            return []
        kind = kinds.SLOWER_FAMILY if whole.delta > 0 else kinds.FASTER_FAMILY
        over = f" over {plural(len(names), 'name')}"
        return [_slower(comparison, kind, f"{family} {noun_of(comparison)}", whole, over, names)]
    return [
        _slower(comparison, kinds.SLOWER_KERNEL if n.delta > 0 else kinds.FASTER_KERNEL, display_name(name), n, "", {})
        for name, n in names.items()
        if is_changed(comparison, n) and _passes_kernel(comparison, name, n.delta)
    ]


def _names(comparison: Comparison, whole: Part) -> dict[str, Part]:
    """The groups of ``whole`` by match name, the largest change first."""
    return parts_by(comparison, whole, lambda group: match_name(group.largest))


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
    alike = [g for i in found.indices if (g := comparison.work.groups[i]).delta * found.delta > 0]
    rows = _of_names(comparison, names, found) if names else [of_group(comparison, g) for g in largest(alike)]
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


def _of_names(comparison: Comparison, names: dict[str, Part], whole: Part) -> list[Evidence]:
    """Evidence of the first of ``names`` that changed as ``whole`` did."""
    alike = [name for name, found in names.items() if found.delta * whole.delta > 0][:SHOWN]
    return [of_part(comparison, display_name(name), names[name]) for name in alike]


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
        if not several or not is_changed(comparison, inside) or share > MODULE_PART:
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


RULES = (throughout, families, modules)
