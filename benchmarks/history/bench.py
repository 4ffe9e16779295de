"""False alarms and power of the change points of a history, by simulation: ``python benchmarks/history/bench.py [N]``;
false alarms in runs of one program, in the order of recording: ``python benchmarks/history/bench.py SET``.

N histories (default 300) of each shape are simulated, with runs that vary by 1.8 %, as those of a shared machine do. A
tenth of runs is disturbed in one kind of noise, and neighbouring commits are correlated in two.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

import tracediff
from tracediff.history.change_points import find_changes
from tracediff.history.store import medians_us

SD, SHIFT, LEAST_RUNS = 0.018, math.log(1.05), 5
LENGTHS, RUNS = (20, 50, 100), (1, 3, 5)
NOISES = ("independent", "correlated 0.1", "correlated 0.2", "commits vary", "disturbed")
PLACES = ("middle", "last")
SHUFFLED = 200
NEAR = 2
"""Commits."""


def noise(random: np.random.Generator, kind: str, commits: int, runs: int) -> NDArray[np.float64]:
    """float64[commits, runs] logarithms of step times without a change."""
    values = SD * random.standard_normal((commits, runs))
    if kind.startswith("correlated"):  # of the means of commits
        correlation = float(kind.split()[1])
        means = SD / math.sqrt(runs) * random.standard_normal(commits)
        for k in range(1, commits):
            means[k] = correlation * means[k - 1] + math.sqrt(1 - correlation**2) * means[k]
        values += (means - values.mean(axis=1))[:, None]
    if kind == "commits vary":
        values += SD * random.standard_normal((commits, 1))
    if kind == "disturbed":
        values += (random.random(values.shape) < 0.1) * np.log1p(random.uniform(0.15, 0.6, values.shape))
    return values


def false_alarms(kind: str, commits: int, runs: int, histories: int) -> float:
    """Part of histories without a change in which one is found."""
    random = np.random.default_rng(commits * 10 + runs)
    return float(np.mean([bool(find_changes(list(noise(random, kind, commits, runs)))[0]) for _ in range(histories)]))


def power(kind: str, commits: int, runs: int, histories: int, place: str) -> float:
    """Part of histories with a shift of 5 % in the middle, or before the last 5 runs, in which it is found where it is:
    at most two commits away.
    """
    random = np.random.default_rng(commits * 10 + runs)
    first = commits // 2 if place == "middle" else commits - math.ceil(LEAST_RUNS / runs)
    found = 0
    for _ in range(histories):
        values = noise(random, kind, commits, runs)
        values[first:] += SHIFT
        found += any(abs(change.first - first) <= NEAR for change in find_changes(list(values))[0])
    return found / histories


def main(histories: int) -> None:
    """Print a row for each shape of a history."""
    heads = [*(f"false: {kind}" for kind in NOISES), *(f"found: {place}" for place in PLACES)]
    print(f"| commits | runs | {' | '.join(heads)} |\n|{'--:|' * (2 + len(heads))}")
    for commits in LENGTHS:
        for runs in RUNS:
            shares = [false_alarms(kind, commits, runs, histories) for kind in NOISES]
            shares += [power("independent", commits, runs, histories, place) for place in PLACES]
            print(f"| {commits} | {runs} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |", flush=True)


def recorded(path: str) -> None:
    """Print how many of the histories, of which the runs of the set at ``path`` are cut, have a change point."""
    logs = [math.log(us) for us in medians_us(tracediff.load(path))]
    deviation = float(np.std(logs, ddof=1))
    neighbours = float(np.corrcoef(logs[:-1], logs[1:])[0, 1])
    print(f"{len(logs)} runs, standard deviation {100 * deviation:.1f} %, neighbours correlated by {neighbours:.2f}")
    for runs in (1, 2, 3):
        commits = 20 // runs
        starts = range(0, len(logs) - commits * runs + 1, 2)
        histories = [np.reshape(logs[k : k + commits * runs], (commits, runs)) for k in starts]
        alarms = sum(bool(find_changes(list(values))[0]) for values in histories)
        print(f"{commits} commits of {runs} runs: {alarms} of {len(histories)} overlapping histories")
    random = np.random.default_rng(0)
    for runs in (1, 2, 3, 5):
        whole = len(logs) // runs * runs
        shuffled = (random.permutation(logs)[:whole].reshape(-1, runs) for _ in range(SHUFFLED))
        alarms = sum(bool(find_changes(list(values))[0]) for values in shuffled)
        print(f"{len(logs) // runs} commits of {runs} runs, shuffled: {100 * alarms / SHUFFLED:.1f} %")


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else "300"
    if argument.isdigit():
        main(int(argument))
    else:
        recorded(argument)
