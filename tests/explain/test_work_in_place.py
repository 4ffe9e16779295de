"""Work in place of other work, on layers of which it is known what replaced what (µs)."""

import pytest
from build_trace import op, step
from two_sides import compared

LINEAR = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
LARGE = {"Input Dims": [[64, 96], [96, 64]], "Input type": ["float", "float"]}
ATTENTION = [("aten::bmm", 200), ("aten::softmax", 150), ("aten::masked_fill", 100)]
FUSED = [("aten::scaled_dot_product_attention", 90)]
DROPOUT = [("aten::dropout", 120)]


def layers(inner, after=(), number=3):
    """Layers of ``inner`` operators, each between two linear ones of other sizes, then operators ``after`` them all."""
    events, at = [], 10
    calls = [call for _ in range(number) for call in (("aten::mm", 900, LINEAR), *inner, ("aten::mm", 800, LARGE))]
    for name, us, *inputs in (*calls, *after):
        events.append(op(name, at, us, **(inputs[0] if inputs else {})))
        at += us + 1
    return [step(1, 0, at + 10), *events]


def rows(folder, control, test):
    explanation = compared(folder, {"a": control, "b": test}).explanation
    moved = sum(cause.delta_us for cause in explanation.causes) + explanation.rest_us + explanation.exposure_us
    assert moved == pytest.approx(explanation.change_us)
    return {cause.label: (cause.what, cause.delta_us) for cause in explanation.causes}


@pytest.mark.parametrize("turned", [False, True])
def test_all_that_replaces_other_work_between_the_same_calls_is_one_row(tmp_path, turned):
    sides = layers(ATTENTION), layers(FUSED)
    before, after = "aten::bmm + 2 more", "aten::scaled_dot_product_attention"
    label = f"{after} → {before}" if turned else f"{before} → {after}"
    expected = {label: ("replaced", 1080 if turned else -1080)}
    assert rows(tmp_path, *(reversed(sides) if turned else sides)) == expected


def test_what_is_gone_elsewhere_is_no_part_of_a_replacement(tmp_path):
    product = ("aten::mm", 700, LINEAR)
    sides = layers(ATTENTION, [product, *DROPOUT * 4]), layers(FUSED, [product])
    assert rows(tmp_path, *sides) == {
        "aten::bmm + 2 more → aten::scaled_dot_product_attention": ("replaced", -1080),
        "aten::dropout (rng)": ("removed", -480),
    }


def test_next_to_nothing_replaces_nothing(tmp_path):
    causes = rows(tmp_path, layers(ATTENTION), layers([("aten::tiny", 5)]))
    assert not any("→" in label for label in causes)


def test_of_two_programs_with_nothing_in_common_nothing_is_said_to_replace_the_other(tmp_path):
    def program(names):
        return [step(1, 0, 2_000), *(op(f"aten::{name}", 10 + 300 * i, 290) for i, name in enumerate(names))]

    causes = rows(tmp_path, program(["bmm", "softmax", "cat"]), program(["conv2d", "batch_norm"]))
    assert not any("bmm" in label and "conv" in label for label in causes)
