"""What the programs of two sides call: where in the model they differ."""

import json
from fractions import Fraction

import pytest
from build_trace import annotation, call, document, kernel, op, python, step, write
from hypothesis import example, given, strategies as st
from two_sides import compared

from tracediff.engine import load_sets
from tracediff.explain.amounts import flop
from tracediff.explain.compare import compare_sets
from tracediff.explain.programs import agreeing
from tracediff.explain.repeated import work_below
from tracediff.present.answer import answer_of

FRACTIONS = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.floats(0, 10), max_size=12)


@example(dict.fromkeys("abcdefghij", 0.1), {})
@given(FRACTIONS, FRACTIONS)
def test_calls_in_common_do_not_depend_on_the_order_in_which_they_are_added(control, test):
    """Operators are a set, whose order is another in each process: calls per step are no whole numbers."""
    pairs = [(Fraction(control.get(name, 0)), Fraction(test.get(name, 0))) for name in {*control, *test}]
    assert agreeing((control, test)) == (float(sum(map(min, pairs))), float(sum(map(max, pairs))))


def model(widths, outside=()):
    """A step of a model, of which each block has a linear layer of that width; ``outside`` are operators around it."""
    events = [step(1, 0, 90_000), python("nn.Module: LM_0", 10, 80_000, 1)]
    for i, width in enumerate(widths):
        start = 100 + 2_000 * i
        events += [
            python(f"nn.Module: Block_{i}", start, 1_900, 10 * i + 2, 1),
            python(f"nn.Module: Linear_{i}", start + 10, 1_800, 10 * i + 3, 10 * i + 2),
            op("aten::mm", start + 20, 10 * width, **{"Input Dims": [[64, 64], [64, width]]}),
        ]
    return document([*events, *outside])


def modules_of(tmp_path, *sides):
    for name, trace in zip(("before", "after"), sides, strict=True):
        write(tmp_path / name / "trace.json", trace)
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
    return {fact.code: fact.text for fact in comparison.explanation.facts}.get("changed-modules")


@pytest.mark.parametrize(
    ("widths", "place"),
    [
        ([64] * 5 + [128] + [64] * 6, "LM.Block[5].Linear (of 12 Block)"),
        ([64] * 4 + [128] * 3 + [64] * 5, "3 of 12 Block in LM"),
        ([64] * 13, "LM.Block[12] (of 13 Block)"),
        ([128] * 12, None),
        ([64] * 12, None),
    ],
    ids=["a layer", "several layers", "a layer more", "all layers", "none"],
)
def test_the_modules_that_differ_are_named_unless_all_do(tmp_path, widths, place):
    text = modules_of(tmp_path, model([64] * 12), model(widths))
    assert text == (place and f"operators or sizes differ only in {place}")


@pytest.mark.parametrize(("slow", "is_said"), [([5], True), ([4, 5, 6], False), (range(12), False)])
def test_the_one_layer_is_named_that_has_most_of_the_change(tmp_path, slow, is_said):
    """Of twelve layers that do the same, these take 1,000 µs longer on one side."""
    control, test = model([64] * 12), model([64] * 12)
    products = [event for event in test["traceEvents"] if event["name"] == "aten::mm"]
    for layer in slow:
        products[layer]["dur"] += 1_000
    for sides, took in (((control, test), "640 → 1,640 µs"), ((test, control), "1,640 → 640 µs")):
        modules_of(tmp_path, *sides)
        comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
        texts = [fact.text for fact in comparison.explanation.facts if fact.code == "one-module"]
        expected = f"mostly in one of 12 Block: Block[5] {took}, the others 7,040 → 7,040 µs"
        assert texts == ([expected] if is_said else [])


def served(prefills, decodes):
    """A file of requests that are served: graphs of two kernels each, whose launches take next to no time."""
    events, begin = [], 0
    order = [("prefill", 400)] * prefills + [("decode", 50)] * decodes
    for number, (name, took) in enumerate(order):
        events += [annotation(name, begin, 20), call("cudaGraphLaunch", begin + 5, 10, number + 1)]
        for k, kind in enumerate(("fmha", "gemm")):
            events.append(kernel(f"{kind}_{name}", begin + 30 + k * took, took, number + 1))
        begin += 2 * took + 40
    return events


def test_annotations_are_told_by_the_gpu_work_that_they_launch_and_matched_by_themselves(tmp_path):
    comparison = compared(tmp_path, {"a": served(2, 6), "b": served(6, 2)})
    assert "calling prefill 6 instead of 2 times" in answer_of(comparison).verdict
    facts = [fact.text for fact in comparison.explanation.facts if fact.code == "repeated"]
    assert facts == [
        "called more often: prefill 2 → 6 times over the whole file",
        "called less often: decode 6 → 2 times over the whole file",
    ]
    held = {node.label: node.total[1] - node.total[0] for node in comparison.explanation.root.walk()}
    assert (held["prefill"], held["decode"]) == (3_200_000, -400_000)
    for group in comparison.work.groups:
        assert len({item.name.split("_")[1] for items in group.items for item in items}) == 1


def test_modules_of_one_side_do_not_differ(tmp_path):
    plain = document([e for e in model([128] * 12)["traceEvents"] if not e["name"].startswith("nn.Module")])
    assert modules_of(tmp_path, model([64] * 12), plain) is None


def test_what_is_outside_of_the_modules_is_not_their_difference(tmp_path):
    assert modules_of(tmp_path, model([64] * 12), model([64] * 12, [op("aten::norm", 85_000, 900)])) is None


def calling(optimizer, *functions, caller="train.py(3): step"):
    """Two steps, each with an optimizer's annotation and with functions that ``caller`` calls, 50 µs each."""
    events = []
    for k in range(2):
        begin, number = 2_000 * k, 100 * k
        events += [step(k + 1, begin, 1_990), annotation(f"Optimizer.step#{optimizer}.step", begin + 1_500, 200)]
        events += [annotation(f"Optimizer.zero_grad#{optimizer}.zero_grad", begin + 1_800, 20)]
        events += [python(caller, begin + 10, 1_400, number + 1), op("aten::mm", begin + 1_550, 100)]
        for i, name in enumerate(functions):
            events.append(python(name, begin + 100 + 60 * i, 50, number + 2 + i, number + 1))
    return document(events)


def calls_of_one_side(tmp_path, *sides):
    for name, trace in zip(("before", "after"), sides, strict=True):
        write(tmp_path / name / "trace.json", trace)
    comparison = compare_sets(*load_sets([str(tmp_path / name) for name in ("before", "after")]), force=True)
    return {fact.code: fact.text for fact in comparison.explanation.facts}.get("one-sided-calls")


LOSS, CLIP = "torch/nn/functional.py(3): cross_entropy", "torch/nn/utils/clip_grad.py(9): clip_grad_norm_"


def test_the_optimizer_and_the_functions_that_one_side_calls_are_named(tmp_path):
    text = calls_of_one_side(tmp_path, calling("SGD", LOSS), calling("AdamW", LOSS, CLIP))
    after = "AdamW.step, clip_grad_norm_()"
    assert text == f"called from Python only in before: SGD.step; only in after: {after}"


def test_operators_of_one_side_have_the_time_of_all_that_they_call(tmp_path):
    def side(took):
        calls = [op(f"aten::op{i}", 10 + 20 * i, 15) for i in range(20)]
        added = [op("aten::renorm", 500, took), op("aten::norm", 510, took - 20)] if took else []
        return [step(1, 0, 2_000), *calls, *added]

    comparison = compared(tmp_path, {"a": side(0), "b": side(800)})
    (text,) = [fact.text for fact in comparison.explanation.facts if fact.code == "other-counts"]
    assert text.endswith("aten::renorm 0 → 1 (+800 µs total)")


def test_another_optimizer_is_in_the_verdict(tmp_path):
    sides = {"a": calling("SGD", LOSS)["traceEvents"], "b": calling("AdamW", LOSS)["traceEvents"]}
    assert answer_of(compared(tmp_path, sides)).verdict.endswith(", with AdamW instead of SGD")


def parts(number):
    """A step of a model that is called ``number`` times."""
    events = [step(1, 0, 90_000)]
    for k in range(number):
        at = 100 + 2_000 * k
        events += [python("nn.Module: LM_0", at, 1_900, k + 1, module=0)]
        events += [op(f"aten::{name}", at + 300 * i, 200) for i, name in enumerate(("mm", "add", "mm", "relu", "sum"))]
    return document(events)


def updates(number, name="Optimizer.step#AdamW.step"):
    """Two products and ``number`` steps of an optimizer, or of what is annotated so."""
    events = [step(1, 0, 20_000), op("aten::mm", 10, 4_000), op("aten::mm", 5_000, 4_000)]
    for k in range(number):
        at = 10_000 + 2_000 * k
        events += [annotation(name, at, 1_900), op("aten::sqrt", at + 10, 900)]
    return document(events)


def replays(number):
    """A step that launches a graph ``number`` times."""
    events = [step(1, 0, 20_000), op("aten::mm", 10, 100)]
    for k in range(number):
        events += [call("cudaGraphLaunch", 200 + 300 * k, 100, k), kernel("gemm", 400 + 5_000 * k, 4_900, k)]
    return document(events)


def test_work_below_an_annotation_is_not_that_of_the_phase_of_its_name(tmp_path):
    """An operator that calls one of its own name has its work once."""
    called = [annotation("forward", 100, 500), op("aten::mm", 110, 400), op("aten::mm", 120, 100)]
    events = [step(1, 0, 1_000), *called, op("aten::mm", 700, 200)]
    tree = compared(tmp_path, {"a": events, "b": events}).trees.control
    us = {key: ns / 1000 / tree.denominator for key, ns in work_below(tree).items()}
    assert (us["annotation", "forward"], us["phase", "forward"], us["op", "aten::mm"]) == (400, 600, 600)


@pytest.mark.parametrize("kept", [True, False])
def test_a_module_in_place_of_another_is_in_the_verdict(tmp_path, kept):
    """Of two norms one is another after; and where the first class is kept elsewhere, only the new one is named."""

    def side(*classes):
        events = [step(1, 0, 1_990), python("train.py(3): step", 10, 1_900, 1)]
        for k, name in enumerate(classes):
            module = python(f"nn.Module: {name}_{k}", 100 + 200 * k, 190, 2 + k, 1, module=k)
            events += [module, op(f"aten::{name.lower()}", 110 + 200 * k, 150)]
        return events

    sides = {"a": side("Linear", "LayerNorm", "LayerNorm"), "b": side("Linear", "RMSNorm", *["LayerNorm"] * kept)}
    comparison = compared(tmp_path, sides)
    assert answer_of(comparison).verdict.endswith(f"with RMSNorm{'' if kept else ' instead of LayerNorm'}")
    text = f"called from Python {'' if kept else 'only in a: LayerNorm; '}only in b: RMSNorm"
    assert text in [fact.text for fact in comparison.explanation.facts]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (model([64] * 12), model([64] * 16), "calling 16 instead of 12 Block"),
        (parts(2), parts(6), "with 3 × the operator calls in LM"),
        (updates(4), updates(1), "calling AdamW.step 1 instead of 4 times"),
        (updates(1, "train_D"), updates(2, "train_D"), "calling train_D 2 instead of 1 time"),
        (replays(1), replays(2), "calling cudaGraphLaunch 2 instead of 1 time"),
        (updates(1), updates(1), ""),
    ],
    ids=["layers", "parts of a batch", "accumulated", "annotated", "replayed", "none"],
)
def test_what_is_called_more_often_is_in_the_verdict(tmp_path, before, after, said):
    comparison = compared(tmp_path, {"a": before["traceEvents"], "b": after["traceEvents"]})
    answer = answer_of(comparison)
    assert (
        answer.verdict.endswith(f", {said}")
        if said
        else "repeated" not in {f.code for f in comparison.explanation.facts}
    )
    assert not any("more or less often" in text for text in answer.unlike)  # which says no more


def attending(function, names=9):
    """A step whose model attends by ``function``, beside ``names`` other functions of the program."""
    own = [f"model.py({n}): part{n}" for n in range(names)]
    events = [step(1, 0, 20_000), python("train.py(3): step", 10, 19_000, 1)]
    for k, name in enumerate([*own, f"attention.py(5): {function}"]):
        at = 100 + 1_500 * k
        events += [
            python(name, at, 1_400, k + 2, 1),
            op("aten::mm" if name in own else f"aten::{function}", at + 10, 1_300),
        ]
    return events


@pytest.mark.parametrize(("names", "said"), [(9, True), (0, False)], ids=["one program", "another program"])
def test_a_function_of_the_program_in_place_of_another_is_in_the_verdict(tmp_path, names, said):
    comparison = compared(tmp_path, {"a": attending("eager", names), "b": attending("fused_sdpa", names)})
    assert answer_of(comparison).verdict.endswith(", with fused_sdpa() and without eager()") == said


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"Input type": ["c10::BFloat16", "c10::BFloat16"]}, "in bf16 instead of float"),
        ({"Input Strides": [[3072, 1, 96, 3], [3072, 1, 96, 3]]}, "in channels_last instead of contiguous layout"),
    ],
    ids=["dtype", "layout"],
)
def test_other_inputs_are_in_the_verdict(tmp_path, inputs, said):
    """Of all work, and of a third of it."""
    plain = {
        "Input Dims": [[8, 3, 32, 32]] * 2,
        "Input type": ["float"] * 2,
        "Input Strides": [[3072, 1024, 32, 1]] * 2,
    }

    def side(changed):
        ops = [op("aten::add", 100 + 2_000 * k, 1_500, **(plain | (inputs if k < changed else {}))) for k in range(12)]
        return [step(1, 0, 30_000), *ops]

    for name, changed, lead in (("all", 12, ""), ("some", 4, "partly ")):
        comparison = compared(tmp_path / name, {"a": side(0), "b": side(changed)})
        assert answer_of(comparison).verdict.endswith(f", {lead}{said}")


def test_what_both_sides_call_or_an_unknown_function_calls_is_of_neither(tmp_path):
    assert calls_of_one_side(tmp_path, calling("SGD", LOSS, CLIP), calling("SGD", CLIP, LOSS)) is None
    elsewhere = calling("SGD", LOSS, CLIP, caller="other.py(3): run")
    assert calls_of_one_side(tmp_path / "moved", calling("SGD", LOSS), elsewhere) is None


def test_the_flops_of_a_convolution_are_those_of_its_smaller_side_and_unknown_where_padding_decides():
    def flops(name, *dims):
        return flop(f"aten::{name}", json.dumps(dims), json.dumps(["float"] * len(dims)))

    forward = flops("cudnn_convolution", [8, 64, 32, 32], [128, 64, 3, 3])
    assert forward == 2 * 8 * 32 * 32 * 128 * 64 * 3 * 3
    assert flops("convolution_backward", [8, 128, 32, 32], [8, 64, 32, 32], [128, 64, 3, 3]) == 2 * forward
    upward = flops("cudnn_convolution_transpose", [8, 64, 16, 16], [64, 128, 4, 4])
    assert flops("convolution_backward", [8, 128, 32, 32], [8, 64, 16, 16], [64, 128, 4, 4]) == 2 * upward
    assert flops("cudnn_convolution", [8, 64, 34, 34], [128, 64, 32, 32]) is None  # of a gradient's gradient
    assert flops("cudnn_convolution", [8, 64, 1, 1], [128, 64, 1, 1]) == 2 * 8 * 128 * 64


def blocks(names, trained=()):
    """A step of a model of blocks of these ``names``, those of the numbers ``trained`` with a backward pass."""
    events = [step(1, 0, 90_000), python("nn.Module: LM_0", 10, 50_000, 1)]
    for i, name in enumerate(names):
        at = 100 + 4_000 * i
        linear = op("aten::linear", at + 10, 1_500, **{"Sequence number": i})
        relu = op("aten::relu", at + 1_600, 1_500)
        events += [python(f"nn.Module: {name}", at, 3_900, i + 2, 1), linear, relu]
    for i in trained:
        at = 52_000 + 3_000 * i
        node = op("autograd::engine::evaluate_function: MmBackward0", at, 2_900, **{"Sequence number": i})
        events += [node, op("aten::mm", at + 10, 2_800)]
    return events


SIX = [f"Block_{i}" for i in range(6)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (blocks(SIX, range(6)), blocks(SIX, [5])),
        (blocks(SIX), blocks(["Block_0"] * 6)),
        (blocks(SIX), blocks([f"Layer_{i}" for i in range(6)])),
    ],
    ids=["frozen", "shared", "renamed"],
)
def test_modules_that_are_no_more_are_not_said_to_be(tmp_path, before, after):
    for name, sides in (("there", (before, after)), ("back", (after, before))):
        verdict = answer_of(compared(tmp_path / name, dict(zip("ab", sides, strict=True)))).verdict
        assert "Block" not in verdict
        assert "Layer" not in verdict
