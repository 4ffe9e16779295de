"""Findings of work that other kernels, or other operators, do than before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Finding
from tracediff.diff.findings.matched_work import (
    SHOWN,
    Part,
    by_family,
    is_changed,
    noun_of,
    of_part,
    parts_by,
    passes_family,
    reaches,
    replaced,
    weight,
)
from tracediff.diff.groups import Group
from tracediff.diff.verdict import change_text
from tracediff.formatting import change, plural
from tracediff.profile.kernels.display_names import display_name

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

SAME_TIME = 0.05
"""Relative change of the convolutions that run other kernels below which it is a choice of algorithms only."""
NAMED = 2
"""Operators of a side that a title names."""


def swapped_operators(comparison: Comparison) -> list[Finding]:
    """operator-swap: in the place of operators of one family the test side runs others of it. That is no matter of
    chance, and is not tested.
    """
    found = []
    us = comparison.us
    for family, whole in by_family(comparison, _has_other_operators).items():
        if not is_changed(comparison, whole):
            continue
        names = _operators(comparison, whole)
        swaps = list(parts_by(comparison, whole, _operator_swap).items())[:SHOWN]
        found.append(
            Finding(
                kinds.OPERATOR_SWAP,
                f"{names[1]} instead of {names[0]}: {collapsed(change(us(whole.control), us(whole.test)))} per step",
                f"{reaches(comparison)}They are other {family} operators in the same place. "
                f"{kinds.advice_of(kinds.OPERATOR_SWAP)}",
                delta_us=us(whole.delta),
                weight_us=weight(comparison, whole.delta),
                evidence=tuple(of_part(comparison, name, swap) for name, swap in swaps),
                covers=whole.indices,
            )
        )
    return found


def _has_other_operators(group: Group) -> bool:
    """Whether all operators of ``group`` are known, and those of both sides are others."""
    ops = [{m.op for m in side} for side in group.sides]
    return replaced(group) and None not in ops[0] | ops[1] and ops[0].isdisjoint(ops[1])


def _operators(comparison: Comparison, whole: Part) -> tuple[str, str]:
    """The operators with most of the time of both sides: ``aten::gelu_backward and aten::gelu``."""
    sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for i in whole.indices:
        for times, members in zip(sides, comparison.work.groups[i].sides, strict=True):
            for member in members:
                times[member.op or ""] = times.get(member.op or "", 0) + member.ns
    control, test = (" and ".join(sorted(times, key=lambda op: (-times[op], op))[:NAMED]) for times in sides)
    return control, test


def _operator_swap(group: Group) -> str:
    """``aten::gelu → aten::relu``, and behind it the kernels of a GPU."""
    ops = " → ".join(max(side, key=lambda m: (m.ns, m.op or "")).op or "" for side in group.sides)
    return ops if group.largest in ops else f"{ops}: {_kernels(group)}"


def swapped(comparison: Comparison) -> list[Finding]:
    """algorithm-swap and cudnn-choice: the same operators run other kernels, and their time changed or did not."""
    found = []
    us = comparison.us
    for family, whole in by_family(comparison, lambda g: replaced(g) and not _has_other_operators(g)).items():
        groups = [comparison.work.groups[i] for i in whole.indices]
        times = f"{collapsed(change(us(whole.control), us(whole.test)))} per step"
        replacement = (
            f"{plural(len(groups), f'{family} operator')} {'runs' if len(groups) == 1 else 'run'} other kernels"
        )
        if is_changed(comparison, whole) and passes_family(comparison, family, whole.delta):
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
        swaps = list(parts_by(comparison, whole, _swap_name).items())[:SHOWN]
        evidence = tuple(of_part(comparison, name, swap) for name, swap in swaps)
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
    return f"{group.call}: {_kernels(group)}" if group.call else _kernels(group)


def _kernels(group: Group) -> str:
    """``old_kernel → new_kernel + another``."""
    before, after = (" + ".join(dict.fromkeys(display_name(m.name) for m in side[:2])) for side in group.sides)
    return f"{before} → {after}"


RULES = (swapped_operators, swapped)
