"""Single events: a call, a GPU event or a stretch of Python that dominates its leaf becomes a leaf of its own."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tracediff.aggregate.leaves import Longest
from tracediff.explain.leaves import HOST, SINGLES, Chain, Leaves, Single
from tracediff.profile.kernels.display_names import display_name

SHARE = 0.05
"""Part of the step's change from which a line, and a single event, is worth its place."""
DOMINATES = 0.5
"""Part of its leaf's time on the path that a single event is."""
EXCEPTION = 10
"""Times the mean of the others of its name that it lasts."""
FEWEST = 3
"""Events of a name, of which one can be the exception."""
NEVER = ("loading", "compiling", "queue", "unknown")
"""Kinds of leaves that are no events."""


def take_out(leaves: Leaves, change: float) -> Leaves:
    """``leaves`` with those events of their own that dominate a leaf and are worth a line in a step that changed by
    ``change`` ns. The partner of one is the other side's of the same label, else an average event of its leaf there.
    """
    found: dict[Chain, dict[int, tuple[int, float, Single]]] = defaultdict(dict)
    for side in (0, 1):
        names = _by_name(leaves, side)
        for leaf, (ns, single) in _dominant(leaves, side, change, names).items():
            found[_chain(leaves, leaf, single)].setdefault(side, (leaf, ns, single))
    taken = [_Single(leaves, chain, by_side) for chain, by_side in sorted(found.items(), key=lambda x: str(x[0]))]
    return _extended(leaves, taken) if taken else leaves


def _by_name(leaves: Leaves, side: int) -> dict[tuple[str, str], tuple[float, float]]:
    """(kind, name) → (ns, instances) per step."""
    out: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    total = np.maximum(leaves.total[side], leaves.path[side])
    for kind, name, ns, count in zip(leaves.kinds, leaves.names[side], total, leaves.count[side], strict=True):
        ns_before, count_before = out[kind, name]
        out[kind, name] = ns_before + float(ns), count_before + float(count)
    return out


def _dominant(
    leaves: Leaves, side: int, change: float, names: dict[tuple[str, str], tuple[float, float]]
) -> dict[int, tuple[float, Single]]:
    """Leaf → (ns per step of its longest event of every run, the longest of them)."""
    runs, steps = leaves.runs[side].shape[0], leaves.steps[side]
    of_leaf: dict[int, dict[int, Longest]] = defaultdict(dict)
    for (run, leaf), longest in leaves.longest[side].items():
        of_leaf[leaf][run] = longest
    out = {}
    for leaf, by_run in of_leaf.items():
        kind = leaves.kinds[leaf]
        if kind in NEVER or (leaves.groups[leaf] >= 0 and kind == "op"):
            continue
        ns = sum(longest.ns / steps[run] for run, longest in by_run.items()) / runs
        if ns < SHARE * abs(change) or ns < DOMINATES * leaves.path[side, leaf]:
            continue
        name_ns, count = names[kind, leaves.names[side][leaf]]
        if kind == "python":
            name_ns, count = float(leaves.path[side, leaf]), float(leaves.count[side, leaf])
        per_run = sum(steps) / len(steps)
        events, alone = count * per_run, max(longest.ns for longest in by_run.values())
        others = (name_ns * per_run - alone) / max(events - 1, 1)
        if events >= FEWEST and alone >= EXCEPTION * others:
            longest = max(by_run.values(), key=lambda event: event.ns)
            out[leaf] = ns, Single(side, longest, events - 1, name_ns * per_run - alone)
    return out


def _chain(leaves: Leaves, leaf: int, single: Single) -> Chain:
    chain = leaves.chains[leaf]
    if leaves.kinds[leaf] == "python":
        return HOST, SINGLES, f"one stretch of Python before {single.longest.following or 'the end of the step'}"
    if leaves.kinds[leaf] == "gpu":
        return chain[0], SINGLES, f"one {display_name(leaves.names[single.side][leaf])}"
    named = [step for step in chain if isinstance(step, str)]
    return chain[0], SINGLES, f"one {named[-1]}"


class _Single:
    """One single event on both sides: what leaves the leaves it came from."""

    def __init__(self, leaves: Leaves, chain: Chain, found: dict[int, tuple[int, float, Single]]) -> None:
        self.chain = chain
        self.sides = found
        self.path, self.total, self.count = np.zeros(2), np.zeros(2), np.zeros(2)
        self.runs = [np.zeros(r.shape[0]) for r in leaves.runs]
        self.largest = max(found.items(), key=lambda item: item[1][1])
        for side in (0, 1):
            if side in found:
                leaf, ns, _ = found[side]
                self._take(leaves, side, leaf, ns, ns, 1 / (sum(leaves.steps[side]) / len(leaves.steps[side])))
                continue
            leaf = self.largest[1][0]
            count = leaves.count[side, leaf]
            per_step = 1 / (sum(leaves.steps[side]) / len(leaves.steps[side]))
            if count >= per_step:
                share = per_step / count
                path, total = leaves.path[side, leaf] * share, leaves.total[side, leaf] * share
                self._take(leaves, side, leaf, path, total, per_step)

    def _take(self, leaves: Leaves, side: int, leaf: int, path: float, total: float, count: float) -> None:
        before, whole = leaves.path[side, leaf], max(leaves.total[side, leaf], leaves.path[side, leaf])
        runs = leaves.runs[side][:, leaf]
        self.runs[side] = runs * (total / whole) if whole else np.zeros(len(runs))
        leaves.runs[side][:, leaf] = runs - self.runs[side]
        self.path[side], self.total[side], self.count[side] = path, total, count
        leaves.path[side, leaf] = before - path
        leaves.total[side, leaf] = max(leaves.total[side, leaf] - total, leaves.path[side, leaf])
        leaves.count[side, leaf] = max(leaves.count[side, leaf] - count, 0.0)


def _extended(leaves: Leaves, taken: list[_Single]) -> Leaves:
    first = len(leaves)

    def beside(columns: np.ndarray, name: str) -> np.ndarray:
        return np.concatenate([columns, np.array([getattr(single, name) for single in taken]).T], axis=1)

    out = Leaves(
        chains=[*leaves.chains, *(single.chain for single in taken)],
        groups=[*leaves.groups, *(-1 for _ in taken)],
        path=beside(leaves.path, "path"),
        total=beside(leaves.total, "total"),
        count=beside(leaves.count, "count"),
        runs=(
            np.concatenate([leaves.runs[0], np.array([s.runs[0] for s in taken]).T], axis=1),
            np.concatenate([leaves.runs[1], np.array([s.runs[1] for s in taken]).T], axis=1),
        ),
        ratio=np.append(leaves.ratio, np.full(len(taken), np.nan)),
        unit=np.append(leaves.unit, np.array([""] * len(taken), object)),
        kinds=[*leaves.kinds, *("single" for _ in taken)],
        names=tuple((*names, *("" for _ in taken)) for names in leaves.names),  # type: ignore[arg-type]
        longest=leaves.longest,
        steps=leaves.steps,
    )
    for i, single in enumerate(taken):
        out.single[first + i] = single.largest[1][2]
    return out
