"""Steps far from the others of their run."""

import pytest

from tracediff.aggregate.averages import UsedStep
from tracediff.analysis import outliers


def runs(*periods_us, name="run1"):
    steps = [UsedStep(n, 0, {"op": 400 * p, "python": 600 * p}) for n, p in enumerate(periods_us, 1)]
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
