"""Change points on simulated histories; benchmarks/history/bench.py measures more of them."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from tracediff import thresholds
from tracediff.history.change_points import best_levels, best_two, find_changes

SD = 0.018


def simulated(seed, commits, runs, correlation=0.0):
    """float64[commits, runs] logarithms that vary by SD, of which the means of neighbours are correlated."""
    random = np.random.default_rng(seed)
    values = SD * random.standard_normal((commits, runs))
    means = SD / math.sqrt(runs) * random.standard_normal(commits)
    for k in range(1, commits):
        means[k] = correlation * means[k - 1] + math.sqrt(1 - correlation**2) * means[k]
    return values - values.mean(axis=1, keepdims=True) + means[:, None]


def places(values):
    return [change.first for change in find_changes(list(values))[0]]


@pytest.mark.slow
@pytest.mark.parametrize(("commits", "runs"), [(20, 1), (30, 3), (20, 5)])
@pytest.mark.parametrize("correlation", [0.0, 0.1])
def test_false_alarms_are_rare(commits, runs, correlation):
    alarms = sum(bool(places(simulated(seed, commits, runs, correlation))) for seed in range(200))
    assert alarms <= 16  # of 200; 10 are 5 %, and no more than 16 come with 97 %


@pytest.mark.slow
@pytest.mark.parametrize(("commits", "runs"), [(20, 1), (50, 1), (20, 3), (20, 5)])
@pytest.mark.parametrize("place", ["middle", "last"])
def test_a_shift_of_five_runs_is_found(commits, runs, place):
    first, found = commits // 2 if place == "middle" else commits - math.ceil(5 / runs), 0
    for seed in range(100):
        values = simulated(seed, commits, runs)
        values[first:] += math.log(1.05)
        found += any(abs(k - first) <= 2 for k in places(values))
    assert found >= 85  # of 100; where 90 % are found, 85 or more with 97 %


def test_the_interval_holds_the_shift_and_the_noise_is_that_of_runs():
    values = simulated(1, 30, 5)
    values[12:] += math.log(1.2)
    (change,), noise = find_changes(list(values))
    assert (change.first, change.earliest, change.latest, change.start, change.end) == (12, 12, 12, 0, 30)
    assert change.estimate.interval[0] < math.log(1.2) < change.estimate.interval[1]
    assert noise.sd == pytest.approx(SD, rel=0.3)


def test_a_regression_and_its_fix_are_two_changes():
    values = simulated(2, 40, 3)
    values[15:25] += math.log(1.1)
    assert places(values) == [15, 25]


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_the_unit_does_not_matter(scale):
    values = simulated(3, 20, 3)
    values[8:] += math.log(1.1)
    assert places(values + math.log(scale)) == places(values) == [8]


def test_reversed_histories_have_the_same_changes_reversed():
    values = simulated(4, 24, 3)
    values[10:] += math.log(1.15)
    assert places(values[::-1]) == [24 - k for k in places(values)]


def test_a_disturbed_run_is_no_change():
    values = simulated(5, 20, 1)
    values[19] += math.log(1.5)
    values[8] += math.log(1.5)
    assert places(values) == []


@pytest.mark.parametrize("runs", [[], [[0.0]], [[0.0], [1.0]], [[0.0, 0.0], [0.0]], [[0.0] * 5] * 20])
def test_few_or_equal_runs_have_no_change(runs):
    assert find_changes(runs)[0] == []


def test_equal_runs_vary_by_the_least_spread():
    assert find_changes([[0.0] * 5] * 3)[1].sd == thresholds.LEAST_SPREAD


def test_two_commits_with_many_runs_are_enough():
    values = simulated(6, 2, 8)
    values[1] += math.log(1.2)
    assert places(values) == [1]


def test_commits_may_have_any_number_of_runs():
    random = np.random.default_rng(7)
    runs = [
        list(SD * random.standard_normal(n) + (math.log(1.1) if k >= 6 else 0)) for k, n in enumerate([1, 5, 2] * 4)
    ]
    assert [change.first for change in find_changes(runs)[0]] == [6]


def cost(values, weights, firsts, penalty):
    """Of the levels that begin at 0 and ``firsts``, plainly."""
    whole = penalty * len(firsts)
    for start, end in pairwise([0, *firsts, len(values)]):
        if weights[start:end].sum() < thresholds.LEVEL_RUNS:
            return math.inf
        level = np.average(values[start:end], weights=weights[start:end])
        whole += (weights[start:end] * (values[start:end] - level) ** 2).sum()
    return whole


@pytest.mark.parametrize("seed", range(20))
def test_the_levels_are_the_best_of_all_ways_to_cut_the_series(seed):
    random = np.random.default_rng(seed)
    values = random.standard_normal(9) + 4 * (np.arange(9) >= random.integers(9))
    weights = random.integers(1, 6, 9).astype(float)
    ways = [way for cuts in range(9) for way in combinations(range(1, 9), cuts)]
    least = min(cost(values, weights, way, 2.0) for way in ways)
    assert cost(values, weights, best_levels(values, weights, 2.0), 2.0) == pytest.approx(least)
    one = min(cost(values, weights, (k,), 0.0) for k in range(1, 9))
    found = best_two(values, weights)
    assert cost(values, weights, found, 0.0) == pytest.approx(one) if found else one == math.inf
