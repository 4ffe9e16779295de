"""Single events: a leaf that one call, GPU event or stretch of Python dominates is a line of its own."""

from __future__ import annotations

from collections import defaultdict

from tracediff.aggregate.leaves import Longest
from tracediff.explain.effects import MOSTLY
from tracediff.explain.leaves import HOST, NOT_RECORDED, PYTHON, SINGLES, Chain, Leaves, Single
from tracediff.profile.kernels.display_names import display_name

SHARE = 0.05
"""Part of the step's change from which a line, and a single event, is worth its place."""
EXCEPTION = 10
"""Times the mean of the others of its name that it lasts."""
FEWEST = 3
"""Events of a name, of which one can be the exception."""
NEVER = ("loading", "compiling", "queue", "unknown")
"""Kinds of leaves that are no events."""


def name_singles(leaves: Leaves, change: float) -> None:
    """Put the leaves that one event dominates aside, if the event is worth a line in a step that changed by ``change``
    ns: its time is no rate of the leaf, and its parent's other leaves did not change like it.
    """
    for side in (0, 1):
        names = _by_name(leaves, side)
        for leaf, single in _dominant(leaves, side, change, names).items():
            known = leaves.single.get(leaf)
            if known is None or single.longest.ns > known.longest.ns:
                leaves.single[leaf] = single
    for leaf, single in leaves.single.items():
        leaves.chains[leaf] = _chain(leaves, leaf, single)


def _by_name(leaves: Leaves, side: int) -> dict[tuple[str, str], tuple[float, float]]:
    """(kind, name) → (ns, instances) per step."""
    out: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for kind, name, ns, count in zip(
        leaves.kinds, leaves.names[side], leaves.total[side], leaves.count[side], strict=True
    ):
        ns_before, count_before = out[kind, name]
        out[kind, name] = ns_before + float(ns), count_before + float(count)
    return out


def _dominant(
    leaves: Leaves, side: int, change: float, names: dict[tuple[str, str], tuple[float, float]]
) -> dict[int, Single]:
    """Leaf → the longest event of all runs, where that of every run dominates it."""
    runs, steps = leaves.runs[side].shape[0], leaves.steps[side]
    per_run = sum(steps) / len(steps)
    of_leaf: dict[int, dict[int, Longest]] = defaultdict(dict)
    for (run, leaf), longest in leaves.longest[side].items():
        of_leaf[leaf][run] = longest
    out = {}
    for leaf, by_run in of_leaf.items():
        kind = leaves.kinds[leaf]
        if kind in NEVER or (leaves.groups[leaf] >= 0 and kind == "op"):
            continue
        ns = sum(longest.ns / steps[run] for run, longest in by_run.items()) / runs
        if ns < SHARE * abs(change) or ns < MOSTLY * leaves.path[side, leaf]:
            continue
        name_ns, count = names[kind, leaves.names[side][leaf]]
        if kind == "python":
            name_ns, count = float(leaves.path[side, leaf]), float(leaves.count[side, leaf])
        longest = max(by_run.values(), key=lambda event: event.ns)
        others = (name_ns * per_run - longest.ns) / max(count * per_run - 1, 1)
        if count * per_run >= FEWEST and longest.ns >= EXCEPTION * others:
            mine = float(leaves.count[side, leaf]) * per_run
            out[leaf] = Single(side, longest, mine, count * per_run - 1, name_ns * per_run - longest.ns)
    return out


def _chain(leaves: Leaves, leaf: int, single: Single) -> Chain:
    """Its own label is that of the leaf; a GPU event's is its kernel, as each group of work has few."""
    chain = leaves.chains[leaf]
    if leaves.kinds[leaf] == "gpu":
        kernel = display_name(leaves.names[single.side][leaf])
        return chain[0], SINGLES, f"one {kernel}" if leaves.count[:, leaf].max() <= 1 else kernel
    label = next(step for step in reversed(chain) if isinstance(step, str))
    if leaves.kinds[leaf] == "op" and HOST in chain:
        label = f"{label} on the host"
    return HOST, SINGLES, PYTHON if label == NOT_RECORDED else label
