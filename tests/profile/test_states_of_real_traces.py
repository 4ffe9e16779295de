"""The step account of every real trace agrees with the slow reference to the nanosecond."""

import pytest
import traces
from one_file import real_profile
from profile_reference import account


@traces.needs_traces
@pytest.mark.parametrize("name", traces.NAMES)
def test_states_and_periods_equal_the_slow_reference(name):
    profile = real_profile(name)
    numbers, periods, states = account(traces.FOLDER / name)
    assert profile.step_numbers.tolist() == numbers
    assert profile.periods.tolist() == periods
    fast = [dict(zip(profile.state_names, row, strict=True)) for row in profile.state_ns.tolist()]
    assert [{k: v for k, v in step.items() if v} for step in fast] == [
        {k: v for k, v in step.items() if v} for step in states
    ]
    assert [sum(step.values()) for step in fast] == periods
