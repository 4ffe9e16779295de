"""Explains the change of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from tracediff.aggregate.call_tree import CallTree
from tracediff.aggregate.leaves import SetLeaves
from tracediff.aggregate.side import Side
from tracediff.diff.groups import Group
from tracediff.diff.statistics.many import compare_many
from tracediff.explain.amounts import measure
from tracediff.explain.effects import MOSTLY, SAME
from tracediff.explain.explanation import Amount, Cause, Explanation, Significance
from tracediff.explain.facts import facts_of
from tracediff.explain.leaves import Leaves, pair
from tracediff.explain.lines import Line, lines_of
from tracediff.explain.reasons import Work, largest_parts, of_single, reasons_of
from tracediff.explain.singles import name_singles
from tracediff.explain.tree import SINGLE, Node, build
from tracediff.explain.wording import OTHERS, UNRECORDED, label_of, what_happened

ARROW = " → "
"""In labels that name the kernels of both sides."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What an explanation is made from.

    Attributes:
        leaves: of control and test. groups: the matched work. trees: the call trees. sides: what was recorded of each.
        same_vendor: whether the GPUs are of one vendor. family_of: (name, operator) → family.
        noise_floor: relative change that is none.
    """

    leaves: tuple[SetLeaves, SetLeaves]
    groups: Sequence[Group]
    trees: tuple[CallTree, CallTree]
    sides: tuple[Side, Side]
    same_vendor: bool
    family_of: Callable[[str, str | None], str]
    noise_floor: float


def explain(compared: Compared) -> Explanation:
    """Why the step of the test side takes longer or shorter."""
    leaves = pair(compared.leaves, compared.groups, compared.sides, compared.family_of)
    name_singles(leaves, float(leaves.path[1].sum() - leaves.path[0].sum()))
    measure(leaves, compared.groups, compared.trees, compared.same_vendor)
    root = build(leaves)
    lines = lines_of(root)
    tested = _significance([line.node for line in lines.shown], leaves, compared.noise_floor)
    return Explanation(
        facts=facts_of(leaves, compared.trees, compared.sides, lines.scale),
        causes=tuple(
            _cause(line, leaves, compared, significance) for line, significance in zip(lines.shown, tested, strict=True)
        ),
        exposure_us={label: ns / 1000 for label, ns in lines.exposure.items()},
        rest_us=lines.rest / 1000,
        scale_us=lines.scale / 1000,
        root=root,
        leaves=leaves,
        period="file" if all(side.whole_file for side in compared.sides) else "step",
    )


def _cause(line: Line, leaves: Leaves, compared: Compared, significance: Significance) -> Cause:
    node = line.node
    amount = amount_of(node, leaves)
    groups = [compared.groups[g] for g in dict.fromkeys(leaves.groups[leaf] for leaf in node.leaves) if g >= 0]
    work = Work(groups, compared.trees, amount is not None and abs(np.log(amount.ratio)) <= SAME)
    single = next((leaves.single[leaf] for leaf in node.leaves if leaf in leaves.single), None)
    label = label_of(line)
    reasons = [r for r in reasons_of(work) if r.code != "other-kernels" or ARROW not in label]
    if single and node.note == SINGLE:
        reasons.append(of_single(single))
    elif parts := largest_parts(node):
        reasons.append(parts)
    return Cause(
        label=label,
        trail=line.trail,
        control_us=float(node.total[0]) / 1000,
        test_us=float(node.total[1]) / 1000,
        delta_us=node.work / 1000,
        effect=node.main_effect[0],
        what=what_happened(line, amount, elsewhere=_elsewhere(node, leaves)),
        amount=amount,
        reasons=tuple(reasons),
        significance=significance,
        first=(single.side, single.longest.first) if single else None,
        node=node,
    )


def _elsewhere(node: Node, leaves: Leaves) -> str:
    """What the side that has none of ``node`` has instead: UNRECORDED where it has nothing of its kinds, OTHERS where
    it has work of that name elsewhere, else nothing.
    """
    if node.total.all():
        return ""
    inside, side = set(node.leaves), int(node.total[1] == 0)
    kinds = {leaves.kinds[i] for i in inside}
    there = [i for i in np.flatnonzero(leaves.total[side]).tolist() if i not in inside]
    if kinds <= {"op", "call"} and not any(leaves.kinds[i] in kinds for i in there):
        return UNRECORDED
    return OTHERS if any(node.label in leaves.chains[i] for i in there) else ""


def amount_of(node: Node, leaves: Leaves) -> Amount | None:
    """How much more work a node is: the mean of its leaves' ratios, weighted by their time; None where most of its time
    has no known amount.
    """
    mine = np.array(node.leaves, np.int64)
    total = leaves.total[:, mine].sum(axis=0)
    known = leaves.ratio[mine] > 0
    if not known.any() or total[known].sum() < MOSTLY * total.sum():
        return None
    ratio = float(np.average(np.log(leaves.ratio[mine][known].astype(float)), weights=total[known]))
    units = leaves.unit[mine][known]
    largest = max(dict.fromkeys(units), key=lambda unit: total[known][units == unit].sum())
    return Amount(exp(ratio), str(largest), float(total[known].sum() / total.sum()))


def _significance(nodes: Sequence[Node], leaves: Leaves, noise_floor: float) -> list[Significance]:
    """Of each node, from its time in every run."""
    if not nodes:
        return []
    sides = [np.array([runs[:, node.leaves].sum(axis=1) for node in nodes]) / 1000 for runs in leaves.runs]
    tested = compare_many(sides[0], sides[1], noise_floor)
    return [Significance(tested.verdict[k], tested.line(k)[2], tested.interval(k)) for k in range(len(nodes))]
