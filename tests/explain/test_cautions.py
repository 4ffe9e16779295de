"""The preflight's cautions about the matched work."""

from __future__ import annotations

import pytest
import traces
from build_trace import annotation, call, document, event, kernel, op, step, write

import tracediff
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

KERNELS = ("flash_fwd", "sm90_gemm", "layer_norm", "copy_kernel")
PRODUCT, ACTIVATION = ("aten::mm", "sgemm_128", 100), ("aten::relu", "relu_kernel", 20)
FUSED = ("triton_fused_mlp", "triton_per_fused_mm_relu_0", 90)


def launched(name, start, length, correlation, op_name="aten::mm", **args):
    return [
        op(op_name, start, 4, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=correlation),
        kernel(name, start + 10, length, correlation=correlation),
    ]


def busy_step(*work, size=64, dtype="float", host_us=2):
    """A GPU-bound step: (operator, kernel, µs) one after the other, launched by operators of ``host_us`` each."""
    args = {"Input Dims": [[size, 64], [64, 64]], "Input type": [dtype, dtype]}
    events, at, total = [], 5, sum(us for *_, us in work)
    for k, (operator, name, us) in enumerate(work):
        begin = host_us * k
        start = max(at, begin + 2)
        events += [op(operator, begin, host_us, **args), call("cudaLaunchKernel", begin + 0.5, 1, correlation=k)]
        events.append(kernel(name, start, us, correlation=k))
        at = start + us
    return [step(1, 0, total + 6), *events]


def compared(folder, control, test):
    return compare_sets(
        *load_sets(
            [str(write(folder / f"{name}.json", document(e))) for name, e in (("control", control), ("test", test))]
        )
    )


def codes(comparison):
    return [reason.code for reason in comparison.comparability.reasons]


def test_more_work_is_another_workload_and_no_side_is_called_slower(tmp_path):
    comparison = compared(tmp_path, busy_step(*[PRODUCT] * 9), busy_step(*[(*PRODUCT[:2], 200)] * 9, size=128))
    assert codes(comparison) == ["workload"]
    assert comparison.verdict.sentence.startswith("The work differs: test does 2 × the FLOPs")
    assert "test took 99 % longer per step, on different work" in comparison.verdict.sentence
    assert "slower" not in comparison.verdict.sentence
    fewer = compared(tmp_path, busy_step(*[(*PRODUCT[:2], 200)] * 9, size=128), busy_step(*[PRODUCT] * 9))
    assert "test took 50 % less time per step, on different work" in fewer.verdict.sentence


@pytest.mark.parametrize(("us", "names"), [(20, ["relu_kernel", "my_relu"]), (40, [])])
def test_other_kernels_that_take_as_long_are_a_fact(tmp_path, us, names):
    other = ("aten::relu", "my_relu", us)
    sides = busy_step(*[PRODUCT, ACTIVATION] * 4), busy_step(*[PRODUCT, other] * 4)
    facts = [fact for fact in compared(tmp_path, *sides).explanation.facts if fact.code == "other-kernels"]
    assert [name for fact in facts for name in (fact.control, fact.test)] == names
    assert [fact.text for fact in facts] == [
        "other kernels take as long (17 % of the GPU time): those of aten::relu"
    ] * bool(names)
    alike = compared(tmp_path, sides[0], busy_step(*[PRODUCT, ACTIVATION] * 4)).explanation.facts
    assert "other-kernels" not in {fact.code for fact in alike}


@pytest.mark.parametrize(("us", "is_fact"), [(20, True), (2.5, False), (150, False)])
def test_work_of_the_host_that_the_gpu_hides_is_a_fact(tmp_path, us, is_fact):
    """More of it, hardly more, and so much that the GPU waits for it; the host ends before the GPU."""
    sides = [[step(1, 0, 9 * host_us), *busy_step(*[PRODUCT] * 9, host_us=host_us)[1:]] for host_us in (2, us)]
    texts = [fact.text for fact in compared(tmp_path, *sides).explanation.facts if fact.code == "hidden-host"]
    expected = (
        f"host work without waiting (mostly aten::mm) 18.0 → {9 * us:.1f} µs: the difference is off the critical path"
    )
    assert texts == [expected] * is_fact


@pytest.mark.parametrize("work", [(PRODUCT, ACTIVATION), (PRODUCT, ("aten::bmm", "bgemm_64", 50), ACTIVATION)])
@pytest.mark.parametrize("stepped", [True, False], ids=["steps", "whole file"])
def test_removed_products_are_missing_and_added_ones_are_not(tmp_path, work, stepped):
    few = busy_step(*work * 3)[not stepped :]
    many = busy_step(*work * 3, *[PRODUCT] * 3)[not stepped :]
    assert "missing-work" not in codes(compared(tmp_path, few, many))
    removed = compared(tmp_path, many, few)
    (missing,) = [reason for reason in removed.comparability.reasons if reason.code == "missing-work"]
    whole = sum(us for *_, us in work) * 3 + 300
    assert missing.message.startswith(f"{300 / whole * 100:.0f} % of control's work is missing on the test side: 3 GPU")


@pytest.mark.parametrize(
    "test",
    [
        (PRODUCT, PRODUCT, FUSED),
        (PRODUCT, PRODUCT, PRODUCT),
        (PRODUCT, PRODUCT, ("custom::mlp", "my_kernel", 60), ACTIVATION),
    ],
    ids=["fused", "activation saved", "own kernel"],
)
def test_work_that_is_fused_saved_or_replaced_is_not_missing(tmp_path, test):
    assert "missing-work" not in codes(compared(tmp_path, busy_step(*[PRODUCT] * 3, ACTIVATION), busy_step(*test)))


def test_a_wrapper_of_a_product_is_no_product(tmp_path):
    """Compiled code calls the product itself: only the self time of what called it is gone."""
    wrapped = [op("aten::linear", 0, 100), op("aten::addmm", 30, 60), op("aten::mul", 110, 50)]
    bare = [op("aten::addmm", 30, 60), op("aten::mul", 110, 50)]
    assert "missing-work" not in codes(compared(tmp_path, [step(1, 0, 200), *wrapped], [step(1, 0, 200), *bare]))
    assert "missing-work" in codes(compared(tmp_path, [step(1, 0, 200), *bare], [step(1, 0, 200), bare[1]]))


def test_a_product_whose_module_does_something_else_instead_is_missing(tmp_path):
    def forward(name, kernel_name):
        return [
            step(1, 0, 200),
            event("python_function", "nn.Module: Linear_0", 60, 40, **{"Python id": 1, "Python parent id": None}),
            *launched("sgemm_128", 20, 50, 1),
            *launched(kernel_name, 65, 30, 2, name),
        ]

    comparison = compared(tmp_path, forward("aten::mm", "sgemm_64"), forward("aten::add", "add_kernel"))
    assert "missing-work" in codes(comparison)


def test_inputs_of_another_dtype(tmp_path):
    control, test = (busy_step(*[PRODUCT] * 5, dtype=dtype) for dtype in ("float", "c10::BFloat16"))
    (found,) = compared(tmp_path, control, test).comparability.reasons
    assert (found.code, found.control, found.test) == ("dtype", "float", "bf16")
    assert codes(compared(tmp_path, control, control)) == []


def recording(units, period=1000):
    """``units`` times the same four kernels, each of 100 µs."""
    events = []
    for n in range(units):
        for k, name in enumerate(KERNELS):
            start, number = period * n + 200 * k, 10 * n + k
            events += [op(f"aten::{name}", start, 50), call("cudaLaunchKernel", start + 5, 10, number)]
            events.append(kernel(name, start + 60, 100, number))
    return events


def test_the_same_program_as_often_again_is_another_workload(tmp_path):
    comparison = compared(tmp_path, recording(10), recording(20))
    assert "workload" in codes(comparison)
    assert comparison.verdict.other_work.startswith("the same operators, 2 × as often")


def test_other_operators_are_named(tmp_path):
    shared = [op("aten::mul", 10 * k, 5) for k in range(10)]
    control, test = ([op(f"aten::{name}", 200 + 20 * k, 15) for k in range(30)] for name in ("exp", "erf"))
    comparison = compared(tmp_path, [*shared, *control], [*shared, *test])
    (reason,) = [reason for reason in comparison.comparability.reasons if reason.code == "operators"]
    assert reason.message == "other operators: aten::erf 0 → 30, aten::exp 30 → 0"
    assert (reason.control, reason.test) == ("40 calls", "40 calls")


def test_other_operators_may_be_the_same_in_other_numbers(tmp_path):
    few, many = ([op(f"aten::{name}", 20 * k, 15) for k, name in enumerate(names)] for names in (
        ["mul"] * 20 + ["add"] * 20 + ["exp"], ["mul"] * 5 + ["add"] * 20 + ["exp"] * 60))  # fmt: skip
    comparison = compared(tmp_path, few, many)
    (reason,) = [reason for reason in comparison.comparability.reasons if reason.code == "operators"]
    assert reason.message == "other operators: aten::exp 1 → 60, aten::mul 20 → 5"


def test_times_of_recordings_are_of_the_whole_file(tmp_path):
    difference = compared(tmp_path, recording(20), recording(20, 1300)).verdict.difference
    assert difference == "test took 29 % longer over the whole file"


def marked(tail):
    """Four annotations ``mark`` of 100 µs with a kernel launched in each, and ``tail`` launched behind each."""
    events = []
    for n in range(4):
        t = 10_000 * n
        events += [annotation("mark", t, 100), call("cudaLaunchKernel", t + 5, 10, 100 * n)]
        events.append(kernel("inside", t + 20, 50, 100 * n))
        for k in range(tail):
            events += [call("cudaLaunchKernel", t + 200 + 100 * k, 10, 100 * n + k + 1)]
            events.append(kernel("behind", t + 250 + 100 * k, 50, 100 * n + k + 1))
    return [*events, annotation("mark", 40_000, 100), call("cudaLaunchKernel", 40_005, 10, 999)]


@pytest.mark.parametrize(("tail", "is_caution"), [(0, False), (5, True)])
def test_work_behind_the_markers_is_a_caution(tmp_path, tail, is_caution):
    """A marker that ends before the launches makes steps of almost no work."""
    path = str(write(tmp_path / "a.json", document(marked(tail))))
    marked_set = tracediff.load(path, step_marker="mark")
    assert ("outside-steps" in codes(tracediff.compare(marked_set, marked_set).comparison)) == is_caution


def ranks(tmp_path, name, periods):
    for rank, period in enumerate(periods):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        write(folder / f"rank{rank}.json", document(recording(8, period)))
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("control", "test", "expected"),
    [
        ((1001, 1000), (1000, 1001), (0, 0)),
        ((1001, 1000), (1001, 1000), (0, 0)),
        ((1001, 1000), (1000, 1500), (1, 1)),
        ((1500, 1000), (1001, 1000), (0, 0)),
        ((2001, 2000), (1000, 1500), (1, 1)),
        ((1500, 1000), (1000, 1500), (0, 1)),
    ],
)
def test_the_same_rank_is_compared_where_its_choice_is_chance(tmp_path, control, test, expected):
    sides = ranks(tmp_path, "a", control), ranks(tmp_path, "b", test)
    comparison = tracediff.compare(*sides).comparison
    assert (comparison.control.slowest_rank, comparison.test.slowest_rank) == expected


@traces.needs_traces
def test_two_machines_are_compared_with_caution():
    comparison = compare_sets(*load_sets([str(traces.FOLDER / name) for name in ("hta_control", "hta_test")]))
    assert {"gpu", "world-size"} <= set(codes(comparison))


def test_a_refused_comparison_has_no_explanation(tmp_path):
    comparison = compared(tmp_path, [step(1, 0, 10), op("a", 0, 5)], [step(1, 0, 10), *launched("gemm", 0, 5, 1)])
    assert comparison.explanation is None
