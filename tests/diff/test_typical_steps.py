"""Outlier steps, and the step account without them."""

import pytest
from tracediff.diff.typical_steps import outliers, typical_steps

from tracediff.aggregate.averages import UsedStep


def runs(*periods_us, name="run1"):
    steps = [UsedStep(n, 0, 1000 * p, {"op": 400 * p, "python": 600 * p}, {}) for n, p in enumerate(periods_us, 1)]
    return {name: steps}


@pytest.mark.parametrize(
    ("periods", "numbers"),
    [
        ((100, 101, 99, 100, 160), [5]),
        ((100, 101, 99, 100, 40), [5]),
        ((100, 101, 99, 160), [4]),
        ((100, 101, 160), []),  # too few to say
        ((100, 100, 100, 100, 109), []),  # less than a tenth
        ((100, 150, 60, 120, 160), []),  # all of them vary
    ],
)
def test_a_step_is_an_outlier_far_from_its_runs_median(periods, numbers):
    assert [o.step.number for o in outliers(runs(*periods))] == numbers


def test_the_typical_step_leaves_outliers_out():
    typical = typical_steps(runs(100, 100, 100, 100), runs(100, 100, 100, 100, 600))
    assert typical.delta == pytest.approx(0)
    assert typical.within(("op",)) == pytest.approx((40, 40))
    assert [(o.side, o.step.number, o.excess) for o in typical.outliers] == [(1, 5, 500_000)]


def test_a_step_that_is_as_slow_on_both_sides_is_part_of_the_program():
    same = typical_steps(runs(100, 100, 100, 300), runs(100, 100, 100, 310))
    assert same.outliers == ()
    assert same.delta == pytest.approx(2.5)
    slower = typical_steps(runs(100, 100, 100, 300), runs(100, 100, 100, 900))
    assert len(slower.outliers) == 2
