"""Findings of the matched work: what was fused, added or removed, copies, and tensor cores."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Finding
from tracediff.diff.findings.kernels import became
from tracediff.diff.findings.matched_work import (
    add_members,
    change_of,
    counted,
    largest,
    largest_sums,
    matters,
    noun_of,
    of_group,
    of_sums,
    part_of,
    reaches,
    weight,
)
from tracediff.diff.findings.state_change import LEAST_CHANGE, passes, significant
from tracediff.diff.groups import Group, Member
from tracediff.diff.matching.match import PLACED
from tracediff.formatting import change, count, percents, plural
from tracediff.formatting import counts as formatted_counts
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.kernels.match_names import is_generated
from tracediff.profile.kernels.tensor_cores import uses_tensor_cores
from tracediff.runtimes import KERNEL, MEMCPY, MEMSET, copy_direction

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

OVERLAP_CHANGE = 0.1
"""Smallest change of the part of copies or communication that computation covers."""
KIND_CHANGE = 0.2
"""Smallest change of the part of copies that one kind of memory has."""
MEMORY_KIND = re.compile(r"\((?P<source>\w+)\s*->\s*(?P<target>\w+)\)")
UNKNOWN_MEMORY, UNKNOWN_SIDE = "kind of memory not recorded", re.compile(r"\bhost\b|unknown")
TENSOR_CORE_CHANGE = 0.05
MATRIX_FAMILIES = ("gemm", "attention", "conv", "fused")
"""Families whose kernels may use tensor cores even if their names do not tell."""
MOSTLY = 0.5
"""Part of the change from which one operator is named in the title."""


def fused(comparison: Comparison) -> list[Finding]:
    """fused: operators that one compiled kernel computes on the other side."""
    groups = [g for g in comparison.work.groups if g.level == "fusion"]
    if not groups:
        return []
    kernels = [sum(m.count for g in groups for m in g.sides[k] if is_generated(m.name)) for k in (0, 1)]
    into = kernels[1] >= kernels[0]
    counts = [sum(g.control_count for g in groups), sum(g.test_count for g in groups)]
    whole = part_of(comparison, (i for i, g in enumerate(comparison.work.groups) if g.level == "fusion"))
    us, noun = comparison.us, noun_of(comparison)
    numbers = [count(comparison.number(n)) for n in counts]
    title = (
        f"fusion replaced {numbers[0]} {noun} with {numbers[1]} per step"
        if into
        else f"without fusion, {numbers[0]} {noun} became {numbers[1]} per step"
    )
    title += f": {collapsed(change(us(whole.control), us(whole.test)))}"
    detail = f"{plural(len(groups), 'group')} of fused kernels and the operators that they compute."
    if not into:
        detail += " Read which operators are not fused."
    evidence = tuple(of_group(comparison, g, _fusion_name(g, into)) for g in largest(groups))
    return [
        Finding(
            kinds.FUSED,
            title,
            detail,
            delta_us=us(whole.delta),
            weight_us=weight(comparison, whole.delta),
            evidence=evidence,
            covers=whole.indices,
        )
    ]


def _fusion_name(group: Group, into: bool) -> str:
    """``native_layer_norm, add → triton_poi_fused_add_native_layer_norm_0``."""
    before, after = group.sides if into else group.sides[::-1]
    ops = list(dict.fromkeys((m.op or display_name(m.name)).removeprefix("aten::") for m in before))
    names = list(dict.fromkeys(display_name(m.name) for m in after if is_generated(m.name)))
    shown = ", ".join(ops[:4]) + (f" and {len(ops) - 4} more" if len(ops) > 4 else "")
    fused_names = f"{', '.join(names[:2])}{' …' if len(names) > 2 else ''}"
    return f"{shown} → {fused_names}" if into else f"{fused_names} → {shown}"


def counts(comparison: Comparison) -> list[Finding]:
    """count-change: work without a counterpart on the other side, and work that is done more or less often."""
    sums: dict[str, list[int]] = {}
    covers, delta, changed = set(), 0, 0
    for i, group in enumerate(comparison.work.groups):
        members = counted(group)
        sides = _without_copies(members) if members else ((), ())
        if not any(sides):
            continue
        covers.add(i)
        delta, changed = delta + change_of(sides), changed + abs(change_of(sides))
        entry = sums.setdefault(_counted_name(group, sides, members == group.sides), [0, 0, 0, 0])
        for side, own in enumerate(sides):
            add_members(entry, side, own)
    if not sums or not matters(comparison, changed):
        return []
    us, number = comparison.us, comparison.number
    shown = largest_sums(sums)
    before, after, control, test = (sum(e[k] for e in sums.values()) for k in range(4))
    noun = "GPU event" if comparison.gpu_time.groups else "operator"
    one_sided = not before or not after
    title = (
        f"{plural(number(before or after), noun)} per step {'removed' if before else 'added'}"
        if one_sided
        else f"{noun}s of work done more or less often: {formatted_counts(number(before), number(after))} per step"
    )
    largest_change = shown[0][1][3] - shown[0][1][2]
    mostly = f", mostly {shown[0][0]}" if len(sums) > 1 and largest_change * delta >= MOSTLY * delta**2 else ""
    title += f", {collapsed(change(us(control), us(test)))}{mostly}"
    detail = (
        f"{reaches(comparison)}This is work that one side does not do, or does more often. Read which work was added "
        "and removed."
    )
    return [
        Finding(
            kinds.COUNT_CHANGE,
            title,
            detail,
            delta_us=us(delta),
            weight_us=weight(comparison, delta),
            evidence=tuple(of_sums(comparison, name, entry) for name, entry in shown),
            covers=frozenset(covers),
        )
    ]


Sides = tuple[tuple[Member, ...], tuple[Member, ...]]


def _without_copies(sides: Sides) -> Sides:
    """``sides`` without memcpys, which have a finding of their own."""
    control, test = (tuple(m for m in side if m.category != MEMCPY) for side in sides)
    return control, test


def _counted_name(group: Group, sides: Sides, is_whole: bool) -> str:
    """The operator of the work that was added or removed; beside other work of the group, with its kernel."""
    if group.level in PLACED and is_whole:
        return _several_name(group.family, sides)
    if is_whole:
        return group.call or (group.control or group.test)[0].op or group.name
    member = (sides[0] or sides[1])[0]
    names = dict.fromkeys(name for name in (member.op, display_name(member.name)) if name)
    return ": ".join(names)


def _several_name(family: str, sides: Sides) -> str:
    """``aten::copy_ and other copy operators`` if one operator holds most of the change; else without its name."""
    changes: dict[str, int] = defaultdict(int)
    for sign, members in zip((-1, 1), sides, strict=True):
        for member in members:
            changes[member.op or ""] += sign * member.ns
    delta = sum(changes.values())
    op = max(changes, key=lambda name: (changes[name] * delta, name))
    if op and len(changes) > 1 and changes[op] * delta >= MOSTLY * delta**2 > 0:
        return f"{op} and other {family} operators"
    return f"several {family} operators"


def copies(comparison: Comparison) -> list[Finding]:
    """new-copies: more or fewer copies per step in one direction; copy-kind: copies of another kind of memory; and
    copies that became slower or faster.
    """
    return [f for direction in _directions(comparison) if (f := _copies_finding(comparison, direction))]


def _directions(comparison: Comparison) -> list[str]:
    names = {m.name for g in comparison.gpu_time.groups for m in (*g.control, *g.test) if m.category == MEMCPY}
    return sorted({d for name in names if (d := copy_direction(name))})


def _copies_finding(comparison: Comparison, direction: str) -> Finding | None:
    """The finding of the copies in one direction, if their time changed enough."""
    us, number = comparison.us, comparison.number
    by_kind, covers = _memory_kinds(comparison, direction)
    sums = [sum(e[k] for e in by_kind.values()) for k in range(4)]
    n, delta = (number(sums[0]), number(sums[1])), sums[3] - sums[2]
    if not matters(comparison, delta):
        return None
    kind_changed = _kind_change(by_kind)
    times = f"{collapsed(change(us(sums[2]), us(sums[3])))} per step{_bandwidth(comparison, direction)}"
    if kind_changed:
        kind = kinds.COPY_KIND
        title = f"Memcpy {direction} uses other memory, {kind_changed}: {times}"
        detail = "Copies from and to pageable memory are staged and block the host: use pin_memory and non_blocking."
    elif abs(n[1] - n[0]) >= 1:
        kind = kinds.NEW_COPIES
        title = f"Memcpy {direction}: {count(n[0])} → {count(n[1])} copies per step"
        where = "`clone()`, `contiguous()`, `copy_()`" if direction == "DtoD" else "`.to()`, `.cpu()`, offloading"
        detail = f"They take {times}. Look for {where}."
    elif not passes(comparison, _results_of_copies(comparison, direction), delta):
        return None
    else:
        kind = kinds.SLOWER_KERNEL if delta > 0 else kinds.FASTER_KERNEL
        title = f"Memcpy {direction} {became(sums[2], sums[3])}: {times}"
        detail = "There are as many copies as before. Check their sizes, pinned memory and what else uses the bus."
    evidence = tuple(of_sums(comparison, f"{direction}, {name}", entry) for name, entry in by_kind.items())
    weight_us = weight(comparison, delta)
    return Finding(kind, title, detail, delta_us=us(delta), weight_us=weight_us, evidence=evidence, covers=covers)


def _bandwidth(comparison: Comparison, direction: str) -> str:
    """``, 25.1 → 57.0 GB/s``: the bytes of the copies in one direction over their time; empty where not recorded."""
    rows = [row for row in comparison.copies.rows if row.key[0] == direction]
    sides = [[row.control for row in rows], [row.test for row in rows]]
    (time, _, size), (test_time, _, test_size) = (
        [sum(values) for values in zip(*side, strict=True)] or [0, 0, 0] for side in sides
    )
    if not (time and test_time and size and test_size):
        return ""
    return f", {collapsed(f'{size / time:.3g} → {test_size / test_time:.3g} GB/s')}"


def _results_of_copies(comparison: Comparison, direction: str) -> list[str]:
    """What the tests of the copies in one direction gave."""
    copied = (op for op in comparison.ops if op.category == MEMCPY and copy_direction(op.raw_name) == direction)
    return [op.time_change for op in copied]


def _memory_kinds(comparison: Comparison, direction: str) -> tuple[dict[str, list[int]], frozenset[int | str]]:
    """(``pageable to device`` → [control count, test count, control ns, test ns], the longest first; the groups of
    work that are such copies).
    """
    out: dict[str, list[int]] = {}
    groups = set()
    for i, group in enumerate(comparison.gpu_time.groups):
        for side, members in enumerate(group.sides):
            for member in members:
                if member.category != MEMCPY or copy_direction(member.name) != direction:
                    continue
                groups.add(i)
                match = MEMORY_KIND.search(member.name)
                name = f"{match['source']} to {match['target']}".lower() if match else UNKNOWN_MEMORY
                entry = out.setdefault(UNKNOWN_MEMORY if UNKNOWN_SIDE.search(name) else name, [0, 0, 0, 0])
                add_members(entry, side, (member,))
    copied = {i for i in groups if all(m.category == MEMCPY for s in comparison.gpu_time.groups[i].sides for m in s)}
    return dict(sorted(out.items(), key=lambda item: (-item[1][2] - item[1][3], item[0]))), frozenset(copied)


def _kind_change(by_kind: dict[str, list[int]]) -> str:
    """``pinned to device instead of pageable to device`` if the kind of most copies that changed is another."""
    totals = [sum(e[k] for e in by_kind.values()) for k in (0, 1)]
    if not all(totals) or UNKNOWN_MEMORY in by_kind:
        return ""
    shifts = {name: e[1] / totals[1] - e[0] / totals[0] for name, e in by_kind.items()}
    more, less = max(shifts, key=lambda n: shifts[n]), min(shifts, key=lambda n: shifts[n])
    return f"{more} instead of {less}" if shifts[more] >= KIND_CHANGE else ""


def overlap(comparison: Comparison) -> list[Finding]:
    """overlap-change: computation covers less or more of the copies, or of communication."""
    found = []
    for what, state, members in (
        ("copies", "gpu_copy", lambda m: m.category in (MEMCPY, MEMSET)),
        ("communication", "gpu_comm", lambda m: m.category == KERNEL and m.family == COMMUNICATION),
    ):
        exposed = comparison.step_time.within((state,))
        sides = [sum(m.ns for g in comparison.gpu_time.groups for m in g.sides[k] if members(m)) for k in (0, 1)]
        if not all(sides):
            continue
        covered = [max(0.0, 1 - e / s) for e, s in zip(exposed, sides, strict=True)]
        change_us = comparison.us(round((covered[0] - covered[1]) * sum(sides) / 2))
        longest = comparison.us(max(comparison.step_time.control, comparison.step_time.test))
        if abs(covered[1] - covered[0]) < OVERLAP_CHANGE or abs(change_us) < LEAST_CHANGE * longest:
            continue
        if not significant(comparison, (state,), comparison.us(exposed[1] - exposed[0])):
            continue
        us = comparison.us
        found.append(
            Finding(
                kinds.OVERLAP_CHANGE,
                f"computation covers {percents(*covered)} of the time of {what}",
                f"The {what} {'take' if what == 'copies' else 'takes'} "
                f"{collapsed(change(us(sides[0]), us(sides[1])))} per step, of which "
                f"{collapsed(change(us(exposed[0]), us(exposed[1])))} are exposed. Read on which streams they run, and "
                "what they wait for.",
                delta_us=change_us,
                weight_us=change_us,
                covers=frozenset((state,)),
            )
        )
    return found


def tensor_cores(comparison: Comparison) -> list[Finding]:
    """tensor-core-share: the share of kernel time on tensor cores changed by five points or more."""
    ranges = tensor_core_ranges(comparison)
    if ranges is None:
        return []
    control, test = ranges
    if max(test[0] - control[1], control[0] - test[1]) < TENSOR_CORE_CHANGE:
        return []
    shown = [f"{100 * low:.0f}" if high - low < 0.005 else f"{100 * low:.0f}–{100 * high:.0f}" for low, high in ranges]
    detail = "Recognised by kernel name. Check dtypes and alignment."
    if any("–" in text for text in shown):
        detail = f"Some names do not show it, so the share is a range. {detail}"
    return [Finding(kinds.TENSOR_CORE_SHARE, f"kernel time on tensor cores: {shown[0]} → {shown[1]} %", detail)]


def tensor_core_ranges(comparison: Comparison) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """The least and the largest fraction of kernel time in kernels that use tensor cores (MFMA on AMD) by their names,
    per side; None if a side has no kernels.
    """
    ranges = []
    for k in (0, 1):
        members = [m for g in comparison.gpu_time.groups for m in g.sides[k] if m.category == KERNEL]
        total = sum(m.ns for m in members)
        if not total:
            return None
        known = sum(m.ns for m in members if uses_tensor_cores(m.name))
        unknown = sum(m.ns for m in members if uses_tensor_cores(m.name) is None and m.family in MATRIX_FAMILIES)
        ranges.append((known / total, (known + unknown) / total))
    return ranges[0], ranges[1]


def tensor_core_shares(comparison: Comparison) -> tuple[float, float] | None:
    """The least fraction of kernel time on tensor cores per side; None if a side has no kernels."""
    ranges = tensor_core_ranges(comparison)
    return (ranges[0][0], ranges[1][0]) if ranges else None


RULES = (fused, counts, copies, overlap, tensor_cores)
