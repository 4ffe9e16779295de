"""Where the level of a series of commits changes (docs/history.md has the error rates).

Of all ways to cut the series, that whose levels fit best proposes changes. Each is then tested between its neighbours,
and the least significant one is removed until all that are left are significant. Two tests have to agree: that of a
comparison on the runs before and after, which gives the interval; and a t test of commits that is corrected for the
search, whose p is the chance that the largest t of all positions is as large in a series without a change, by
simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tracediff import thresholds
from tracediff.arrays import Floats, Int64, zeros
from tracediff.diff.statistics.runs import Estimate, estimate
from tracediff.structs import FrozenStruct


class Change(FrozenStruct):
    """A change of level.

    Attributes:
        first: position of the first commit after it. earliest, latest: positions that it may have, with 95 %.
        start, end: the commits from start to first have the level before, those from first to end (exclusive) that
            after.
        estimate: the change of the logarithm of the step time, by the product's test of these runs.
        p: of the change, corrected for the search.
    """

    first: int
    earliest: int
    latest: int
    start: int
    end: int
    estimate: Estimate
    p: float


def find_changes(runs: Sequence[Sequence[float]]) -> tuple[list[Change], Noise | None]:
    """(the changes of level in order, the noise around the levels; None if there is one run in all).

    Args:
        runs: of each commit in order, the logarithm of the value of each of its runs.
    """
    if sum(map(len, runs)) < 2:
        return [], None
    series = CommitMeans.of(runs)
    firsts = _proposed(series) if len(runs) > 1 else []
    while True:
        noise = _noise(series, firsts)
        bounds = [0, *firsts, len(runs)]
        tested = [_tested(runs, series, bounds[k : k + 3], noise, len(firsts)) for k in range(len(firsts))]
        worst = max(tested, key=lambda change: (change.p, -abs(change.estimate.effect)), default=None)
        if worst is None or worst.p <= thresholds.SIGNIFICANCE:
            return tested, noise
        firsts.remove(worst.first)


class CommitMeans(FrozenStruct):
    """float64[commits] each: the mean of the runs' logarithms, the number of runs, the sum of squares within."""

    means: Floats
    counts: Floats
    within: Floats

    @staticmethod
    def of(runs: Sequence[Sequence[float]]) -> CommitMeans:
        """The series of these runs."""
        arrays = [np.asarray(values, np.float64) for values in runs]
        return CommitMeans(
            np.array([values.mean() for values in arrays]),
            np.array([float(len(values)) for values in arrays]),
            np.array([((values - values.mean()) ** 2).sum() for values in arrays]),
        )


class Noise(FrozenStruct):
    """What varies where no level changes.

    Attributes:
        sd: standard deviation of a run. freedom: the degrees of freedom that it was estimated with.
        autocorrelation: of neighbouring commits.
    """

    sd: float
    freedom: int
    autocorrelation: float


def _proposed(series: CommitMeans) -> list[int]:
    """Positions at which the level may change; the best one in any case."""
    values, weights = series.means / _local_spread(series), series.counts
    return best_levels(values, weights, thresholds.PROPOSAL_PENALTY * math.log(weights.sum())) or best_two(
        values, weights
    )


def best_levels(values: Floats, weights: Floats, penalty: float) -> list[int]:
    """Where the levels after the first begin that have the least Σ weight · (value − level)², with ``penalty`` for each
    change; exact, by optimal partitioning (Jackson et al. 2005), in quadratic time.

    Args:
        values, weights: float64[n]; each level has a weight of at least `thresholds.LEVEL_RUNS`.
    """
    squares = _squares_of(values, weights)
    cost, before = np.zeros(len(values) + 1), zeros(len(values) + 1)
    for end in range(1, len(cost)):
        costs = cost[:end] + squares(np.arange(end), end) + penalty
        before[end] = costs.argmin()
        cost[end] = costs[before[end]]
    firsts = [int(before[-1])]
    while firsts[-1]:
        firsts.append(int(before[firsts[-1]]))
    return firsts[-2::-1]


def best_two(values: Floats, weights: Floats) -> list[int]:
    """Where the second of two levels begins that fit best; nothing if there is too little weight for two."""
    squares, inner = _squares_of(values, weights), np.arange(1, len(values))
    costs = squares(np.zeros_like(inner), inner) + squares(inner, len(values))
    return [int(inner[costs.argmin()])] if np.isfinite(costs).any() else []


def _squares_of(values: Floats, weights: Floats) -> Callable[[Int64, Int64 | int], Floats]:
    """(starts, ends) → of each level its Σ weight · (value − level)², infinite where it has too little weight."""
    values = values - values.mean()  # the sums stay small
    weight, first, second = (np.append(0, np.cumsum(weights * values**power)) for power in (0, 1, 2))

    def squares(start: Int64, end: Int64 | int) -> Floats:
        whole = weight[end] - weight[start]
        rest = second[end] - second[start] - (first[end] - first[start]) ** 2 / whole
        return np.where(whole >= thresholds.LEVEL_RUNS, rest, np.inf)

    return squares


def _local_spread(series: CommitMeans) -> float:
    """The standard deviation of a run, from the differences of neighbouring commits: a few changes do not move it."""
    errors = np.sqrt(1 / series.counts[:-1] + 1 / series.counts[1:])
    differences = np.abs(np.diff(series.means)) / errors
    return max(1.4826 * float(np.median(differences)), thresholds.LEAST_SPREAD)


def _noise(series: CommitMeans, firsts: Sequence[int]) -> Noise:
    """The noise around the levels between ``firsts``. It is that of commits, not of runs, where they are enough: what
    differs between commits, such as the state of the machine, is not a change of level.
    """
    means, counts, n = series.means, series.counts, len(series.means)
    rest = np.empty(n)
    bounds = [0, *firsts, n]
    for start, end in pairwise(bounds):
        rest[start:end] = means[start:end] - np.average(means[start:end], weights=counts[start:end])
    rest *= np.sqrt(counts)
    square, freedom = float((rest**2).sum()), n - len(firsts) - 1
    raw = float((rest[:-1] * rest[1:]).sum()) / square if square else 0.0
    unbiased = raw + (1 + 3 * max(raw, 0.0)) * (len(firsts) + 1) / n  # Kendall 1954, for each level that was estimated
    if freedom < thresholds.COMMIT_FREEDOM:
        square, freedom = square + float(series.within.sum()), int(counts.sum()) - len(firsts) - 1
    correlation = round(min(max(unbiased, thresholds.LEAST_AUTOCORRELATION), thresholds.MOST_AUTOCORRELATION) * 20) / 20
    return Noise(max(math.sqrt(square / max(freedom, 1)), thresholds.LEAST_SPREAD), max(freedom, 1), correlation)


def _tested(
    runs: Sequence[Sequence[float]], series: CommitMeans, bounds: Sequence[int], noise: Noise, changes: int
) -> Change:
    """The change at the middle one of three ``bounds``; ``changes`` are tested at the same time."""
    start, first, end = bounds
    before, after = ([x for values in runs[a:b] for x in values] for a, b in ((start, first), (first, end)))
    difference = estimate(before, after)
    counts = series.counts[start:end]
    explained = _explained(series.means[None, start:end], counts)[0]
    largest = _largest_by_chance(tuple(counts.astype(int).tolist()), noise.freedom, noise.autocorrelation)
    t = math.sqrt(explained[first - start - 1]) / noise.sd
    times = 1 if changes == 1 else 2 * changes  # a hump is two of them
    p = times * (1 + int((largest >= t).sum())) / (1 + len(largest))
    # −2 log of the likelihood ratio up to which a position may be that of the change, with 95 % (Eo and Morley 2015)
    possible = np.flatnonzero(explained >= explained.max() - 7.35 * noise.sd**2) + start + 1
    p = max(p, difference.p if difference.p is not None else 1.0)
    return Change(first, int(possible[0]), int(possible[-1]), start, end, difference, min(p, 1.0))


def _explained(means: Floats, counts: Floats) -> Floats:
    """float64[series, commits − 1] sum of squares that a change after each commit explains; 0 where one side has too
    few runs.

    Args:
        means: float64[series, commits]. counts: float64[commits] runs.
    """
    before = np.cumsum(counts)[:-1]
    after = counts.sum() - before
    sums = np.cumsum(means * counts, axis=1)
    difference = (sums[:, -1:] - sums[:, :-1]) / after - sums[:, :-1] / before
    squares: Floats = difference**2 / (1 / before + 1 / after)
    return np.where((before >= thresholds.LEVEL_RUNS) & (after >= thresholds.LEVEL_RUNS), squares, 0.0)


@lru_cache(maxsize=256)
def _largest_by_chance(counts: tuple[int, ...], freedom: int, autocorrelation: float) -> Floats:
    """float64[SIMULATED] the largest |t| of each simulated series without a change; the same on every call."""
    random, runs = np.random.default_rng(0), np.array(counts, np.float64)
    noise = random.standard_normal((thresholds.SIMULATED_SERIES, len(counts)))
    noise[:, 1:] *= math.sqrt(1 - autocorrelation**2)
    for k in range(1, len(counts)):
        noise[:, k] += autocorrelation * noise[:, k - 1]
    means = noise / np.sqrt(runs)
    explained = _explained(means, runs).max(axis=1)
    own = max(len(counts) - 2, 0)  # the degrees of freedom of these commits, around the levels beside the best change
    rest = (means**2 * runs).sum(axis=1) - (means * runs).sum(axis=1) ** 2 / runs.sum() - explained
    others = random.chisquare(max(freedom - own, 1), thresholds.SIMULATED_SERIES) * (freedom > own)
    largest: Floats = np.sqrt(explained * max(freedom, own) / (rest + others))
    return largest
