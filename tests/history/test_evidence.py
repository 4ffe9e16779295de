"""What counts and step times of sets that were recorded beside each other decide."""

import pytest
from build_trace import document, op, step, write
from history_repository import write_set

from tracediff.engine import load_sets
from tracediff.history.evidence import BAD, GOOD, INCONCLUSIVE, Criterion, by_counts, by_times, difference

LOADED = {"load": 2.0, "contended": True}


@pytest.fixture
def record(tmp_path):
    """Records a set whose step takes 1,000 µs and those of a gemm."""
    seeds = iter(range(1000))

    def recorded(gemm_us, **options):
        seed = next(seeds)
        (traces,) = load_sets([write_set(tmp_path / str(seed), gemm_us, runs=2, seed=seed, **options)])
        return traces

    return recorded


@pytest.mark.parametrize(
    ("gemms_us", "max_regression", "result", "why"),
    [
        ((0, 0, 100), None, GOOD, "; limit +4."),
        ((100, 0, 100), None, BAD, "; limit +4."),
        ((50, 0, 100), None, INCONCLUSIVE, "agrees with neither good nor bad for certain"),
        ((300, 0, 100), None, BAD, "; limit +4."),
        ((80, 0, 200), 0.03, BAD, "limit +3.0 %"),
        ((80, 0, 200), 0.12, GOOD, "limit +12 %"),
        ((80, 0, 80), 0.12, INCONCLUSIVE, "beside it, bad takes +"),
        ((100, 100, 0), None, INCONCLUSIVE, "beside it, bad takes −"),
    ],
)
def test_step_times_decide_by_both_sides(record, gemms_us, max_regression, result, why):
    rounds = [tuple(map(record, gemms_us)) for _ in range(3)]
    decision = by_times(rounds, Criterion(max_regression))
    assert decision.result == result, decision
    assert why in decision.why


@pytest.mark.slow
def test_disturbed_rounds_do_not_count(record):
    loaded = [(record(0), record(0, **LOADED), record(100))] * 2
    decision = by_times([*loaded, (record(100), record(0), record(100))], Criterion())
    assert decision.result == INCONCLUSIVE
    assert decision.why == "the machine is contended: other processes disturbed 2 of 3 rounds"
    rounds = [*loaded, *((record(100), record(0), record(100)) for _ in range(3))]
    assert by_times(rounds, Criterion()).result == BAD
    found = difference([(good, bad) for _, good, bad in rounds], Criterion())
    assert found.slower
    assert found.why.startswith("+10 % ")


def test_counts_decide_only_where_they_are_exactly_those_of_one_side(record):
    good, bad = record(0), record(0, added=5)
    assert by_counts(good, record(0, load=3), bad).result == GOOD
    assert by_counts(good, record(0, added=5, load=0.3), bad).result == BAD
    assert by_counts(good, record(0, added=4), bad) is None
    assert by_counts(good, record(0), record(0)) is None


def test_a_number_that_varies_from_step_to_step_is_no_count(tmp_path):
    def set_of(name, *numbers):
        events = []
        for k, number in enumerate(numbers, 1):
            events += [step(k, 1000 * k, 1000), op("aten::mm", 1000 * k + 1, 100)]
            events += [op("aten::poll", 1000 * k + 200 + 10 * i, 5) for i in range(number)]
        (traces,) = load_sets([write(tmp_path / name / "rank0.json", document(events)).parent])
        return traces

    varying, steady, more = set_of("varying", 1, 3), set_of("steady", 2, 2), set_of("more", 4, 4)
    assert by_counts(steady, varying, more) is None
    assert difference([(varying, more)] * 2, Criterion()).other_counts == []
    (poll,) = difference([(steady, more)] * 2, Criterion()).other_counts
    assert poll.name == "aten::poll"


@pytest.mark.parametrize(("gemm_us", "decide"), [(0, True), (500, False)])
def test_counts_decide_only_if_the_work_that_differs_takes_the_time(record, gemm_us, decide):
    found = difference([(record(0), record(gemm_us, added=50)) for _ in range(2)], Criterion())
    assert found.slower
    assert found.counts_decide is decide
    assert found.other_counts
