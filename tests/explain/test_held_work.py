"""Which call holds the work that differs, on programs whose story is known (µs)."""

import pytest
from build_trace import annotation, op, python, step
from two_sides import compared

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
