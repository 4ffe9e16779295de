"""Applies the statistics to splits of real runs: false alarms of equal runs, and power to find a planted operator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracediff.diff.statistics.many import Tested, compare_many
from tracediff.diff.statistics.runs import estimate

SPLITS, SEED = 2000, 20
Floats = NDArray[np.float64]


def false_alarms(side: dict[str, Any], runs: int) -> tuple[float, float]:
    """(share of wrong verdicts, share with any operator flagged) of random splits of equal runs."""
    logs, ops = np.log(side["period_us"]), np.array(list(side["ops"].values()))
    wrong = flagged = 0
    for a, b in random_splits(len(logs), runs):
        wrong += excludes_zero(logs[a], logs[b])
        flagged += flags_any(ops[:, a], ops[:, b])
    return wrong / SPLITS, flagged / SPLITS


def in_order(side: dict[str, Any], runs: int) -> tuple[int, int, int]:
    """(splits, wrong verdicts, splits with any operator flagged) of consecutive runs, to show drifts."""
    by_order = np.argsort(side["order"])
    logs, ops = np.log(side["period_us"]), np.array(list(side["ops"].values()))
    splits = [(by_order[k : k + runs], by_order[k + runs : k + 2 * runs]) for k in range(len(logs) - 2 * runs + 1)]
    wrong = sum(excludes_zero(logs[a], logs[b]) for a, b in splits)
    return len(splits), wrong, sum(flags_any(ops[:, a], ops[:, b]) for a, b in splits)


def power(base: dict[str, Any], planted: dict[str, Any], name: str, runs: int) -> dict[str, float]:
    """How often the step with the planted operator is found slower, and how often the operator is ranked first.

    ``share`` is the operator's time relative to the base step, ``detectable`` the minimum detectable effect. ``first``
    ranks by change in µs, ``first_by_q`` by q (NaN if base has no such operator: it is not tested); both use
    only runs that are not contended.
    """
    logs = np.log(base["period_us"]), np.log(planted["period_us"])
    names = sorted(set(base["ops"]) | set(planted["ops"]))
    ops = [np.array([side["ops"].get(op, [0.0] * len(side["period_us"])) for op in names]) for side in (base, planted)]
    clean = [np.flatnonzero(~np.array(side["contended"])) for side in (base, planted)]
    random = np.random.default_rng(SEED)
    found = first = first_by_q = 0
    detectable = []
    for _ in range(SPLITS):
        a, b = (random.permutation(len(side_logs))[:runs] for side_logs in logs)
        estimated = estimate(logs[0][a].tolist(), logs[1][b].tolist())
        found += estimated.interval is not None and estimated.interval[0] > 0
        detectable.append(math.expm1(estimated.detectable or 0.0))
        if min(map(len, clean)) >= runs:
            x, y = (random.permutation(side_runs)[:runs] for side_runs in clean)
            first += names[int(np.argmax(np.abs(ops[1][:, y].mean(axis=1) - ops[0][:, x].mean(axis=1))))] == name
            first_by_q += names[_smallest(compare_many(ops[0][:, x], ops[1][:, y]))] == name
    change = math.expm1(float(np.median(logs[1]) - np.median(logs[0])))
    added = float(np.median(ops[1][names.index(name)]) - np.median(ops[0][names.index(name)]))
    return {
        "share": added / float(np.median(base["period_us"])),
        "change": change,
        "found": found / SPLITS,
        "detectable": float(np.median(detectable)),
        "first": first / SPLITS if min(map(len, clean)) >= runs else math.nan,
        "first_by_q": first_by_q / SPLITS if name in base["ops"] and min(map(len, clean)) >= runs else math.nan,
    }


def _smallest(tested: Tested) -> int:
    q = [math.inf if row.q_value is None else row.q_value for row in tested.rows]
    return int(np.argmin(q)) if math.isfinite(min(q)) else -1


def excludes_zero(control: Floats, test: Floats) -> bool:
    """Whether the confidence interval of the change excludes 0: the verdict is faster or slower (without the band)."""
    estimated = estimate(control.tolist(), test.tolist())
    return estimated.interval is not None and (estimated.interval[0] > 0 or estimated.interval[1] < 0)


def flags_any(control: Floats, test: Floats) -> bool:
    """Whether any operator is flagged as faster or slower."""
    return any(row.time_change in ("faster", "slower") for row in compare_many(control, test).rows)


def random_splits(size: int, runs: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Disjoint random groups of ``runs`` of ``size`` runs, SPLITS pairs."""
    random = np.random.default_rng(SEED)
    for _ in range(SPLITS):
        order = random.permutation(size)
        yield order[:runs], order[runs : 2 * runs]
