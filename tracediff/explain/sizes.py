"""Facts about the sizes of the work that both sides do: how much more of it there is, in which sizes, per what."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from math import exp, log
from operator import eq

import numpy as np

from tracediff import thresholds
from tracediff.aggregate.call_tree import Call, Trees
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import PLACED, PLACED_AS
from tracediff.explain.amounts import LOOKUP, changed_shape
from tracediff.explain.facts import FIRST_DIMENSION, OTHER_SIZES, WORK_DIFFERS, Fact
from tracediff.explain.leaves import GPU, MIXED, OPERATORS, Leaves
from tracediff.explain.programs import calls_by_shape
from tracediff.explain.reasons import changed_input, counterparts
from tracediff.explain.tree import logarithmic_mean
from tracediff.formatting import about, count, joined, multiple, percent
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import MEMCPY

NO_MEASURE = ("calls", "events", "")
"""Units of which more is not more work."""
DIFFERENT_WORK = "on different work"
WORDS = {GPU: "GPU time", OPERATORS: "operator time", MIXED: "work"}


def amounts(leaves: Leaves, comparison: Comparison, same: str) -> list[Fact]:
    """work-differs: how much more work of known amount the test side does, whether or not the step waits for it, with
    an example of a shape where one changed; ``same`` are words for a program that is.
    """
    out, groups, trees = [], comparison.work.groups, comparison.trees
    is_resized = np.abs(np.log(np.nan_to_num(leaves.ratio, nan=1.0))) > thresholds.SAME_RATIO
    is_paired = np.array(
        [
            g < 0 or (_is_paired(groups[g]) and not (resized and _has_same_shapes(groups[g], trees)))
            for g, resized in zip(leaves.groups, is_resized.tolist(), strict=True)
        ],
        np.bool_,
    )
    for label in WORDS:
        parts, effects, ratios, units = measured(leaves, (label,), is_paired)
        if not parts.size or _is_outweighed(leaves, label):
            continue
        part = float(parts.sum())
        sizes = np.abs(effects)
        gross = float(sizes.sum())
        if (
            part < thresholds.WORTH_A_LINE
            or abs(effects.sum()) < max(thresholds.MOSTLY * gross, thresholds.WORTH_A_LINE * part / 2)
            or abs(median := _weighted_median(ratios, sizes)) <= thresholds.SAME_RATIO
        ):
            continue
        by_unit: dict[str, float] = defaultdict(float)
        for unit, effect in zip(units, sizes, strict=True):
            by_unit[unit] += float(effect)
        unit = max(by_unit, key=lambda u: by_unit[u])
        alike = float(sizes[np.abs(ratios - median) <= thresholds.SAME_RATIO].sum())
        how_much = multiple if alike >= thresholds.KNOWN_AMOUNT * gross else about
        shape = changed_shape(groups, trees, exp(median), unit)
        varied = "" if shape else _largest(_examples(comparison))  # of calls with several sizes on a side
        example = f", such as {shape or f'{varied} and others'}" if shape or varied else ""
        before, after = map(float, parts[:, np.abs(ratios) > thresholds.SAME_RATIO].sum(axis=1))
        differing, coverage = percent(before + after), percent(part)
        where = f"in {differing} of the {WORDS[label]}"
        of_what = "" if coverage in (differing, percent(1)) else f", of {coverage} whose amounts are known"
        basis = "" if differing == percent(1) else f" {where}{of_what}"
        amount, longer = how_much(exp(median), unit), multiple(after / before, "time")
        with_same = f", with {same}" if same else ""
        text = f"the work differs{basis}: {comparison.test.label} does {amount} in {longer}{example}{with_same}"
        how = f"{amount} where it differs" if before + after >= thresholds.MOSTLY else where
        out.append(Fact(WORK_DIFFERS, text, f"the {unit}", amount, exp(median), f"{DIFFERENT_WORK} ({how})"))
    return out


def _is_outweighed(leaves: Leaves, label: str) -> bool:
    """Whether work of one side only, in the families of measured work, turns how much more that is into less, or the
    other way round; of what is below a first ``label``.
    """
    here, is_measured = is_measured_work(leaves, (label,))
    families = {leaves.chains[i][:2] for i in np.flatnonzero(is_measured).tolist()}
    one_sided = np.flatnonzero(here & ~leaves.total.all(axis=0)).tolist()
    lone = [i for i in one_sided if leaves.chains[i][:2] in families]
    ratios = np.log(leaves.ratio[is_measured])
    effect = float((logarithmic_mean(*leaves.total[:, is_measured]) * ratios).sum())
    return effect * (effect + float((leaves.total[1, lone] - leaves.total[0, lone]).sum())) < 0


def other_sizes(leaves: Leaves, comparison: Comparison, same: str) -> list[Fact]:
    """other-sizes: how much of the work has inputs of other sizes, though it is not known to be more or less work; of
    little only where the calls are the ``same``.
    """
    ns_of = _examples(comparison)
    part = ns_of.total() / max(sum(comparison.work.time), 1)
    if not ns_of or (part < thresholds.WORTH_A_LINE and not same):
        return []
    as_much = "as much work" if part >= thresholds.WORTH_A_LINE and does_as_much(leaves) else ""
    alike = joined(same, as_much, by=" and ")
    setting, what = "on other sizes" if part >= thresholds.MOSTLY else "", _word(comparison)
    text = f"sizes differ in {percent(part)} of the {what}, such as {_largest(ns_of)}{alike and f', with {alike}'}"
    return [Fact(OTHER_SIZES, text, setting=setting)]


def _examples(comparison: Comparison) -> Counter[str]:
    """``aten::mm [64,64] → [256,64]`` → ns per step of both sides' work whose inputs changed so: each side makes such
    calls that the other does not make as often.
    """
    ns_of = Counter[str]()
    control, test = map(calls_by_shape, comparison.trees)
    others = control - test, test - control
    for group in filter(_is_paired, comparison.work.groups):
        calls = counterparts(group, comparison.trees)
        code, sizes = (changed_input(*calls) if calls else None) or ("", "")
        is_other = all((call.label, call.shapes) in alone for call, alone in zip(calls or (), others, strict=False))
        if code == "sizes" and is_other:
            ns_of[f"{match_name(group.members.control[0].op or '')} {sizes}"] += sum(group.time)
    return ns_of


def _largest(ns_of: Counter[str]) -> str:
    return max(ns_of, key=lambda text: ns_of[text], default="")


def _word(comparison: Comparison) -> str:
    return WORDS[GPU if comparison.has_gpu else OPERATORS]


def first_dimension(comparison: Comparison) -> list[Fact]:
    """first-dimension: the first input of the step has another first dimension, and by that factor the inputs of most
    of the work whose inputs are known, as those of another batch have.
    """
    first = comparison.trees.map(lambda tree: next(filter(None, map(_first_input, tree.calls)), []))
    factor = _growth(*first)
    if not factor or not any(map(eq, *first)):  # all dimensions changed, as those of a wider layer
        return []
    moved = counterpart_ns = 0
    for group in filter(_is_paired, comparison.work.groups):
        growth = _growth(*map(_first_input, counterparts(group, comparison.trees) or ()))
        counterpart_ns += sum(group.time) if growth is not None else 0
        moved += sum(group.time) if growth is not None and abs(growth - factor) <= thresholds.SAME_RATIO else 0
    whole = max(sum(comparison.work.time), 1)
    if moved < thresholds.MOSTLY * counterpart_ns or moved < thresholds.WORTH_A_LINE * whole:
        return []
    before, after = (count(dims[0]) for dims in first)
    change = f"first dimension {before} → {after}"
    text = f"the first input of the step has another {change}, as of another batch"
    part = f"so have the inputs of {percent(moved / whole)} of the {_word(comparison)}"
    return [Fact(FIRST_DIMENSION, f"{text}; {part}", before, after, exp(factor), f"with {change}")]


def _first_input(call: Call) -> list[int]:
    """The first input of an operator that has several dimensions, as a bias has not; empty where none has, and of
    lookups, whose first input is a table.
    """
    if call.kind != "op" or LOOKUP.search(call.label):
        return []
    first: list[int] = next((shape for shape in json.loads(call.shapes or "[]") if len(shape) > 1), [])
    return [] if any(isinstance(dim, list) for dim in first) else first


def _growth(control: Sequence[int] = (), test: Sequence[int] = ()) -> float | None:
    """The logarithm of how many times as large the first dimension is; None where it is unknown."""
    is_known = control and test and min(control[0], test[0]) > 0  # below 0 where a size is symbolic
    return log(test[0] / control[0]) if is_known else None


def _is_paired(group: Group) -> bool:
    """Whether it is one operator's work in one place, as often on both sides: other sizes are more or less of it."""
    if group.level not in (*PLACED_AS, *PLACED):
        return True
    members = [member for side in group.members for member in side]
    is_of_one = len({match_name(member.op or "") for member in members}) == 1
    is_copied = any(member.category == MEMCPY for member in members)  # its bytes are all that it is
    return is_of_one and not is_copied and group.count.control == group.count.test


def _has_same_shapes(group: Group, trees: Trees) -> bool:
    """Whether both sides call with the same shapes, however often."""
    control, test = (
        {tree.calls[item.node].shapes for item in items if item.node >= 0}
        for tree, items in zip(trees, group.items, strict=True)
    )
    return control == test != {None} and bool(control)


def is_measured_work(leaves: Leaves, labels: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
    """(bool[l] whether each leaf is below these first labels, bool[l] whether its amount is measured, too)."""
    here = np.array([chain[0] in labels for chain in leaves.chains], np.bool_)
    return here, here & (leaves.ratio > 0) & leaves.total.all(axis=0) & ~np.isin(leaves.unit, NO_MEASURE)


def measured(
    leaves: Leaves, labels: Collection[str], some: np.ndarray | bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(parts of all its time on both sides, effects of the amounts in such parts, logarithms of the ratios, units) of
    the work below these first labels whose amount is measured. No effect is larger than the work itself.
    """
    here, is_measured = is_measured_work(leaves, labels)
    is_measured &= some
    times, ratios = leaves.total[:, is_measured], np.log(leaves.ratio[is_measured])
    longest, whole = times.max(axis=0, initial=0), max(leaves.total[:, here].sum(), 1)
    effects = np.clip(logarithmic_mean(*times) * ratios, -longest, longest)
    return times / whole, effects / whole, ratios, leaves.unit[is_measured]


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    passed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(passed, passed[-1] / 2)])


def unknown_sizes(leaves: Leaves, trees: Trees) -> list[Fact]:
    """unknown-sizes: operators of which a side has no shapes, nor enough of their work another amount."""
    sides = [[call.shapes is not None for call in tree.calls if call.kind == "op"] for tree in trees]
    if not all(sides) or all(map(any, sides)) or measured(leaves, WORDS)[0].sum() >= thresholds.MOSTLY:
        return []
    recorded = "recorded on one side only" if any(map(any, sides)) else "not recorded"
    return [Fact("unknown-sizes", f"sizes unknown: shapes were {recorded} (record_shapes=True)")]


def does_as_much(leaves: Leaves) -> bool:
    """Whether enough of the work is known, and is as much on both sides."""
    parts, effects, _, _ = measured(leaves, WORDS)
    known_part = float(parts.sum())
    off = float(np.abs(effects).sum())
    return known_part >= thresholds.MOSTLY and off <= thresholds.SAME_RATIO * known_part / 2
