"""Which call holds the work that differs, on programs whose story is known (µs)."""

import pytest
from build_trace import annotation, op, python, step
from two_sides import compared, launch

FILE = "train.py"


def scaled(*calls, optimizer="AdamW", update=()):
    """A step of ``calls`` (operator, operators within it, times), and one of an optimizer with its operators."""
    events, at = [step(1, 0, 40_000), python(f"{FILE}(3): step", 5, 39_000, 1)], 10
    events += [op("aten::mm", 30_000 + 1_000 * i, 900) for i in range(8)]
    for number, (name, inner, function) in enumerate(calls, 2):
        if function:
            events.append(python(f"{FILE}(9): {function}", at - 2, 1_004, number, 1))
        events.append(op(name, at, 1_000))
        events += [op(one, at + 10 + 400 * k, 390) for k, one in enumerate(inner)]
        at += 1_100
    events.append(annotation(f"Optimizer.step#{optimizer}.step", 25_000, 3_000))
    events += [op(one, 25_010 + 200 * k, 190) for k, one in enumerate(update)]
    return events


def causes(tmp_path, control, test):
    """Label → (what happened, change in µs) of the operators' causes; the same of swapped sides with the other sign."""
    both = []
    for folder, sides in (("there", (control, test)), ("back", (test, control))):
        comparison = compared(tmp_path / folder, {"a": sides[0], "b": sides[1]})
        explanation = comparison.explanation
        assert sum(c.delta_us for c in explanation.causes) + explanation.rest_us + explanation.exposure_us == (
            pytest.approx(explanation.change_us)
        )
        both.append({c.label: (c.what, c.delta_us) for c in explanation.causes if c.trail[:1] == ("operators",)})
    assert {label: -us for label, (_, us) in both[1].items() if " → " not in label} == {
        label: us for label, (_, us) in both[0].items() if " → " not in label
    }
    return both[0]


RENORM = ("aten::renorm_", ("aten::norm", "aten::copy_"), "")


def test_an_operator_of_one_side_is_one_cause_with_what_it_calls(tmp_path):
    assert causes(tmp_path, scaled(), scaled(RENORM, RENORM)) == {"aten::renorm_": ("added", 2_000)}


def test_an_operator_that_does_what_another_did_is_no_addition(tmp_path):
    before = scaled(("aten::clip_", ("aten::norm", "aten::copy_"), ""))
    assert "aten::renorm_" not in causes(tmp_path, before, scaled(RENORM))


def test_an_operator_of_one_family_is_told_by_that(tmp_path):
    added = ("aten::softmax", ("aten::_softmax", "aten::_softmax"), "")
    assert list(causes(tmp_path, scaled(), scaled(added, added))) == ["softmax operators"]


def test_a_function_of_one_side_is_the_cause_whatever_it_calls(tmp_path):
    calls = [(name, ("aten::norm", "aten::copy_"), "tables") for name in ("aten::outer", "aten::cat")]
    kept = [(name, (), "") for name in ("aten::outer", "aten::cat")]
    assert causes(tmp_path, scaled(*kept), scaled(*kept, *calls))["tables()"] == ("added", 2_000)


def test_the_optimizers_of_both_sides_are_one_cause_if_each_has_one(tmp_path):
    before = scaled(update=["aten::sqrt", "aten::mul_", "aten::add_", "aten::lerp_"])
    after = scaled(update=["aten::add_"], optimizer="SGD")
    assert causes(tmp_path, before, after) == {"AdamW.step → SGD.step": ("replaced", -570)}


def test_an_optimizer_beside_another_does_not_hold_the_work_of_that(tmp_path):
    before = scaled(update=["aten::sqrt", "aten::mul_", "aten::add_", "aten::lerp_"])
    after = [*scaled(update=["aten::add_"]), annotation("Optimizer.step#SGD.step", 28_500, 500)]
    assert not any("step" in label for label in causes(tmp_path, before, after))


def nested(attention_us):
    """Two regions of four operators of other families each, of which one takes another time."""
    events, at = [step(1, 0, 40_000)], 10
    for region, us in (("attend", attention_us), ("feed", 1_500)):
        events.append(annotation(region, at, 8 * us))
        for k, name in enumerate(("aten::mm", "aten::softmax", "aten::copy_", "aten::native_layer_norm")):
            events.append(op(name, at + 10 + k * us, us - 20, **{"Input Dims": [[len(region), 64], [64, 64]]}))
        at += 8 * us + 100
    return events


def test_an_annotation_that_alone_takes_longer_is_the_cause_whatever_it_calls(tmp_path):
    assert list(causes(tmp_path, nested(1_000), nested(2_500))) == ["attend"]


def test_annotations_that_all_take_longer_are_no_cause(tmp_path):
    both = [step(1, 0, 90_000), *nested(2_500)[1:5], *nested(1_000)[6:]]
    assert "attend" not in causes(tmp_path, both, [{**one, "dur": one["dur"] * 2} for one in both])


def test_an_annotation_that_is_called_less_often_holds_all_its_work(tmp_path):
    def served(us, number):
        events = [step(1, 0, 40_000)]
        for i in range(number):
            events.append(annotation("decode", 10 + 6_000 * i, 5_000))
            events += [op("aten::mm", 20 + 6_000 * i, us), op("aten::copy_", 20 + us + 6_000 * i, us // 2)]
        return events

    what, us = causes(tmp_path, served(1_000, 4), served(2_400, 2))["decode"]
    assert (what, us) == ("4 → 2 times, each 2.4 × as long", 1_200)


KERNELS = ("sgemm", "aten::mm"), ("sgemm", "aten::addmm"), ("add", "aten::add"), ("copy", "aten::copy_")


@pytest.mark.parametrize(
    ("slower", "labels"),
    [
        (["sgemm"], ["sgemm"]),
        (["sgemm", "add", "copy"], ["gemm kernels", "aten::add (pointwise)", "aten::copy_ (copy)"]),
    ],
    ids=["one", "all"],
)
def test_a_kernel_that_several_operators_launch_is_one_cause_if_it_alone_takes_longer(tmp_path, slower, labels):
    def side(factor):
        """Products by two operators, sums and copies; ``slower`` kernels take ``factor`` times as long."""
        out, end = [step(1, 0, 100)], 50
        for number in range(24):
            name, op_name = KERNELS[number % 4]
            took = int(200 * (factor if name in slower else 1))
            out += launch(number, name, took, end, op_name)
            end += took
        return out

    explanation = compared(tmp_path, {"a": side(1), "b": side(1.5)}).explanation
    assert [cause.label for cause in explanation.causes] == labels
