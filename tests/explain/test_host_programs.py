"""Changes as programs make them on a host, of which the words of the answer are known (µs)."""

from io import StringIO

import pytest
from build_trace import BACKWARD, annotation, document, kernel, op, python, step, write
from rich.console import Console

from tracediff.engine import load_sets
from tracediff.explain.amounts import flop_ratio
from tracediff.explain.compare import compare_sets
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table, is_other_work
from tracediff.present.next_command import AFTER_WARM_UP, LATE_RANKS, RECOMPILES, SAME_MACHINE, next_command
from tracediff.present.sections import changed_work
from tracediff.profile.analyses.leaf_keys import CALLEE
from tracediff.report.to_terminal import _row, explanation as why_lines

WAITING = "c10d::allreduce_"
SQUARE = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
SAME = [op("aten::mm", 10 + 1000 * i, 900, **SQUARE) for i in range(12)]
SAME += [op("aten::view", 12_000 + 10 * i, 1) for i in range(200)]


def compared(folder, before, after, runs=1):
    """The comparison of the events of a step, beside twelve products and 200 views."""
    for name, events in (("before", before), ("after", after)):
        for run in range(runs):
            own = events(run) if callable(events) else events
            end = max(e["ts"] + e["dur"] for e in (*SAME, *own))
            write(folder / name / f"run{run}" / "trace.json", document([step(1, 0, end + 10), *SAME, *own]))
    return compare_sets(*load_sets([str(folder / name) for name in ("before", "after")]), force=True)


def facts(comparison):
    return {fact.code: fact.text for fact in comparison.explanation.facts}


UPDATE = "train.py(3): update"


def in_update(*functions):
    """Nested Python functions in ``update``, each within the one before it; most time in the innermost."""
    names = [UPDATE, *functions]
    return [python(name, 20_000 + 10 * i, 2_000 - 20 * i, i + 1, i or None) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("functions", "label"),
    [
        (["torch/serialization.py(943): save", "torch/serialization.py(1): _save"], "save() in train.py(3): update"),
        (
            [
                "torch/utils/_contextlib.py(124): decorate_context",
                "torch/optim/optimizer.py(518): wrapper",
                "torch/nn/utils/clip_grad.py(3): clip_grad_norm_",
                "torch/nn/utils/clip_grad.py(9): get_total_norm",
            ],
            "clip_grad_norm_() in train.py(3): update",
        ),
        (
            ["torch/amp/autocast_mode.py(2): __init__", "torch/amp/autocast_mode.py(1): is_autocast_available"],
            "autocast_mode.py in train.py(3): update",
        ),
        (["torch/optim/optimizer.py(5): wrapper", "torch/autograd/profiler.py(8): __enter__"], "train.py(3): update"),
        (["torch/_tensor.py(1): backward", "torch/autograd/__init__.py(2): run"], "backward() in train.py(3): update"),
        (["nn.Module: Linear_3", "torch/nn/modules/linear.py(1): forward"], "Linear in train.py(3): update"),
        (["torch/nn/modules/module.py(1): _call_impl"], "train.py(3): update"),
        (["json/__init__.py(183): dumps", "json/encoder.py(205): iterencode"], "dumps() in train.py(3): update"),
        (["numpy/lib/_impl.py(1): _dispatch", "numpy/lib/_impl.py(2): median"], "median() in train.py(3): update"),
    ],
    ids=["function", "behind decorators", "context", "of a decorator", "method", "module", "private", "json", "NumPy"],
)  # fmt: skip
def test_host_time_is_named_by_what_the_program_calls(tmp_path, functions, label):
    comparison = compared(tmp_path, [python(UPDATE, 20_000, 100, 1)], in_update(*functions))
    labels = [cause.label for cause in comparison.explanation.causes]
    assert label in labels, labels


def test_a_program_in_a_file_named_as_a_module_of_python_is_the_program(tmp_path):
    events = [python("profile.py(3): measure", 20_000, 2_000, 1)]
    comparison = compared(tmp_path, [python("profile.py(3): measure", 20_000, 100, 1)], events)
    assert "Python in profile.py(3): measure" in [cause.label for cause in comparison.explanation.causes]


@pytest.mark.parametrize(
    "name", ["a.py(1): <lambda>", "a.py(1): _run", "a.py(1): inner", "a.py(1): decorate_context", "aten::mm"]
)
def test_names_that_say_nothing_to_the_caller_are_passed_over(name):
    assert CALLEE.match(name) is None


def recomputed(number):
    """``number`` of four products within a backward node, as activation checkpoints have them."""
    node = op("MulBackward0", 20_000, 9_000, tid=BACKWARD)
    return [node, *(op("aten::mm", 20_100 + 1000 * i, 900, tid=BACKWARD, **SQUARE) for i in range(number))]


def test_what_is_computed_again_in_the_backward_pass_has_one_line_with_all_of_its_time(tmp_path):
    comparison = compared(tmp_path, recomputed(0), recomputed(4))
    first = comparison.explanation.causes[0]
    assert first.label.startswith("aten::mm")
    assert (first.control_us, first.test_us) == (12 * 900, 16 * 900)
    assert "aten::mm (gemm) (+3.6 ms: added in the backward pass)" in answer_of(comparison).why


def test_more_of_the_forward_pass_has_no_place(tmp_path):
    """All that is in neither the backward pass nor the optimizer counts as forward."""
    comparison = compared(tmp_path, [], [op("aten::mm", 20_000 + 1000 * i, 900, **SQUARE) for i in range(4)])
    assert not any("forward" in reason.text for cause in comparison.explanation.causes for reason in cause.reasons)


def test_operators_of_one_side_are_named_though_the_step_takes_as_long(tmp_path):
    activations = [
        [op(f"aten::{name}", 20_000, 50), op(f"aten::{name}_backward", 20_100, 60)] for name in ("gelu", "silu")
    ]
    comparison = compared(tmp_path, *activations)
    assert facts(comparison)["other-counts"].endswith(
        ": aten::gelu_backward 1 → 0, aten::silu_backward 0 → 1, aten::gelu 1 → 0, aten::silu 0 → 1"
    )
    assert "other-counts" not in facts(compared(tmp_path / "same", activations[0], activations[0]))


def test_what_a_loader_runs_is_no_part_of_the_program(tmp_path):
    scope = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20_000, 9_000)
    loading = [scope, *(op("aten::flip", 20_010 + 20 * i, 10) for i in range(400))]
    assert facts(compared(tmp_path, loading, [])) == {
        "one-sided-calls": "called from Python only in before: _SingleProcessDataLoaderIter.__next__",
        "same-program": "the same program: all outermost operator calls outside data loading agree",
    }


def test_work_of_another_size_has_an_example_of_a_shape(tmp_path):
    """The second input is larger, the first is not."""

    def products(width, took):
        dims = {"Input Dims": [[64, 64], [64, width]], "Input type": ["float", "float"]}
        return [op("aten::mm", 20_000 + 50_000 * i, took, **dims) for i in range(4)]

    larger = facts(compared(tmp_path, products(128, 10_000), products(512, 40_000)))
    assert larger["work-differs"] == (
        "the work differs in 90 % of the operator time: after does 4 × the FLOPs in 4 × the "
        "time, such as aten::mm [64,128] → [64,512], with the same operator calls"
    )


def test_as_much_work_of_other_sizes_is_said(tmp_path):
    """As of a vocabulary padded to a multiple of 64; sizes that agree have no such fact."""

    def products(width):
        dims = {"Input Dims": [[64, 512], [512, width]], "Input type": ["float", "float"]}
        return [op("aten::mm", 20_000 + 9_000 * i, 8_000, **dims) for i in range(4)]

    assert facts(compared(tmp_path, products(502), products(503))) == {
        "other-sizes": "sizes differ in 74 % of the operator time, such as aten::mm [512,502] → [512,503], "
        "with the same operator calls and as much work"
    }
    assert facts(compared(tmp_path / "same", products(502), products(502))).keys() == {"same-calls"}


def test_layers_of_other_strides_have_the_flops_of_their_backward_pass(tmp_path):
    """The first layer halves its input, which only its output tells."""
    image, smaller = [8, 64, 128, 128], [8, 64, 64, 64]
    halving, keeping = (image, [64, 64, 3, 3], smaller), (smaller, [64, 64, 3, 3], smaller)

    def step_of(*layers):
        calls = []
        for inputs, weight, outputs in layers:
            for name, dims in (("conv2d", [inputs, weight]), ("convolution_backward", [outputs, inputs, weight])):
                begin = 20_000 + 10_000 * len(calls)
                calls.append(op(f"aten::{name}", begin, 9_000, **{"Input Dims": dims, "Input type": ["float"] * 3}))
        return calls

    comparison = compared(tmp_path, step_of(halving), step_of(halving, keeping, keeping))
    assert flop_ratio(comparison.trees, 0.5) == pytest.approx(3, rel=0.01)


def first_input(batch, width=64):
    return op("aten::relu", 1, 8, **{"Input Dims": [[batch, width]], "Input type": ["float"]})


def test_the_time_per_item_of_another_batch_is_said(tmp_path):
    """The bias has no batch. A wider layer is none, nor is a parameter with more rows, whatever it takes."""

    def layers(batch, width, took, rows=None):
        dims = {"Input Dims": [[width], [rows or batch, width], [width, width]], "Input type": ["float"] * 3}
        products = [op("aten::addmm", 20_000 + 50_000 * i, took, **dims) for i in range(4)]
        return [first_input(batch, width), *products]

    comparison = compared(tmp_path, layers(8, 64, 10_000), layers(32, 64, 20_000))
    assert facts(comparison)["first-dimension"] == (
        "the first input of the step has another first dimension 8 → 32, as of another batch; so have the inputs of "
        "85 % of the operator time"
    )
    per_item = 100 * comparison.verdict.ratio / 4
    said = f"with first dimension 8 → 32 ({per_item:.3g} % of the time per item)"
    assert said in comparison.verdict.settings
    for name, other in (("wide", layers(8, 128, 20_000)), ("rows", layers(8, 64, 20_000, rows=32))):
        assert "first-dimension" not in facts(compared(tmp_path / name, layers(8, 64, 10_000), other))


@pytest.mark.parametrize("rows", [0, -1])
def test_a_symbolic_or_empty_first_dimension_is_no_batch(tmp_path, rows):
    comparison = compared(tmp_path, [first_input(8)], [first_input(rows)])
    assert "first-dimension" not in facts(comparison)


def test_an_item_may_surely_take_less_time_though_the_step_may_not(tmp_path):
    def layers(batch, *took):
        def of_run(run):
            dims = {"Input Dims": [[batch, 64], [64, 64]], "Input type": ["float"] * 2}
            products = [op("aten::mm", 20_000 + took[run] * i, took[run], **dims) for i in range(4)]
            return [first_input(batch), *products]

        return of_run

    comparison = compared(tmp_path, layers(8, 8_000, 10_000, 13_000), layers(32, 12_000, 9_000, 15_000), runs=3)
    assert comparison.verdict.result == "inconclusive"
    low, high = (25 * (1 + us / comparison.verdict.median_control_us) for us in comparison.verdict.ci95_us)
    assert f"% of the time per item, 95 % interval {low:.3g} to {high:.3g} %)" in comparison.verdict.settings
    assert next_command(comparison, "tracediff compare a b") == "tracediff explain a b aten::mm"


def test_one_stall_among_many_new_calls_is_not_what_all_of_them_take(tmp_path):
    shared = [op("aten::mm", 1_000 * i, 900) for i in range(20)]
    new = [op("aten::as_strided", 21_000 + 50 * i, 8_000 if i == 39 else 2) for i in range(40)]
    comparison = compared(tmp_path, shared, [*shared, *new])
    cause, _ = comparison.explanation.causes
    assert (cause.label, cause.what) == ("mostly one call of aten::as_strided", "added")
    assert [reason.text for reason in cause.reasons] == ["one of 40 in after takes 8.0 ms"]
    assert not is_other_work(cause)  # most of which it is not


def test_the_longest_of_several_exceptions_is_not_the_only_one(tmp_path):
    """Before one of ten operators the program computes for long, in the step of each run."""

    def update(*long_us):
        def of_run(run):
            calls = [op("aten::relu", 20_100 + long_us[run] + 100 * i, 50) for i in range(10)]
            return [python(UPDATE, 20_000, 1_200 + long_us[run], 1), *calls]

        return of_run

    comparison = compared(tmp_path, update(0, 0), update(9_000, 9_900), runs=2)
    (cause,) = comparison.explanation.causes
    assert cause.reasons[-1].text == "up to 10.0 ms between calls in after, before aten::relu"


def of_update(us, spread=10):
    """A function of the program of so many µs, and ``spread`` µs more from run to run."""
    return lambda run: [python(UPDATE, 20_000, us + spread * run, 1)]


def test_where_the_cause_of_an_improvement_is_gone_what_limits_the_step_now_is_next(tmp_path):
    command = "tracediff compare some/before some/after"
    faster = compared(tmp_path / "faster", of_update(9_000), of_update(100), runs=5)
    assert next_command(faster, command) == "tracediff analyze some/after"
    assert next_command(faster, "tracediff compare x y").startswith("tracediff")
    slower = compared(tmp_path / "slower", of_update(100), of_update(9_000), runs=5)
    assert "analyze" not in next_command(slower, command)


@pytest.mark.parametrize(
    ("change", "runs", "expected"),
    [(3_000, 2, "record 5 runs"), (3_000, 3, "record 6 runs"), (400, 3, "needs about 223"), (40, 3, "more than 1,000")],
)
def test_an_inconclusive_verdict_asks_for_the_runs_that_would_show_the_change(tmp_path, change, runs, expected):
    comparison = compared(tmp_path, of_update(9_000, 1_500), of_update(9_000 + change, 1_500), runs=runs)
    assert comparison.verdict.result == "inconclusive"
    assert expected in next_command(comparison, "tracediff compare before after")


def test_what_grew_beside_as_much_work_as_before_is_named(tmp_path):
    """Most of the time is products, which are larger after; the rest is as much work, and a bit slower."""

    def side(width, took, rest_took):
        products = {"Input Dims": [[64, 64], [64, width]], "Input type": ["float", "float"]}
        rest = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
        return [
            *(op("aten::mm", 20_000 + 50_000 * i, took, **products) for i in range(4)),
            *(op("aten::mul", 240_000 + 5_000 * i, rest_took, **rest) for i in range(4)),
        ]

    comparison = compared(tmp_path, side(128, 10_000, 1_000), side(512, 40_000, 1_200))
    assert comparison.explanation.causes[0].label.startswith("aten::mm")


def test_the_example_of_a_shape_grew_as_the_work_did(tmp_path):
    """The largest product grew less than most of the work."""

    def products(widths, took):
        kinds = {"aten::mm": [[64, 64], [64, widths[0]]], "aten::bmm": [[2, 64, 64], [2, 64, widths[1]]]}
        inputs = {name: {"Input Dims": dims, "Input type": ["float", "float"]} for name, dims in kinds.items()}
        large = op("aten::mm", 20_000, took[0], **inputs["aten::mm"])
        return [large, *(op("aten::bmm", 150_000 + 50_000 * i, took[1], **inputs["aten::bmm"]) for i in range(3))]

    comparison = compared(tmp_path, products([6400, 128], [80_000, 5_000]), products([9600, 1024], [120_000, 40_000]))
    text = facts(comparison)["work-differs"]
    assert text.startswith("the work differs in 94 % of the operator time: after does ")
    assert "about 8 × the FLOPs in 2.53 × the time, such as aten::bmm [2,64,128] → [2,64,1024]" in text


def test_a_larger_batch_of_one_rank_is_more_work_and_each_table_says_of_which_ranks_it_is(tmp_path):
    """Of two ranks with twelve products each, one has three times the batch in after, and takes three times as long."""

    def rank(batch):
        shapes = {"Input Dims": [[batch, 64], [64, 64]], "Input type": ["float", "float"]}
        return [step(1, 0, 300 * batch), *(op("aten::mm", 20 * batch * i, 10 * batch, **shapes) for i in range(12))]

    for name, batches in (("before", (64, 64)), ("after", (64, 192))):
        for number, batch in enumerate(batches):
            about = {"rank": number, "world_size": 2}
            write(tmp_path / name / f"rank{number}.json", document(rank(batch), distributedInfo=about))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]))
    more = "2 × the FLOPs in 3 × the time"
    assert facts(comparison)["work-differs"].startswith(f"the work differs: after does {more}")
    head = "Why (rank 1; total: also what other work hides)"
    assert explanation_table(comparison.explanation).heads[0] == head
    assert changed_work(comparison, 5).title == "Operators (self time), mean of 2 ranks"
    assert "ranks 0–1 (step and why: rank 1; tables: mean of ranks)" in answer_of(comparison).setting


@pytest.mark.parametrize("ranks", [1, 2])
def test_waiting_for_ranks_leads_to_those_that_are_waited_for(tmp_path, ranks):
    for name, took in (("before", 100), ("after", 9_000)):
        for rank in range(ranks):
            events = [step(1, 0, 30_000), *SAME[:12], op("c10d::allreduce_", 15_000, took)]
            about = {"rank": rank, "world_size": ranks}
            write(tmp_path / name / f"rank{rank}.json", document(events, distributedInfo=about))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]))
    following = next_command(comparison, "tracediff compare before after")
    assert following == f"tracediff {['explain', 'compare'][ranks - 1]} before after {[WAITING, LATE_RANKS][ranks - 1]}"
    assert "waiting" not in comparison.explanation.causes[0].what  # the operator enqueues


def test_compiled_code_of_one_side_is_a_fact(tmp_path):
    comparison = compared(tmp_path, [op("aten::relu", 20_000, 50)], [op("CompiledFunction", 20_000, 40)])
    assert facts(comparison)["compiled"] == "only after runs compiled code, which replaces operators of before"
    by_hand = compared(tmp_path / "by hand", [op("aten::relu", 20_000, 50)], [op("my_fused_relu", 20_000, 40)])
    assert "compiled" not in facts(by_hand)


def test_compiled_code_is_one_line_whatever_its_parts_are_called(tmp_path):
    """Its self time on a CPU is what its kernels compute, which have no events of their own."""
    forward = [op("Torch-Compiled Region: 0/0", 20_000, 3_000), op("CompiledFunction", 20_010, 2_900)]
    backward = [
        op("autograd::engine::evaluate_function: CompiledFunctionBackward", 24_000, 2_000, BACKWARD),
        op("CompiledFunctionBackward", 24_010, 1_900, BACKWARD),
    ]
    comparison = compared(tmp_path, [op("aten::relu", 20_000, 900)], [*forward, *backward])
    (line,) = (cause for cause in comparison.explanation.causes if "ompiled" in cause.label)
    assert (line.label, line.what, line.test_us) == ("compiled code on the host", "added", 3_000 + 1_900)
    table = changed_work(comparison, 5)
    assert table.rows[0].name == "CompiledFunction"
    same_us = 12 * 900 + 200
    assert table.whole.us == (same_us + 900, same_us + 3_000 + 1_900)


def test_a_node_of_autograd_does_the_work_of_no_product(tmp_path):
    """Activation checkpoints compute the forward pass again in the first node that needs it, as its self time."""
    comparison = compared(
        tmp_path, [op("AddmmBackward0", 20_000, 100, **SQUARE)], [op("AddmmBackward0", 20_000, 3_000, **SQUARE)]
    )
    (cause,) = comparison.explanation.causes
    assert ("AddmmBackward0" in cause.label, cause.what) == (True, "1 call each, 30 × as long")


def test_that_both_sides_call_the_same_is_a_fact_to_the_last_call_and_shape(tmp_path):
    def facts_of(name, before, after):
        return facts(compared(tmp_path / name, before, after))

    relu = op("aten::relu", 20_000, 50, **SQUARE)
    text = "the same program: all operator calls agree, with the same shapes"
    assert facts_of("slower", [relu], [op("aten::relu", 20_000, 500, **SQUARE)])["same-calls"] == text
    others = {
        "one more": [relu, op("aten::relu", 20_100, 50, **SQUARE)],
        "another": [op("aten::gelu", 20_000, 50, **SQUARE)],
        "another shape": [op("aten::relu", 20_000, 50, **{**SQUARE, "Input Dims": [[64, 65], [64, 64]]})],
    }
    assert [name for name, events in others.items() if "same-calls" in facts_of(name, [relu], events)] == []
    compiled = [op("CompiledFunction", 20_000, 40)]
    assert "same-calls" not in facts_of("compiled", compiled, compiled)


def test_a_convolution_in_less_time_may_have_other_strides(tmp_path):
    """Which the trace does not give."""
    shapes = {"Input Dims": [[8, 3, 64, 64], [16, 3, 3, 3]], "Input type": ["float", "float"]}

    def what(name, took):
        (cause,) = compared(
            tmp_path / name,
            [op("aten::mkldnn_convolution", 20_000, 4_000, **shapes)],
            [op("aten::mkldnn_convolution", 20_000, took, **shapes)],
        ).explanation.causes
        return cause.what

    assert what("less", 1_000) == "as many FLOPs, 4 × as fast, if stride= is the same"
    assert what("more", 8_000) == "as many FLOPs in 2 × the time, if stride= is the same"


def test_few_calls_that_are_larger_than_the_others_are_added(tmp_path):
    few = [op("aten::mul", 20_000 + 200 * i, 100) for i in range(20)]
    comparison = compared(tmp_path, few, [*few, *(op("aten::mul", 30_000 + 4_000 * i, 3_000) for i in range(2))])
    (what,) = [cause.what for cause in comparison.explanation.causes if "aten::mul" in cause.label]
    assert what == "mostly added ones"


def test_communication_that_is_called_more_often_is_work_that_changed(tmp_path):
    """No amount of it is known, and the runs do not show that the step takes longer."""

    def step_of(run, number, took):
        reduced = [op("c10d::allreduce_", 20_000 + took * i, took, **SQUARE) for i in range(number)]
        return [*reduced, op("aten::relu", 20_000 + took * number, 900 * run + 1)]

    comparison = compared(tmp_path, lambda run: step_of(run, 1, 300), lambda run: step_of(run, 11, 100), 3)
    assert comparison.verdict.result == "inconclusive"
    assert answer_of(comparison).because.startswith(
        "Work that differs, on the critical path: c10d::allreduce_ (communication) (+"
    )


def test_more_flops_are_never_as_much_work(tmp_path):
    """Half as many products more, and other operators around them."""
    more = [op("aten::mm", 20_000 + 1000 * i, 900, **SQUARE) for i in range(6)]
    others = [op("aten::relu", 30_000 + 10 * i, 5) for i in range(80)]
    text = facts(compared(tmp_path, [], [*more, *others]))["other-program"]
    assert text == (
        "212 outermost operator calls in both, 86 only in after: aten::mm 12 → 18, "
        "aten::relu 0 → 80 (+0.4 ms total); after does 1.5 × the known FLOPs"
    )


def test_a_difference_that_is_not_significant_is_what_was_measured(tmp_path):
    comparison = compared(
        tmp_path,
        lambda run: [op("aten::relu", 20_000, 900 * run)],
        lambda run: [op("aten::relu", 20_000, 3000 * run)],
        3,
    )
    assert comparison.verdict.result == "inconclusive"
    assert comparison.verdict.difference.startswith("inconclusive: after took ")


def test_where_nothing_is_significant_the_work_that_changed_is_named_not_what_took_longer(tmp_path):
    """Each run has relu, which takes longer on the test side, and that side has norms, too."""

    def of_side(took, norms):
        return lambda run: [
            op("aten::relu", 20_000, took + 12_000 * run),
            *(op("aten::linalg_vector_norm", 20_000 + took + 12_000 * run + 500 * i, 500) for i in range(norms)),
        ]

    comparison = compared(tmp_path, of_side(500, 0), of_side(4000, 3), 3)
    assert comparison.verdict.result == "inconclusive"
    assert comparison.explanation.causes[0].label == "aten::relu (pointwise)"
    assert answer_of(comparison).why == (
        "Work that differs, on the critical path: aten::linalg_vector_norm (reduction) (+1.5 ms: added); "
        "all else +3.5 ms, of which aten::relu (pointwise) +3.5, not significant."
    )


def test_a_line_without_a_name_is_a_row():
    assert [text.plain for text in _row(10, [3], " ", ["1.0"])] == [f"{'':12}1.0  "]


def test_on_a_wide_screen_each_line_has_its_reason_beside_it(tmp_path):
    """However few lines a screen has room for."""
    names = ("bernoulli_", "_softmax", "native_layer_norm", "topk", "linalg_vector_norm", "embedding", "convolution")
    added = [op(f"aten::{name}", 20_000 + 1000 * i, 900) for i, name in enumerate(names)]
    explanation = compared(tmp_path, [], added).explanation
    screen = Console(file=StringIO(), width=160)
    screen.print(*why_lines(explanation, 160, most=9, detailed=0))
    lines = [line for line in screen.file.getvalue().splitlines() if line.startswith("    aten::")]
    assert len(lines) >= 5
    assert all(line.rstrip().endswith("added") for line in lines), lines


def test_operators_without_shapes_are_done_more_often(tmp_path):
    """A batch in eight parts, in other functions; how much each call does was not recorded."""

    def parts(number, name, took):
        blocks = [op(f"{name}{i}", 20_000 + 1_000 * i, took // number) for i in range(number)]
        return [*blocks, *(op("aten::mm", e["ts"] + 10, e["dur"] - 20) for e in blocks)]

    comparison = compared(tmp_path, parts(8, "whole", 7_200), parts(64, "part", 12_000))
    cause = comparison.explanation.causes[-1]
    assert (cause.label, cause.what, cause.reasons[0].text) == ("aten::mm (gemm)", "", "20 → 76 operators")


def test_where_the_work_is_unknown_what_is_left_of_it_does_not_differ(tmp_path):
    """Compiled code replaces most of the work; a copy that remains is a third of what another one was."""

    def copied(rows, took):
        return op("aten::copy_", 20_000, took, **{"Input Dims": [[rows, 80], [rows, 80]], "Input type": ["float"] * 2})

    eager = [copied(300, 3_000), *(op("aten::gelu", 30_000 + 1_000 * i, 900) for i in range(30))]
    comparison = compared(tmp_path, eager, [copied(100, 1_000), op("CompiledFunction", 30_000, 20_000)])
    assert {"compiled", "unknown-work"} <= facts(comparison).keys()
    assert "work-differs" not in facts(comparison)


def test_the_shapes_of_a_call_say_what_of_its_operator_a_line_is(tmp_path):
    """Twelve other products take as long as before."""

    def products(took):
        dims = {"Input Dims": [[64, 64], [64, 512]], "Input type": ["float", "float"]}
        return [op("aten::mm", 20_000 + 20_000 * i, took, **dims) for i in range(4)]

    comparison = compared(tmp_path, products(2_000), products(6_000))
    assert comparison.explanation.causes[0].label == "aten::mm([64,64], [64,512])"


def test_of_two_compiled_programs_the_operators_outside_say_little(tmp_path):
    compiled = [op("CompiledFunction", 20_000, 20_000)]
    assert "same-program" not in facts(compared(tmp_path, compiled, [*compiled, op("aten::add", 50_000, 10)]))


def test_that_shapes_were_not_recorded_is_a_fact(tmp_path):
    for name, args in (("without", {}), ("with", SQUARE)):
        paths = []
        for side in ("before", "after"):
            events = [op("aten::mm", 1_000 * i, 900, **args) for i in range(20)]
            paths.append(write(tmp_path / name / side / "trace.json", document([step(1, 0, 30_000), *events])))
        comparison = compare_sets(*load_sets(list(map(str, paths))))
        assert ("unknown-sizes" in facts(comparison)) == (name == "without")


def slowed(factors, dtype="float"):
    """Operators that take so many times 500 µs; of more than five, all but the last two are one."""
    inputs = {"Input Dims": [[64, 64], [64, 64]], "Input type": [dtype] * 2}
    names = [f"aten::op{max(i - 7, 0) if len(factors) > 5 else i}" for i in range(len(factors))]
    timed = enumerate(zip(names, factors, strict=True))
    return [op(name, 20_000 + 9_000 * i, 500 * factor, **inputs) for i, (name, factor) in timed]


@pytest.mark.parametrize(
    ("factors", "dtype", "is_alike"),
    [([1.6, 1.5, 1.7, 1.6, 1.55], "float", True), ([1.6, 1.5, 1.7, 1.6, 1.55], "c10::BFloat16", False),
     ([1, 5, 1, 1, 1], "float", False), ([1.01, 1.0, 1.01, 1.02, 1.0], "float", False),
     ([*[1.6, 1.5] * 4, 1.7, 1.6], "float", True), ([*[1.6, 1.5] * 4, 1.0, 1.0], "float", False)],
    ids=["the machine", "another dtype", "one of them", "noise", "one is most of them", "that one alone"],
)  # fmt: skip
def test_work_that_changes_alike_is_a_change_of_the_machine(tmp_path, factors, dtype, is_alike):
    paths = {}
    for name, events in (("before", slowed([1] * len(factors))), ("after", slowed(factors, dtype))):
        paths[name] = str(write(tmp_path / name / "trace.json", document([step(1, 0, 160_000), *events])))
    for control, test in (("before", "after"), ("after", "before")):
        comparison = compare_sets(*load_sets([paths[control], paths[test]]), force=True)
        assert ("uniform" in facts(comparison)) == is_alike
    if is_alike:
        factor = sum(factors) / len(factors)
        assert f"with all work {factor:.3g} × as fast" in answer_of(comparison).verdict
        assert (
            f"the same work takes {1 / factor:.3g} × the time, all of it alike: the machine"
            in facts(comparison)["uniform"]
        )


@pytest.mark.parametrize("is_alike", [True, False])
def test_gpu_work_without_operators_that_changes_alike_is_the_clocks(tmp_path, is_alike):
    def kernels(factors):
        names = "sgemm", "softmax_warp_forward", "layer_norm_kernel", "reduce_kernel", "elementwise_kernel"
        events = [(names[k], 5_000 * k, 500 * factor, k + 1) for k, factor in enumerate(factors)]
        return document([kernel(*event, grid=[8, 1, 1], block=[64, 1, 1]) for event in events])

    after = kernels([1.6, 1.5, 1.7, 1.6, 1.55] if is_alike else [1, 5, 1, 1, 1])
    paths = [str(write(tmp_path / f"{k}.json", trace)) for k, trace in enumerate((kernels([1] * 5), after))]
    text = facts(compare_sets(*load_sets(paths), force=True)).get("uniform", "")
    assert bool(text) == is_alike == ("the GPU (its clocks)" in text)


def test_where_all_work_takes_longer_alike_it_is_one_cause_and_the_machines_are_next(tmp_path):
    """Twelve operators one after another, of which one takes most of the time, in three runs a side."""
    inputs = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float"] * 2}
    for name, us in (("before", 500), ("after", 1_000)):
        for run in range(3):
            took = us + run
            events = [op(f"aten::op{max(i - 8, 0)}", took * i, took, **inputs) for i in range(12)]
            write(tmp_path / name / f"run{run}" / "trace.json", document([step(1, 0, 12 * took), *events]))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]))
    assert answer_of(comparison).because.startswith("Because of operators (+6.0 ms, of which aten::op0")
    assert next_command(comparison, "tracediff compare a b") == SAME_MACHINE


def test_a_batch_in_parts_is_as_many_flops_in_more_calls(tmp_path):
    updates = [op("aten::lerp_", 60_000 + 10 * i, 8) for i in range(200)]
    for name, parts in (("before", 1), ("after", 4)):
        shapes = {"Input Dims": [[64 // parts, 64], [64, 64]], "Input type": ["float", "float"]}
        products = [op("aten::mm", 10 + 1000 * i, 900, **shapes) for i in range(12 * parts)]
        losses = [op("aten::nll_loss", 59_000 + 10 * i, 8) for i in range(30 * parts)]
        write(tmp_path / name / "trace.json", document([step(1, 0, 62_010), *products, *losses, *updates]))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
    assert "as many FLOPs, in 4 × as many calls with FLOPs: " in facts(comparison)["rewritten"]


def test_the_forward_pass_within_the_backward_pass_runs_again(tmp_path):
    text = facts(compared(tmp_path / "again", recomputed(0), recomputed(4)))["recomputed"]
    assert text.startswith("only after runs operators of the forward pass again in the backward pass")
    assert text.endswith(": aten::mm (3.6 ms of operator time)")
    assert "recomputed" not in facts(compared(tmp_path / "as often", recomputed(1), recomputed(4)))


def test_a_program_more_often_has_the_same_shapes(tmp_path):
    """Twice the calls of half the batch are no more work, although the operators whose FLOPs are known take little."""
    for name, parts in (("before", 1), ("after", 2)):
        shapes = {"Input Dims": [[64 // parts, 64], [64, 64]], "Input type": ["float", "float"]}
        calls = [op("aten::mm", 10 + 200 * i, 9, **shapes) for i in range(80 * parts)]
        calls += [op("aten::layer_norm", 30 + 200 * i, 90) for i in range(80 * parts)]
        write(tmp_path / name / "trace.json", document([step(1, 0, 62_010), *calls]))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
    assert "as-often" not in facts(comparison)
    assert "as many FLOPs, in 2 × as many calls" in facts(comparison)["rewritten"]


@pytest.mark.parametrize(
    ("compiling", "code", "following"), [((2, 3), "compiles-anew", RECOMPILES), ((2,), "not-steady", AFTER_WARM_UP)]
)
def test_steps_that_each_compile_are_no_warm_up(tmp_path, compiling, code, following):
    for name, numbers in (("before", ()), ("after", compiling)):
        steps = [step(n, 20_000 * n, 19_000) for n in (2, 3)]
        products = [op("aten::mm", 20_000 * n + 10_000, 900, **SQUARE) for n in (2, 3)]
        scopes = [annotation("entire_frame_compile (dynamo_timed)", 20_000 * n + 100, 9_000) for n in numbers]
        write(tmp_path / name / "trace.json", document([*steps, *products, *scopes]))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]))
    assert code in facts(comparison)
    assert next_command(comparison, "tracediff compare before after") == following


def test_a_stretch_of_one_run_is_not_why_all_runs_take_longer(tmp_path):
    """In each run ten stretches before operators are longer, and in one of them one is much longer."""

    def update(gap_us, *long_us):
        def of_run(run):
            calls = [op("aten::relu", 20_000 + long_us[run] + gap_us * (i + 1), 50) for i in range(10)]
            return [python(UPDATE, 20_000, 12 * gap_us + long_us[run], 1), *calls]

        return of_run

    (cause,) = compared(tmp_path, update(100, 0, 0), update(300, 0, 5_000), runs=2).explanation.causes
    assert cause.label == "Python in train.py(3): update"
    assert "between calls" not in "".join(reason.text for reason in cause.reasons)


def test_an_operator_has_one_name_and_its_amount_wherever_it_is_matched(tmp_path):
    """Eight layers, or two that are larger: six have no counterpart, and are one cause; products of two are another."""

    def layers(number, width, took):
        sizes = {"Input Dims": [[64, width], [width, width]], "Input type": ["float", "float"]}
        events = [step(1, 0, 100_000), python("nn.Module: LM_0", 10, 20_000, 1)]
        for i in range(number):
            at, back, order = 100 + 2_000 * i, 30_000 + i * (took + 200), {"Sequence number": i}
            events += [python(f"nn.Module: Block_{i}", at, 1_500, i + 2, 1), op("aten::view", at + 10, 10, **order)]
            events += [op("autograd::engine::evaluate_function: AddmmBackward0", back, took + 60, **order)]
            events += [op("AddmmBackward0", back + 10, took + 40, **sizes, **order)]
            events += [op("aten::mm", back + 20 + k * took // 2, took // 2, **sizes) for k in (0, 1)]
        return events

    for name, events in (("before", layers(8, 128, 1_000)), ("after", layers(2, 256, 4_400))):
        write(tmp_path / name / "trace.json", document(events))
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]))
    causes = {cause.label: cause for cause in comparison.explanation.causes}
    product, block = causes["aten::mm (gemm)"], causes["Block"]
    assert (product.what, product.control_us, product.test_us) == ("4 × the FLOPs in 4.27 × the time", 2_080, 8_880)
    assert (block.what, block.test_us) == ("8 → 2 modules", 0)
    assert {reason.code for reason in comparison.comparability.reasons}.isdisjoint({"missing-work"})


def test_an_operator_that_both_call_as_often_differs_in_nothing(tmp_path):
    """Its calls are within another operator on one side."""
    within = [op("aten::clip", 20_000, 1_500), op("aten::mul_", 20_100, 900)]
    comparison = compared(tmp_path, within, [op("aten::mul_", 20_100, 900)])
    assert list(comparison.explanation.differing) == ["aten::clip"]
    assert "mul_" not in comparison.verdict.settings


@pytest.mark.parametrize(("functions", "table"), [(True, "idle"), (False, "loading")])
def test_what_a_loader_does_is_next_where_its_functions_are_recorded(tmp_path, functions, table):
    def loading(us):
        step_of_program = [python(UPDATE, 20_000, us + 500, 1), python("train.py(7): collate", 20_010, us, 2, 1)]
        collate = step_of_program if functions else []
        return [annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20_000, us + 100), *collate]

    comparison = compared(tmp_path, loading(50), loading(9_000))
    assert comparison.explanation.causes[0].label == "loading data"
    assert next_command(comparison, "tracediff compare a b") == f"tracediff compare a b --table {table}"
