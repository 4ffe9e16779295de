"""What one side did not record, or does once, is never told as a change of the program (µs)."""

import pytest
from build_trace import BACKWARD, annotation, document, op, python, step, write

import tracediff
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table
from tracediff.present.next_command import next_command
from tracediff.structs import Pair

SQUARE = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
PRODUCTS = [op("aten::mm", 10 + 1000 * i, 900, **SQUARE) for i in range(12)]


def compared(folder, before, after, length=40_000):
    """The comparison of steps of ``length`` with these events; the steps of a side of several follow one another."""
    for name, steps in (("before", before), ("after", after)):
        events, start = [], 0
        for number, own in enumerate(steps if isinstance(steps[0], list) else [steps]):
            took = max([length, *(e["ts"] + e["dur"] + 10 for e in own)])
            events += [step(number + 1, start, took), *({**e, "ts": e["ts"] + start} for e in own)]
            start += took
        write(folder / name / "trace.json", document(events))
    return compare_sets(*load_sets([str(folder / name) for name in ("before", "after")]), force=True)


def facts(comparison):
    return {fact.code: fact.text for fact in comparison.explanation.facts}


def in_functions(us):
    return [python("train.py(3): step", 20_000, us, 1), python("train.py(9): prepare", 20_010, us - 20, 2, 1)]


@pytest.mark.parametrize("turned", [False, True])
def test_python_that_one_side_recorded_compares_as_a_whole(tmp_path, turned):
    scope = annotation("Attention", 24_000, 1_000)
    sides = [*PRODUCTS, scope], [*PRODUCTS, scope, *in_functions(9_000)]
    explanation = compared(tmp_path, *(sides[::-1] if turned else sides)).explanation
    assert [cause.label for cause in explanation.causes] == []


def test_python_that_both_sides_recorded_has_names(tmp_path):
    sides = [[*PRODUCTS, *in_functions(us)] for us in (9_000, 19_000)]
    assert "train.py(9): prepare" in compared(tmp_path, *sides, length=41_000).explanation.causes[0].label


def test_one_interrupted_call_is_no_rate_of_its_operator(tmp_path):
    """The operator is called once in each of the six steps, of which the first is not used."""

    def of_steps(*us):
        return [[*PRODUCTS, op("aten::relu", 14_000, took, **SQUARE)] for took in us]

    comparison = compared(tmp_path, of_steps(*[50] * 6), of_steps(*[50] * 4, 9_000, 50))
    (cause,) = (cause for cause in comparison.explanation.causes if "aten::relu" in cause.label)
    assert (cause.what, cause.reasons[-1].text) == ("", "one of 5 in after takes 9.0 ms, in one of 5 steps")
    assert "one of 5 in after takes 9.0 ms, in one of 5 steps" in answer_of(comparison).why


def test_calls_of_an_operator_are_not_those_of_what_it_calls(tmp_path):
    """Two calls of a norm, each of which makes five others."""

    def norms(took):
        outer = [op("aten::batch_norm", 14_000 + 9_000 * i, took) for i in range(2)]
        return [*outer, *(op("aten::empty", e["ts"] + 10 + 20 * k, 10) for e in outer for k in range(5))]

    from build_trace import call, kernel

    def side(took):
        launch = [call("cudaLaunchKernel", 13_000, 10, 1), kernel("sgemm", 13_020, 30, 1)]
        return [*PRODUCTS, *launch, *norms(took)]

    cause = compared(tmp_path, side(1_000), side(8_000)).explanation.causes[0]
    assert (cause.label, cause.what.partition(",")[0]) == ("aten::batch_norm on the host", "2 calls each")


def test_work_within_the_same_outermost_calls_is_counted(tmp_path):
    outer = [op("aten::linear", 14_000 + 500 * i, 400, **SQUARE) for i in range(10)]
    inner = [op("aten::addmm", e["ts"] + 10, 100, **SQUARE) for e in outer]
    more = [op("aten::addmm", e["ts"] + 150, 100, **SQUARE) for e in outer]
    comparison = compared(tmp_path, [*PRODUCTS, *outer, *inner], [*PRODUCTS, *outer, *inner, *more])
    assert (
        facts(comparison)["same-program"]
        == "all outermost operator calls agree, but not those inside them: aten::addmm 10 → 20"
    )


def test_a_phase_of_one_side_is_a_fact(tmp_path):
    node = op("MulBackward0", 14_000, 9_000, tid=BACKWARD)
    backward = [node, *(op("aten::mul", 14_100 + 1_000 * i, 900, tid=BACKWARD, **SQUARE) for i in range(4))]
    one_sided = compared(tmp_path / "one", [*PRODUCTS, *backward], PRODUCTS)
    assert facts(one_sided)["one-sided-phases"] == "only before runs the backward pass"
    both = compared(tmp_path / "two", [*PRODUCTS, *backward], [*PRODUCTS, *backward])
    assert "one-sided-phases" not in facts(both)


def test_recordings_without_work_say_so(tmp_path):
    sides = []
    for name, took in (("before", 90), ("after", 130)):
        stop = python("torch/profiler/profiler.py(414): stop", 10, took, 1)
        sides.append(str(write(tmp_path / name / "trace.json", document([stop]))))
    comparison = compare_sets(*load_sets(sides))
    assert next(iter(facts(comparison).values())).startswith("neither side has an operator or a GPU event")
    assert "nothing-recorded" not in facts(compared(tmp_path / "work", PRODUCTS, PRODUCTS))


def test_sizes_that_one_side_recorded_are_unknown(tmp_path):
    without = [op("aten::mm", 10 + 1000 * i, 500) for i in range(12)]
    text = "sizes unknown: shapes were recorded on one side only (record_shapes=True)"
    assert facts(compared(tmp_path, PRODUCTS, without))["unknown-sizes"] == text


def test_how_much_of_a_sparse_tensor_there_is_is_unknown(tmp_path):
    def added(took, strides):
        inputs = {"Input Dims": [[60_000, 64], [60_000, 64], []], "Input Strides": [[64, 1], strides, []]}
        inputs["Input type"] = ["float", "float", "Scalar"]
        return [*PRODUCTS, *(op("aten::add_", 14_000 + 5_000 * i, took, **inputs) for i in range(4))]

    dense, sparse = (
        next(cause for cause in compared(tmp_path / name, added(4_000, [64, 1]), added(10, strides)).explanation.causes
             if "aten::add_" in cause.label)
        for name, strides in (("dense", [64, 1]), ("sparse", []))
    )  # fmt: skip
    assert dense.what.startswith("as many elements")
    assert sparse.what == "amount of work unknown"


def waiting(*us):
    views = [op("aten::view", 12_000 + 10 * i, 1) for i in range(200)]
    return [[*PRODUCTS, *views, op("aten::relu", 14_010, took, **SQUARE)] for took in us]


def test_causes_of_a_mean_that_contradicts_the_median_say_so(tmp_path):
    """One step of the first side lasts very long."""
    comparison = compared(tmp_path, waiting(10, 10, 140_000, 10, 10), waiting(*[30_000] * 5), length=20_000)
    assert comparison.verdict.difference.endswith("per step by the median")
    assert explanation_table(comparison.explanation).total.label == "mean step"
    assert answer_of(comparison).because.startswith("The mean is shorter mainly because of ")
    assert " ms (mean " in answer_of(comparison).verdict
    assert " µs" not in answer_of(comparison).verdict


def test_the_next_command_is_of_work_that_changed_as_the_step_did(tmp_path):
    """The products save more than any one other operator adds."""
    others = [op(f"aten::other{i}", 14_000 + 4_000 * i, 3_500, **SQUARE) for i in range(6)]
    faster = [op("aten::mm", e["ts"], 200, **SQUARE) for e in PRODUCTS]
    comparison = compared(tmp_path, PRODUCTS, [*faster, *others], length=20_000)
    assert comparison.work_by_operator[0].name == "aten::mm"
    assert next_command(comparison, "tracediff compare a b").startswith("tracediff explain a b aten::other")


def test_the_longest_stretch_between_operators_is_placed(tmp_path):
    """Nothing says what the host does there; it does so in every step."""

    def paused(us):
        own = [
            *PRODUCTS,
            op("aten::randint", 14_000 + us, 10),
            *(op("aten::view", 13_000 + 20 * i, 10) for i in range(9)),
        ]
        return [own for _ in range(4)]

    cause = compared(tmp_path, paused(100), paused(30_000), length=15_000).explanation.causes[0]
    assert (cause.label, cause.reasons[0].text) == (
        "host time outside operators", "up to 30.8 ms between calls in after, before aten::randint"
    )  # fmt: skip


def test_gaps_between_steps_of_one_thread_overlap_nothing(tmp_path):
    """The host is in the path what it is in all: the gap before a step, not also the one after it."""
    events, start = [], 0
    for number, gap in enumerate((0, 400, 4_000, 50, 2_500)):
        start += gap
        events += [step(number, start, 1_000), op("aten::mm", start + 10, 900, **SQUARE)]
        start += 1_000
    path = str(write(tmp_path / "trace.json", document(events)))
    control, test = (tracediff.load(path, steps=number) for number in (1, 2))
    explanation = tracediff.compare(control, test).comparison.explanation
    assert explanation.change_us == 3_600
    assert explanation.exposure_us == 0.0


@pytest.mark.parametrize(("kept", "words"), [(0, "is missing in B"), (4, "is partly missing in B")])
def test_what_the_test_side_still_does_is_only_partly_missing(tmp_path, kept, words):
    inputs = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]}
    views = [op("aten::view", 12_000 + 10 * i, 1) for i in range(200)]
    rest = [op("aten::bmm", 20_000 + 500 * i, 400, **inputs) for i in range(kept)]
    gone = [op("aten::bmm", 24_000 + 900 * i, 800, **SQUARE) for i in range(6)]
    comparison = compared(tmp_path, [*PRODUCTS, *views, *rest, *gone], [*PRODUCTS, *views, *rest])
    (reason,) = (reason for reason in comparison.comparability.reasons if reason.code == "missing-work")
    assert reason.in_short(Pair("A", "B")) == f"aten::bmm {words}, with little in its place"


@pytest.mark.parametrize(
    ("spread_us", "steps", "is_few"), [(1_500, 3, True), (10, 3, False), (300, 6, False)], ids=["few", "alike", "more"]
)
def test_disjoint_times_of_few_steps_may_be_chance(tmp_path, spread_us, steps, is_few):
    """All steps of one side take longer than all of the other; the first is not used."""
    sides = (
        [[*PRODUCTS, op("aten::relu", 14_000, us + spread_us * k)] for k in range(steps)] for us in (27_000, 29_000)
    )
    answer = answer_of(compared(tmp_path, *sides))
    assert f"step times disjoint{', but of only 2 steps' if is_few else ''}: " in answer.evidence
    assert ("clear in these recordings" in answer.evidence, "perhaps by chance" in answer.verdict) == (
        not is_few,
        is_few,
    )


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [([900, 900, 1_800, 900, 4_100], [900, 4_000, 900, 4_200, 4_000]), ([900] * 5, [950, 960, 4_900, 940, 970])],
    ids=["overlapping", "one step"],
)
def test_work_of_which_only_some_steps_take_longer_is_no_cause(tmp_path, before, after, turned):
    """Two products vary by more than they differ, or in one step; what else changed is of every step."""

    def side(product_us, relu_us):
        large = {"Input Dims": [[96, 96], [96, 96]], "Input type": ["float", "float"]}
        return [
            [
                *PRODUCTS,
                *(op("aten::mm", 14_000 + 5_000 * i, us, **large) for i in range(2)),
                op("aten::relu", 24_500, relu),
            ]
            for us, relu in zip(product_us, relu_us, strict=True)
        ]

    sides = side(before, [500] * 5), side(after, [9_000] * 5)
    comparison = compared(tmp_path, *(reversed(sides) if turned else sides), length=20_000)
    answer, causes = answer_of(comparison), {cause.label: cause for cause in comparison.explanation.causes}
    results = [
        causes[label].significance.time_change for label in ("aten::mm([96,96], [96,96])", "aten::relu (pointwise)")
    ]
    assert results == ["overlapping", "untested"]
    assert "aten::relu" in answer.because
    assert "aten::mm" not in answer.because
    rows = [line.label for _, line in explanation_table(comparison.explanation, most=8).rows]
    assert "aten::mm([96,96], [96,96]), may be chance" in rows
