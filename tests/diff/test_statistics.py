"""Error rates and power of the procedures by simulation with fixed seeds, and what they say of odd samples."""

import json
import math

import numpy as np
import pytest
from build_trace import document, op, step, write
from hypothesis import given, strategies as st
from properties import examples
from scipy.special import stdtr, stdtrit

from tracediff import thresholds
from tracediff.diff.statistics.many import Significance, _adjusted, compare_many
from tracediff.diff.statistics.runs import _critical, estimate, quantile_t, two_sided_p, within_runs
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.report.to_json import to_json

SD = 0.018
BOUND = 0.06


def logs(random, count, disturbed=0.0):
    """Logarithms of one number a run: normal; a share of ``disturbed`` runs takes 15–60 % longer."""
    slowed = random.random(count) < disturbed
    return random.normal(0, SD, count) + slowed * np.log(random.uniform(1.15, 1.6, count))


def found(estimated):
    return estimated.interval is not None and (estimated.interval[0] > 0 or estimated.interval[1] < 0)


def share_found(seed, n, m, times, effect=0.0, disturbed=0.0):
    random = np.random.default_rng(seed)
    return np.mean(
        [
            found(estimate(logs(random, n, disturbed).tolist(), (effect + logs(random, m, disturbed)).tolist()))
            for _ in range(times)
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_equal_sides_are_told_apart_in_at_most_six_per_cent(n):
    assert share_found(100 + n, n, n, 2000) <= BOUND


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8])
def test_so_they_are_where_whole_runs_were_disturbed(n):
    assert share_found(200 + n, n, n, 2000, disturbed=0.1) <= BOUND


@pytest.mark.parametrize("n", [3, 5, 8])
def test_one_run_against_many_of_its_kind_is_told_apart_in_at_most_six_per_cent(n):
    assert share_found(300 + n, 1, n, 2000) <= BOUND


@pytest.mark.slow
def test_five_per_cent_is_found_by_five_runs_a_side():
    assert share_found(400, 5, 5, 3000, effect=math.log(1.05)) >= 0.9


@pytest.mark.slow
def test_ranks_find_among_disturbed_runs_what_a_t_would_miss():
    assert share_found(500, 8, 8, 1000, effect=math.log(1.05), disturbed=0.1) >= 0.45  # Welch's t finds 27 % of such


@pytest.mark.slow
def test_what_is_called_detectable_is_found_in_four_of_five():
    random = np.random.default_rng(600)
    detectable = np.median(
        [estimate(logs(random, 8).tolist(), logs(random, 8).tolist()).detectable for _ in range(300)]
    )
    assert 0.72 <= share_found(601, 8, 8, 1000, effect=detectable) <= 0.9


values = st.floats(-2, 2).map(lambda x: round(x, 4))
samples = st.lists(values, min_size=1, max_size=9)


@examples(200)
@given(samples, samples, st.booleans(), st.sampled_from([None, 0.02]))
def test_swapping_the_sides_negates_the_effect(control, test, paired, assumed):
    forward = estimate(control, test, paired=paired, assumed_cv=assumed)
    backward = estimate(test, control, paired=paired, assumed_cv=assumed)
    assert (forward.method, forward.p is None) == (backward.method, backward.p is None)
    assert forward.effect == pytest.approx(-backward.effect, abs=1e-9)
    if forward.interval is not None:
        assert (*forward.interval, forward.p, forward.detectable) == pytest.approx(
            (-backward.interval[1], -backward.interval[0], backward.p, backward.detectable), abs=1e-9
        )


@examples(200)
@given(samples, samples, st.booleans())
def test_every_number_is_finite_and_the_interval_holds_the_effect(control, test, paired):
    estimated = estimate(control, test, paired=paired)
    assert math.isfinite(estimated.effect)
    if estimated.interval is not None:
        assert estimated.interval[0] <= estimated.effect <= estimated.interval[1]
        assert 0 <= estimated.p <= 1
        assert all(map(math.isfinite, (*estimated.interval, estimated.p, estimated.detectable)))
        assert estimated.interval[1] - estimated.interval[0] > 0


@examples(200)
@given(samples, samples, st.booleans())
def test_interval_and_p_agree(control, test, paired):
    """Where the interval excludes 0, p is at most .05, except for the Mann–Whitney p of ties, which is cautious."""
    estimated = estimate(control, test, paired=paired)
    if estimated.interval is not None and estimated.method != "ranks":
        assert found(estimated) == (estimated.p <= 0.05) or abs(estimated.p - 0.05) < 1e-9


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (5, 5), (8, 8), (1, 3), (1, 8), (2, 8)])
def test_all_equal_values_are_no_difference(n, m):
    estimated = estimate([7.0] * n, [7.0] * m)
    assert (estimated.effect, estimated.p) == (0, 1)
    assert estimated.interval[0] == -estimated.interval[1] < 0


@pytest.mark.parametrize(
    ("n", "m", "change"), [(2, 2, 0.01), (3, 3, 0.01), (1, 3, 0.015), (1, 8, 0.01), (5, 5, 0.007), (8, 8, 0.005)]
)
def test_constants_are_told_apart_only_by_more_than_the_least_spread(n, m, change):
    """No variance at all is no certainty: the sides are taken to spread by half a per cent."""
    assert not found(estimate([7.0] * n, [7 + change] * m))
    estimated = estimate([7.0] * n, [7.3] * m)
    assert found(estimated)
    assert estimated.interval[1] - estimated.interval[0] > thresholds.LEAST_SPREAD


def test_a_run_of_outliers_is_no_change():
    for n in (3, 5, 8):
        control = [0.01 * k for k in range(n)]
        estimated = estimate(control, [*(x + 0.002 for x in control[1:]), 3.0])
        assert not found(estimated)


def test_thousands_of_runs_are_judged():
    rng = np.random.default_rng(5)
    control, test = (np.log(rng.normal(mean, 0.02, 3000)).tolist() for mean in (1.0, 1.01))
    found = estimate(control, test)
    assert found.interval[0] < 0.01 < found.interval[1]
    assert found.p < 1e-6


def test_one_run_or_two_against_one_are_never_judged():
    for control, test in (([1.0], [2.0]), ([1.0], [2.0, 2.1]), ([1.0, 1.1], [2.0])):
        estimated = estimate(control, test)
        assert (estimated.method, estimated.interval, estimated.p, estimated.detectable) == ("none", None, None, None)


def test_within_runs_needs_five_steps():
    assert within_runs([1.0] * 4, [1.0] * 9) is None
    low, high = within_runs([1.0] * 5, [1.0] * 9)
    assert low < 0 < high


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 8), (8, 8), (6, 11)])
def test_the_exact_p_is_scipys(n, m):
    from scipy.stats import mannwhitneyu  # half a second of every process that collects tests

    random = np.random.default_rng(700)
    for shift in (0, 0.5, 1, 2):
        control, test = random.normal(0, 1, n), random.normal(shift, 1, m)
        estimated = estimate(control.tolist(), test.tolist())
        if estimated.method == "ranks":
            assert estimated.p == pytest.approx(mannwhitneyu(control, test, method="exact").pvalue, abs=1e-12)


DEGREES = st.integers(1, 5000) | st.floats(1, 5000)
"""Welch's are no whole numbers, and at least one."""


@examples(500)
@given(DEGREES, st.sampled_from([1 - thresholds.SIGNIFICANCE / 2, thresholds.POWER]))
def test_quantiles_of_t_are_scipys(df, probability):
    assert quantile_t(probability, df) == pytest.approx(stdtrit(df, probability), rel=1e-10)


@examples(500)
@given(DEGREES, st.floats(1e-6, 1e4))  # nearer to 0 scipy's is 0.5, the exact 0.5 − t / π for one degree
def test_p_values_of_t_are_scipys(df, t):
    assert two_sided_p(t, df) == pytest.approx(2 * stdtr(df, -t), rel=1e-10, abs=1e-290)
    assert two_sided_p(-t, df) == two_sided_p(t, df)


def test_every_number_of_runs_has_the_quantiles_of_scipy():
    df = np.arange(1, 400)
    for probability in (1 - thresholds.SIGNIFICANCE / 2, thresholds.POWER):
        ours = [quantile_t(probability, float(d)) for d in df]
        np.testing.assert_allclose(ours, stdtrit(df, probability), rtol=1e-10)


def test_an_assumed_spread_has_the_normal_distribution():
    assert quantile_t(1 - thresholds.SIGNIFICANCE / 2, math.inf) == pytest.approx(1.959963984540054, rel=1e-14)
    assert two_sided_p(1.959963984540054, math.inf) == pytest.approx(0.05, rel=1e-13)
    assert two_sided_p(0.0, math.inf) == two_sided_p(0.0, 3) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_adjusted_p_values_are_scipys(p):
    from scipy.stats import false_discovery_control

    assert _adjusted(np.array(p)).tolist() == false_discovery_control(p).tolist()


@pytest.mark.parametrize(("n", "m", "k"), [(5, 5, 3), (5, 8, 7), (8, 8, 14)])
def test_which_pairwise_difference_bounds_the_interval(n, m, k):
    assert _critical(n, m) == k


# Hundreds at once


def operators(random, k, runs, run_sd=0.02, op_sd=0.06):
    """µs of k operators in each run: what the run has in common, and each one's own."""
    common = random.normal(0, run_sd, runs)
    return np.exp(np.linspace(3, 8, k)[:, None] + common + random.normal(0, op_sd, (k, runs)))


def words(tested):
    return tuple(row.time_change for row in tested.rows)


def flagged(tested):
    return [k for k, word in enumerate(words(tested)) if word in ("faster", "slower")]


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, 5])
def test_of_equal_sides_any_of_300_operators_is_flagged_in_at_most_six_per_cent(runs):
    random = np.random.default_rng(800 + runs)
    assert (
        np.mean(
            [
                bool(flagged(compare_many(operators(random, 300, runs), operators(random, 300, runs))))
                for _ in range(500)
            ]
        )
        <= BOUND
    )


def test_a_changed_operator_is_found_among_300():
    random = np.random.default_rng(900)
    hits = 0
    for _ in range(200):
        test = operators(random, 300, 5)
        test[150] *= 1.3
        hits += 150 in flagged(compare_many(operators(random, 300, 5), test))
    assert hits / 200 >= 0.5


def test_swapping_the_sides_of_many_negates_them():
    random = np.random.default_rng(1000)
    control, test = operators(random, 40, 4), operators(random, 40, 6)
    test[3] *= 2
    forward, backward = compare_many(control, test), compare_many(test, control)
    other = {"faster": "slower", "slower": "faster"}
    assert "slower" in words(forward)
    assert words(backward) == tuple(other.get(word, word) for word in words(forward))
    changes = [np.array([(row.relative, *row.interval) for row in tested.rows]) for tested in (forward, backward)]
    assert np.allclose((1 + changes[0]) * (1 + changes[1][:, [0, 2, 1]]), 1)
    assert np.allclose([row.q_value for row in forward.rows], [row.q_value for row in backward.rows])
    assert forward.common == pytest.approx(-backward.common)


def test_a_factor_common_to_all_is_taken_from_the_relative_change():
    random = np.random.default_rng(1100)
    control, test = operators(random, 50, 5), 2 * operators(random, 50, 5)
    tested = compare_many(control, test)
    assert math.exp(tested.common) == pytest.approx(2, rel=0.05)
    relative = [tested.rows[k].relative for k in range(50)]
    assert abs(np.median(relative)) < 0.01


def test_what_is_not_tested():
    control, test = np.full((3, 3), 100.0), np.full((3, 3), 130.0)
    test[0, 1] = 0
    control[1], test[1] = 9.9, 5
    tested = compare_many(control, test)
    assert words(tested) == ("untested", "untested", "slower")
    assert tested.rows[0] == Significance("untested", None, None, None, None)
    assert set(words(compare_many(control[:, :2], test))) == {"untested"}
    assert compare_many(np.zeros((0, 3)), np.zeros((0, 3))).rows == ()


@pytest.mark.parametrize("runs", [3, 5])
def test_constant_operators_differ_by_no_accident(runs):
    tested = compare_many(np.full((6, runs), 100.0), np.full((6, runs), 100.4))
    assert flagged(tested) == []
    assert np.isfinite([(row.p_value, row.q_value) for row in tested.rows]).all()


# A whole comparison


def compare_runs(folder, control, test):
    """Compare sets given as one list of step durations a run."""
    for side, runs in (("control", control), ("test", test)):
        for r, steps in enumerate(runs, 1):
            start, events = 0, []
            for number, length in enumerate(steps):
                events += [step(number, start, length), op("aten::mm", start, length)]
                start += length
            write(folder / side / f"run{r}" / "rank0.pt.trace.json", document(events))
    return compare_sets(*load_sets([str(folder / "control"), str(folder / "test")]))


ODD = {
    "zero-duration steps": ([[0, 0, 0]] * 3, [[0, 0, 0]] * 3),
    "zero against time": ([[0, 0, 0]] * 3, [[90, 90, 90]] * 3),
    "one step, one run": ([[100]], [[100]]),
    "one step a run": ([[100]] * 3, [[100]] * 3),
    "one run against many": ([[100] * 4], [[100] * 4] * 5),
    "all equal": ([[100] * 4] * 5, [[100] * 4] * 5),
    "unequal constants": ([[1000] * 4] * 5, [[1004] * 4] * 5),
    "a run of outliers": ([[100 + r] * 4 for r in range(5)], [*([100 + r] * 4 for r in range(4)), [9000] * 4]),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_traces_have_a_stated_outcome(tmp_path, case):
    comparison = compare_runs(tmp_path, *ODD[case])
    verdict = comparison.verdict
    assert verdict.result in ("inconclusive", "same", "untested", "refused")
    assert verdict.sentence
    assert verdict.p_value is None or verdict.p_value > 0.05
    assert not [o for o in comparison.ops if o.significance.time_change in ("faster", "slower")]
    json.loads(to_json(comparison), parse_constant=pytest.fail)


def test_a_true_change_is_told(tmp_path):
    comparison = compare_runs(tmp_path, [[1000 + 3 * r] * 4 for r in range(5)], [[1200 + 3 * r] * 4 for r in range(5)])
    assert (comparison.verdict.result, comparison.verdict.method) == ("slower", "ranks")
    assert {o.raw_name: o.significance.time_change for o in comparison.ops}["aten::mm"] == "slower"
