"""Findings of the matched work: what was fused, replaced, added or removed, and which kernels changed their speed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed, evidence_of
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.step import BUSY_STATES
from tracediff.diff.groups import Group, Member
from tracediff.formatting import change, count, part, percents, plural, signed_time
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.kernels.match_names import is_generated, match_name
from tracediff.profile.kernels.tensor_cores import uses_tensor_cores
from tracediff.runtimes import KERNEL, MEMCPY

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

LEAST = 0.01
"""Smallest change that is reported, as a fraction of all work."""
LEAST_RELATIVE = 0.05
"""Relative change of a kernel's time below which it counts as equal."""
SAME_TIME = 0.15
"""Relative change of the convolutions that run other kernels below which it is a choice of algorithms only."""
SHOWN = 5


def _matters(comparison: Comparison, delta: int) -> bool:
    work = comparison.work
    return abs(delta) >= LEAST * max(work.control, work.test, 1)


def _weight(comparison: Comparison, delta: int) -> float:
    """What a change of kernel time counts in the step: multiplied by the fraction in which the GPU is busy."""
    step = comparison.step_time
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return comparison.us(delta)
    return comparison.us(delta) * sum(step.within(BUSY_STATES)) / max(step.control + step.test, 1)


def _evidence(comparison: Comparison, group: Group, name: str | None = None) -> Evidence:
    number, us = comparison.number, comparison.us
    return Evidence(
        name or group.name,
        number(group.control_count),
        number(group.test_count),
        us(group.control_ns),
        us(group.test_ns),
    )


def _times(groups: Sequence[Group]) -> tuple[int, int]:
    """Time of ``groups`` per side."""
    return sum(g.control_ns for g in groups), sum(g.test_ns for g in groups)


def _largest(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda g: (-abs(g.delta), -(g.control_ns + g.test_ns), g.name))[:SHOWN]


def fused(comparison: Comparison) -> list[Finding]:
    """fused: operators that one compiled kernel computes on the other side."""
    groups = [g for g in comparison.work.groups if g.level == "fusion"]
    if not groups:
        return []
    kernels = [sum(m.count for g in groups for m in g.sides[k] if is_generated(m.name)) for k in (0, 1)]
    into = kernels[1] >= kernels[0]
    counts = [sum(g.control_count for g in groups), sum(g.test_count for g in groups)]
    control, test = _times(groups)
    us = comparison.us
    noun = "kernels" if comparison.gpu_time.groups else "operators"
    numbers = [count(comparison.number(n)) for n in counts]
    title = (
        f"fusion replaced {numbers[0]} {noun} with {numbers[1]} per step"
        if into
        else f"without fusion, {numbers[0]} {noun} became {numbers[1]} per step"
    )
    title += f": {collapsed(change(us(control), us(test)))}"
    detail = f"{plural(len(groups), 'group')} of fused kernels and the operators that they compute."
    if not into:
        detail += " Read which operators are not fused."
    evidence = tuple(_evidence(comparison, g, _fusion_name(g, into)) for g in _largest(groups))
    return [
        Finding(
            kinds.FUSED,
            title,
            detail,
            delta_us=us(test - control),
            weight_us=_weight(comparison, test - control),
            evidence=evidence,
        )
    ]


def _fusion_name(group: Group, into: bool) -> str:
    """``native_layer_norm, add → triton_poi_fused_add_native_layer_norm_0``."""
    before, after = group.sides if into else group.sides[::-1]
    ops = list(dict.fromkeys((m.op or display_name(m.name)).removeprefix("aten::") for m in before))
    names = list(dict.fromkeys(display_name(m.name) for m in after if is_generated(m.name)))
    shown = ", ".join(ops[:4]) + (f" and {len(ops) - 4} more" if len(ops) > 4 else "")
    return f"{shown} → {', '.join(names[:2])}{' …' if len(names) > 2 else ''}"


def swapped(comparison: Comparison) -> list[Finding]:
    """algorithm-swap and cudnn-choice: the same operators run other kernels, and their time changed or did not."""
    families: dict[str, list[Group]] = defaultdict(list)
    for group in comparison.work.groups:
        if group.level == "op" and _kernel_names(group.control) != _kernel_names(group.test):
            families[group.family].append(group)
    found = []
    us = comparison.us
    for family, groups in families.items():
        control, test = _times(groups)
        delta = test - control
        times = f"{collapsed(change(us(control), us(test)))} per step"
        operators = plural(len(groups), f"{family} operator")
        replaced = f"{operators} {'runs' if len(groups) == 1 else 'run'} other kernels than before"
        evidence = tuple(_evidence(comparison, g, _swap_name(g)) for g in _largest(groups))
        if _matters(comparison, delta):
            kind = kinds.ALGORITHM_SWAP
            title = f"{family} kernels were replaced: {times} ({signed_time(us(delta))})"
            detail = f"{replaced}. Check dtype, layout and library versions."
        elif family == "conv" and comparison.gpu_time.groups and abs(delta) < SAME_TIME * max(control, test):
            kind = kinds.CUDNN_CHOICE
            title = f"other convolution algorithms at similar cost: {times}"
            detail = f"{replaced}. This does not explain the change of the step."
        else:
            continue
        found.append(
            Finding(kind, title, detail, delta_us=us(delta), weight_us=_weight(comparison, delta), evidence=evidence)
        )
    return found


def _kernel_names(members: tuple[Member, ...]) -> set[str]:
    return {match_name(m.name) for m in members}


def _swap_name(group: Group) -> str:
    return f"{group.call or group.name}: {display_name(group.control[0].name)} → {display_name(group.test[0].name)}"


def same_kernels(comparison: Comparison) -> list[Finding]:
    """slower-kernel and faster-kernel: the time of the same kernel below the same calls changed."""
    kernels: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in comparison.work.groups:
        if group.level in ("exact", "sequence") and group.family != COMMUNICATION:  # those wait for other ranks
            kernels[group.name, group.family].append(group)
    found = []
    us = comparison.us
    not_significant = {op.name for op in comparison.ops if op.time_change in ("same", "unclear")}
    for (name, _), groups in kernels.items():
        control, test = _times(groups)
        delta = test - control
        if (
            not _matters(comparison, delta)
            or abs(delta) < LEAST_RELATIVE * max(control, test)
            or name in not_significant
        ):
            continue
        kind = kinds.SLOWER_KERNEL if delta > 0 else kinds.FASTER_KERNEL
        title = (
            f"{name} is {part(abs(delta), control)} {'slower' if delta > 0 else 'faster'}: "
            f"{change(us(control), us(test))} per step"
        )
        places = "call site" if len(groups) == 1 else f"{len(groups):,} call sites"
        detail = (
            f"It runs at the same {places} on both sides. Check clocks, concurrent memory traffic and the hardware."
        )
        evidence = tuple(_evidence(comparison, g, g.call or g.name) for g in _largest(groups))
        found.append(
            Finding(kind, title, detail, delta_us=us(delta), weight_us=_weight(comparison, delta), evidence=evidence)
        )
    return sorted(found, key=lambda f: -abs(f.delta_us))[:SHOWN]


def counts(comparison: Comparison) -> list[Finding]:
    """count-change: work without a counterpart on the other side."""
    sums: dict[str, list[int]] = {}
    for group in comparison.work.groups:
        if group.level in ("added", "removed"):
            name = group.call or (group.control or group.test)[0].op or group.name
            entry = sums.setdefault(name, [0, 0, 0, 0])
            for side, members in enumerate(group.sides):
                entry[side] += sum(m.count for m in members)
                entry[side + 2] += sum(m.ns for m in members)
    delta = sum(e[3] - e[2] for e in sums.values())
    changed = sum(abs(e[3] - e[2]) for e in sums.values())
    if not sums or not _matters(comparison, changed):
        return []
    us = comparison.us
    largest = sorted(sums.items(), key=lambda item: (-abs(item[1][3] - item[1][2]), item[0]))[:SHOWN]
    removed, added = (comparison.number(sum(e[k] for e in sums.values())) for k in (0, 1))
    noun = "GPU events" if comparison.gpu_time.groups else "operators"
    words = [f"{count(n)} {word}" for n, word in ((removed, "removed"), (added, "added")) if n]
    times = collapsed(change(us(sum(e[2] for e in sums.values())), us(sum(e[3] for e in sums.values()))))
    title = f"{noun} per step: {', '.join(words)}"
    detail = f"Work without a counterpart on the other side: {times} per step. Read which work was added and removed."
    evidence = tuple(
        Evidence(n, comparison.number(e[0]), comparison.number(e[1]), us(e[2]), us(e[3])) for n, e in largest
    )
    return [
        Finding(
            kinds.COUNT_CHANGE,
            title,
            detail,
            delta_us=us(delta),
            weight_us=_weight(comparison, delta),
            evidence=evidence,
        )
    ]


def copies(comparison: Comparison) -> list[Finding]:
    """new-copies: more or fewer copies per step in one direction."""
    found = []
    us, number = comparison.us, comparison.number
    for op in comparison.ops:
        if (
            op.category == MEMCPY
            and abs(number(op.test_count - op.control_count)) >= 1
            and _matters(comparison, op.total_delta)
        ):
            title = f"{op.name}: {count(number(op.control_count))} → {count(number(op.test_count))} copies per step"
            times = collapsed(change(us(op.control_total), us(op.test_total)))
            where = (
                "`clone()`, `contiguous()`, `copy_()`" if op.name.endswith("DtoD") else "`.to()`, `.cpu()`, offloading"
            )
            detail = f"They take {times} per step. Look for {where}."
            found.append(
                Finding(
                    kinds.NEW_COPIES,
                    title,
                    detail,
                    delta_us=us(op.total_delta),
                    weight_us=_weight(comparison, op.total_delta),
                    evidence=(evidence_of(comparison, op),),
                )
            )
    return found


def tensor_cores(comparison: Comparison) -> list[Finding]:
    """tensor-core-share: the share of kernel time on tensor cores changed by five points or more."""
    shares = tensor_core_shares(comparison)
    if shares is None or abs(shares[1] - shares[0]) < 0.05:
        return []
    gpu, us = comparison.gpu_time, comparison.us
    title = f"kernel time on tensor cores: {percents(*shares)}"
    detail = (
        "Recognised by kernel name: a kernel whose name does not show tensor cores counts as not using them. "
        "Check dtypes and alignment."
    )
    evidence = Evidence("on tensor cores", None, None, us(gpu.control) * shares[0], us(gpu.test) * shares[1])
    return [Finding(kinds.TENSOR_CORE_SHARE, title, detail, evidence=(evidence,))]


def tensor_core_shares(comparison: Comparison) -> tuple[float, float] | None:
    """The fraction of kernel time in kernels that use tensor cores (MFMA on AMD) by their names, per side; None if a
    side has no kernels.
    """
    shares = []
    for k in (0, 1):
        members = [m for g in comparison.gpu_time.groups for m in g.sides[k] if m.category == KERNEL]
        total = sum(m.ns for m in members)
        if not total:
            return None
        shares.append(sum(m.ns for m in members if uses_tensor_cores(m.name)) / total)
    return shares[0], shares[1]


RULES = (fused, swapped, same_kernels, counts, copies, tensor_cores)
