"""What makes the same calls take another time: their inputs, what is inside them, and the host."""

import json
from itertools import accumulate

import pytest
from build_trace import call, kernel, memcpy, op, python, step
from two_sides import compared, launch

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.facts import HOST_SPEED
from tracediff.explain.leaves import OTHER_CALLS, SHARED_CALLS
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import because
from tracediff.present.next_command import next_command
from tracediff.report.explain import explain

FIRST, LAST = [262144, 1, 4096, 64], [262144, 4096, 64, 1]
"""Strides of images in channels_last, and contiguous ones."""


def reasons(comparison):
    return {cause.label: because(cause) for cause in comparison.explanation.causes}


def test_a_size_that_kernels_do_not_like_is_named(tmp_path):
    def side(vocabulary, took):
        return [step(1, 0, 20), *launch(0, "gemm", took, 5, **{"Input Dims": [[512, 64], [64, vocabulary]]})]

    comparison = compared(tmp_path, {"before": side(32000, 100), "after": side(32003, 400)})
    assert reasons(comparison) == {"aten::mm (gemm)": "sizes [64,32000] → [64,32003]; as many FLOPs in 4 × the time"}
    assert "as many FLOPs in 4 × the time, sizes [64,32000] → [64,32003])" in answer_of(comparison).why


@pytest.mark.parametrize(
    ("strides", "layout"),
    [
        (FIRST, "channels_last"),
        ([2 * 262144, 4096, 64, 1], "slice of a larger tensor"),
        ([262144, 64, 4096, 1], "[262144, 64, 4096, 1]"),
    ],
)
def test_the_layout_of_an_input_has_its_name(tmp_path, strides, layout):
    def side(strides, took):
        dims = {"Input Dims": [[64, 64, 64, 64]], "Input type": ["float"], "Input Strides": [strides]}
        return [step(1, 0, 20), *launch(0, "gemm", took, 5, **dims)]

    sides = {"before": side(LAST, 100), "after": side(strides, 400)}
    (text,) = reasons(compared(tmp_path, sides)).values()
    assert text.startswith(f"layout contiguous → {layout}")


def test_the_amount_of_an_operator_with_a_helper_inside_is_its_own(tmp_path):
    """On one side, the operator fills a small buffer first."""

    def side(strides, name, took, helper):
        dims = {"Input Dims": [[64, 64, 64, 64]], "Input type": ["float"], "Input Strides": [strides]}
        fill = {"Input Dims": [[2]], "Input type": ["int"], "Input Strides": [[1]]}
        filled = [op("aten::fill_", 2, 3, **fill), call("cudaLaunchKernel", 3, 1, 7), kernel("fill", 20, 1, 7)]
        launched = [call("cudaLaunchKernel", 8, 1, 8), kernel(name, 25, took, 8)]
        norm = op("aten::native_batch_norm_backward", 0, 12, **dims)
        return [step(1, 0, 20), norm, *(filled if helper else []), *launched]

    sides = {
        "before": side(FIRST, "batch_norm_channels_last", 100, True),
        "after": side(LAST, "batch_norm", 500, False),
    }
    (text,) = reasons(compared(tmp_path, sides)).values()
    assert text.startswith("layout channels_last → contiguous; as many elements in 4.95 × the time")


def test_calls_inside_others_that_one_side_makes_are_named(tmp_path):
    def side(inside):
        backward = [
            event
            for k in range(4)
            for event in (
                op("AddmmBackward0", 3_000 * k, 100 + 20 * inside),
                *(op("aten::mul", 3_000 * k + 20 * i, 18) for i in range(inside)),
            )
        ]
        others = [op("aten::relu", 12_000, 6_000 - 50 * inside)]
        return [step(1, 0, 19_000), *launch(0, "gemm", 10, 18_900, at=18_800), *backward, *others]

    comparison = compared(tmp_path, {"before": side(1), "after": side(90)})
    assert "calls of aten::mul in AddmmBackward0 on the host (+6.4 ms: added)" in answer_of(comparison).why


def test_an_operator_that_only_calls_more_is_named_with_what_it_calls(tmp_path):
    def side(inside):
        calls = [("aten::linear", "aten::to", 0), ("aten::conv2d", "aten::pad", 3_000), ("aten::relu", "", 6_000)]
        outer = [op(name, begin + 700 * k, 600) for name, _, begin in calls for k in range(4)]
        inner = [op(name, begin + 700 * k, 300) for _, name, begin in calls for k in range(4) if name and inside]
        return [step(1, 0, 19_000 + 4_000 * inside), *launch(0, "gemm", 10, 30, at=18_000), *outer, *inner]

    comparison = compared(tmp_path, {"before": side(0), "after": side(1)})
    assert "largest: aten::pad in aten::conv2d +1.2, aten::to in aten::linear +1.2" in str(reasons(comparison).values())


@pytest.mark.parametrize("alike", [True, False], ids=["all alike", "two of them"])
def test_a_host_that_is_slower_for_all_calls_alike(tmp_path, alike):
    def side(factors):
        events, begin = [], 0
        for number, factor in enumerate(factors):
            events += launch(number, f"k{number}", 10, begin + 20, f"aten::op{number}", int(300 * factor), begin)
            begin += int(300 * factor)
        return [step(1, 0, begin), *events]

    factors = [1.6, 1.5, 1.7, 1.6, 1.65, 1.55] if alike else [1, 1, 2.6, 1, 1, 2.6]
    comparison = compared(tmp_path, {"before": side([1] * 6), "after": side(factors)})
    stated = "all calls of both sides take the host 1.6 × the time: likely its clocks or load"
    assert (stated in [fact.text for fact in comparison.explanation.facts]) == alike
    for name, options in (("before", {"with_stack": 1}), ("after", {"with_stack": 0})):
        path = tmp_path / name / "run1" / "trace.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | options))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
    assert ("with other profiler options" in answer_of(comparison).verdict) == alike


def test_a_function_replaces_no_other_function(tmp_path):
    def side(callee, took):
        return [
            step(1, 0, 3_000 + took),
            python("model.py(10): step", 0, 2_900 + took, 1),
            python(callee, 100, took, 2, parent=1),
            *launch(0, "gemm", 5, 2_990 + took, at=2_950 + took),
        ]

    sides = {"before": side("old.py(3): old", 50), "after": side("new.py(3): scale", 900)}
    assert not any("→" in label for label in reasons(compared(tmp_path, sides)))


def test_explain_has_the_sizes_and_the_names_of_both_sides(tmp_path):
    def side(vocabulary, took):
        return [step(1, 0, 20), *launch(0, "gemm", took, 5, **{"Input Dims": [[512, 64], [64, vocabulary]]})]

    text = explain(compared(tmp_path, {"before": side(32000, 100), "after": side(32003, 400)}), "aten::mm")
    assert "below the same call of aten::mm([512,64], [64,32000]→[64,32003]), with sizes" in text
    assert [line.split()[0] for line in text.splitlines() if " × gemm" in line] == ["before", "after"]


def test_a_copy_in_place_of_a_kernel_is_not_as_many_elements(tmp_path):
    def side(size, event):
        inputs = {"Input Dims": [[64], [64]], "Input type": [size, "float"]}
        return [step(1, 0, 20), op("aten::copy_", 0, 10, **inputs), call("launch", 2, 1, 1), event]

    cast, copy = (
        kernel("direct_copy_kernel", 15, 9, 1),
        memcpy("Memcpy HtoD (Pageable -> Device)", 15, 900, 1, bytes=256),
    )
    comparison = compared(tmp_path, {"before": side("unsigned char", cast), "after": side("float", copy)})
    why = answer_of(comparison).why
    assert "as many elements" not in why
    assert "other kernels: direct_copy_kernel → Memcpy HtoD" in why


def test_where_the_gpu_changed_more_off_the_path_it_is_what_to_look_at(tmp_path):
    def side(relus, took):
        host = [op("aten::relu", 60 * k, 50) for k in range(relus)]
        return [step(1, 0, 4_000 + 60 * relus), *host, *launch(0, "gemm", took, 1_000, at=900)]

    comparison = compared(tmp_path, {"before": side(4, 100), "after": side(5, 2_000)})
    assert next_command(comparison, "tracediff compare A B") == "tracediff explain A B aten::mm"


@pytest.mark.parametrize("is_slower", [True, False])
def test_what_both_sides_call_is_told_apart_from_what_one_adds(tmp_path, is_slower):
    """A host that is slower before hides what is added after."""

    def side(took, added):
        names = [f"aten::op{k % 4}" for k in range(8)] + ["aten::isnan"] * added
        events = [op(name, 300 * k, took[k % 2] if name != "aten::isnan" else 40) for k, name in enumerate(names)]
        return [step(1, 0, 300 * len(names)), *events, *launch(0, "gemm", 10, 2_990, at=2_950)]

    before = [280, 200] if is_slower else [140, 100]
    comparison = compared(tmp_path, {"before": side(before, 0), "after": side([140, 100], 2)})
    speeds = [fact for fact in comparison.explanation.facts if fact.code == HOST_SPEED]
    assert bool(speeds) == is_slower


def test_work_that_no_operator_launched_says_so(tmp_path):
    def side(neighbour):
        launched = call("cudaLaunchKernel", 100, 5, 9, tid=99), kernel("softmax_warp", 3_600, 2_400, 9, stream=46)
        theirs = launched if neighbour else ()
        return [step(1, 0, 6_000 if neighbour else 3_600), *launch(0, "gemm", 500, 3_000, at=2_900), *theirs]

    comparison = compared(tmp_path, {"before": side(False), "after": side(True)})
    assert any("launched by no recorded operator, on stream 46" in text for text in reasons(comparison).values())


def test_the_line_of_the_calls_that_one_side_makes_beside_those_of_both(tmp_path):
    """Both multiply four times in the model, whose code moved; after multiplies in the step, too."""

    def side(line, added):
        outer = python("train.py(3): update", 0, 3_990, 1)
        inner = python(f"model.py({line}): forward", 10, 500, 2, 1)
        inside = [op("aten::mul", 20 + 100 * k, 90) for k in range(4)]
        beside = [op("aten::mul", 600 + 300 * k, 290) for k in range(added)]
        return [step(1, 0, 4_000), outer, inner, *inside, *beside, *launch(0, "gemm", 10, 3_990, at=3_950)]

    comparison = compared(tmp_path, {"before": side(12, 1), "after": side(30, 6)})
    (text,) = [text for label, text in reasons(comparison).items() if label == "calls of aten::mul on the host"]
    assert text.endswith("; in train.py(3): update")
    assert "in train.py(3): update)" in answer_of(comparison).why


def test_an_event_of_the_side_that_takes_less_time_explains_nothing(tmp_path):
    """Before, two of four products take long; after, one does, which is longer than its three others together."""

    def side(*took):
        starts = accumulate((0, *took))
        return [step(1, 0, sum(took) + 10), *(op("aten::mm", at, us) for at, us in zip(starts, took, strict=False))]

    comparison = compared(tmp_path, {"before": side(9_000, 8_000, 10, 10), "after": side(5_000, 10, 10, 10)})
    assert not any("in after takes" in text for text in reasons(comparison).values())


def test_calls_of_the_driver_that_one_side_makes_in_the_same_operators_are_a_line(tmp_path):
    """Each product launches its kernel; on one side five of them free memory before, for 500 µs."""

    def side(frees):
        events, now = [], 0
        for number in range(1, 21):
            took = 10 + 500 * (number <= frees)
            events += [op("aten::mm", now, took), call("cudaLaunchKernel", now + took - 5, 2, number)]
            events += [kernel("gemm", now + took, 5, number, grid=[8, 1, 1], block=[128, 1, 1])]
            events += [call("cudaFree", now + 1, 500)] if number <= frees else []
            now += took + 2
        return events

    for frees in ((0, 5), (5, 0)):
        explanation = compared(tmp_path / str(frees), {"before": side(frees[0]), "after": side(frees[1])}).explanation
        (cause,) = explanation.causes
        assert cause.label == "cudaFree in aten::mm"
        assert abs(cause.delta_us) == pytest.approx(2500, abs=10)  # but for the kernels that it waits for
        assert "same-calls" in {fact.code for fact in explanation.facts}


@pytest.mark.parametrize(
    ("where", "name"),
    [("launch", "mostly cudaLaunchKernel, 4 × as long"), ("backward", "mostly in the backward pass, 2 × as long")],
)
def test_what_alone_of_the_same_calls_takes_longer_is_named(tmp_path, where, name):
    """Twenty products of the forward and of the backward pass, of which the launches, or all of the backward pass, take
    longer; all else takes as long.
    """

    def side(is_slow):
        events, now = [], 0
        for number in range(1, 41):
            in_backward = number > 20
            launched = 8 if is_slow and where == "launch" else 2
            took = 20 + launched + 22 * (is_slow and where == "backward" and in_backward)
            root = f"Op{number % 5}Backward0" if in_backward else "aten::linear"
            scale = 2 if is_slow and where == "backward" and in_backward else 1
            events += [op(root, now, took), op("aten::mm", now + 2 * scale, took - 4 * scale)]
            events += [
                call("cudaLaunchKernel", now + 6 * scale, launched * scale, number),
                kernel("gemm", now + took, 1, number),
            ]
            now += took
        return [step(1, 0, now), *events]

    explanation = compared(tmp_path, {"before": side(False), "after": side(True)}).explanation
    cause = explanation.causes[0]
    assert cause.label == "the same operator calls on the host"
    assert [reason.text for reason in cause.reasons if reason.code == "largest"] == [name]


SQUARE = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}


def beside(folder, before, after):
    """The comparison of two steps with these events, beside twelve products and 200 views."""
    same = [op("aten::mm", 10 + 1000 * i, 900, **SQUARE) for i in range(12)]
    same += [op("aten::view", 12_000 + 10 * i, 1) for i in range(200)]
    sides = {"before": [*same, *before], "after": [*same, *after]}
    ends = {name: max(event["ts"] + event["dur"] for event in events) for name, events in sides.items()}
    return compared(folder, {name: [step(1, 0, ends[name] + 10), *events] for name, events in sides.items()})


def texts_of(comparison):
    return {fact.code: fact.text for fact in comparison.explanation.facts}


def heads(widths):
    """Products of these widths."""
    inputs = [{"Input Dims": [[64, 64], [64, width]], "Input type": ["float", "float"]} for width in widths]
    return [op("aten::addmm", 20_000 + 1_000 * i, 50, **sizes) for i, sizes in enumerate(inputs)]


def test_the_same_calls_with_other_sizes_in_little_of_the_work_are_not_the_same_program(tmp_path):
    comparison = beside(tmp_path, heads([64, 64]), heads([64, 256]))
    assert "same-program" not in texts_of(comparison)
    assert texts_of(comparison)["other-sizes"] == (
        "sizes differ in 0.5 % of the operator time, such as aten::addmm [64,64] → [64,256], with the same operator "
        "calls"
    )


@pytest.mark.parametrize("times", [1.3, 3])
def test_the_same_calls_that_take_another_time_are_not_the_program(tmp_path, times):
    """All products in one layer of three take longer, as if other processes took the processor."""
    took = [int(500 * times), 500, 500]
    sides = (
        [op("aten::bmm", 20_000 + 2_000 * i, us, **SQUARE) for i, us in enumerate(some)] for some in ([500] * 3, took)
    )
    comparison = beside(tmp_path, *sides)
    assert "the machine (load, clocks, threads)" in answer_of(comparison).evidence
    assert answer_of(comparison).because.startswith("Largest change")


def test_the_total_of_what_one_side_calls_is_of_the_calls_that_are_counted(tmp_path):
    """Four products of their own, and two within another operator."""
    inner = [
        event
        for i in range(2)
        for event in (op("aten::inner", 30_000 + 900 * i, 800), op("aten::bmm", 30_010 + 900 * i, 700))
    ]
    before = [*(op("aten::bmm", 20_000 + 600 * i, 500) for i in range(4)), *inner]
    comparison = beside(tmp_path, before, [op("aten::fused", 20_000, 900)])
    (text,) = (text for text in texts_of(comparison).values() if "aten::bmm" in text)
    assert "aten::bmm 4 → 0 (−2.0 ms total)" in text
    assert "aten::inner 2 → 0 (−1.6 ms total)" in text


def test_calls_of_one_side_take_what_they_take_where_they_are(tmp_path):
    """Three products of a class of modules, of which test has not the two short ones; the long ones take as long."""

    def side(short):
        out = []
        for number, (kind, us) in enumerate([("Short", 100)] * short + [("Long", 900)] * 3):
            at = 20_000 + 1_000 * number
            out += [python(f"nn.Module: {kind}_{number}", at, us + 60, number + 1, module=number)]
            out += [op("aten::linear", at + 5, us + 50), op("aten::addmm", at + 10, us)]
            out += [kernel("gemm", at + 20, 10, 500 + number), call("cudaLaunchKernel", at + 15, 5, 500 + number)]
        return out

    comparison = beside(tmp_path, side(3), side(1))
    root = comparison.explanation.root.children["host"]
    other, same = (root.children[label] for label in (OTHER_CALLS, SHARED_CALLS))
    assert other.total.tolist() == pytest.approx([2 * 150_000, 0], abs=10_000)
    linear = same.children["aten::linear"].total
    assert linear[0] == pytest.approx(linear[1], abs=10_000)
