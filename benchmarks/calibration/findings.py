"""How often equal runs give a cause that claims a change: all splits of one collected variant into two equal sides.

python benchmarks/calibration/findings.py FOLDER... [--most N] prints a row per folder of runs of one program.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from itertools import combinations

from msgspec.structs import replace

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import Cause


def main() -> None:
    """Print the share of splits with a cause that claims a change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--most", type=int, default=200, help="splits per folder")
    asked = parser.parse_args()
    print("| runs | per side | splits | with a finding (required ≤ 6 %) | which |\n|:--|--:|--:|--:|:--|")
    for folder in asked.folders:
        (traces,) = load_sets([folder])
        for per_side in (3, 5):
            if len(traces.runs) >= 2 * per_side:
                print(_row(folder, traces, per_side, asked.most))


def _row(folder: str, traces: TraceSet, per_side: int, most: int) -> str:
    splits = list(_splits(len(traces.runs), per_side))
    if len(splits) > most:
        splits = random.Random(0).sample(splits, most)
    kinds: Counter[str] = Counter()
    flagged = 0
    for a, b in splits:
        claims = claimed(_part(traces, a), _part(traces, b))
        flagged += bool(claims)
        kinds.update({cause.effect for cause in claims})
    which = ", ".join(f"{code} {n}" for code, n in kinds.most_common())
    name = folder.rstrip("/").rsplit("/", 1)[-1]
    return f"| {name} | {per_side} | {len(splits)} | {flagged / len(splits):.1%} | {which} |"


def _splits(runs: int, per_side: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of disjoint sides of ``per_side`` runs, each pair once."""
    return [
        (a, b)
        for a in combinations(range(runs), per_side)
        for b in combinations(sorted(set(range(runs)) - set(a)), per_side)
        if a < b
    ]


def _part(traces: TraceSet, runs: tuple[int, ...]) -> TraceSet:
    return replace(traces, runs=[traces.runs[k] for k in runs])


def claimed(control: TraceSet, test: TraceSet) -> list[Cause]:
    """The causes of a comparison that are significant."""
    found = compare_sets(control, test, force=True).explanation
    return [c for c in found.causes if c.significance.time_change in ("faster", "slower")] if found else []


if __name__ == "__main__":
    main()
