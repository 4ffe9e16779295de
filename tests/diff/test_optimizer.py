"""The finding of the optimizer's implementation."""

import pytest
from build_trace import annotation, document, op, step, write

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

PER_TENSOR = {f"aten::{name}": 12 for name in ("lerp_", "mul_", "addcmul_", "sqrt", "addcdiv_")}
FOREACH = {f"aten::_foreach_{name}": 1 for name in ("lerp_", "mul_", "addcmul_", "sqrt", "addcdiv_")}
FUSED = {"aten::_fused_adam_": 1, "aten::_foreach_add_": 1}
COMPILED = {"graph_1_cpp_fused__foreach_copy_0": 1}


def trained(path, operators, us, scalar="float", name="Adam"):
    """Two steps: a product of 200 µs, and the optimizer's ``operators`` (name → number) of ``us`` µs together."""
    events = []
    each = us / sum(operators.values())
    for number, start in enumerate((0, 1000)):
        events += [step(number, start, 1000), op("aten::mm", start + 10, 200)]
        at = start + 300
        events.append(annotation(f"Optimizer.step#{name}.step", at - 1, us + 2))
        for operator, times in operators.items():
            for _ in range(times):
                dtypes = {"Input Dims": [[64], []], "Input type": ["float", scalar]}
                events.append(op(operator, round(at, 3), each, **dtypes))
                at += each
    return str(write(path, document(events)))


def findings(folder, control, test):
    sides = [trained(folder / name, *side) for name, side in (("a.json", control), ("b.json", test))]
    return compare_sets(*load_sets(sides)).findings


@pytest.mark.parametrize(
    ("operators", "kind"),
    [(FOREACH, "foreach operators"), (FUSED, "fused operators"), (COMPILED, "compiled code")],
)
def test_an_optimizer_of_another_kind_is_named_and_holds_its_operators(tmp_path, operators, kind):
    first, *_ = found = findings(tmp_path, (PER_TENSOR, 300), (operators, 120))
    assert first.code == "optimizer-change"
    title = f"the optimizer runs {kind} instead of operators per tensor: 60 → {sum(operators.values())} operators"
    assert first.title.startswith(title)
    assert first.delta_us == pytest.approx(-180)
    assert "count-change" not in {f.code for f in found}
    assert {part.code for part in first.parts} <= {"count-change", "fused"}


def test_another_optimizer_is_named(tmp_path):
    paths = [
        trained(tmp_path / "a.json", PER_TENSOR, 300),
        trained(tmp_path / "b.json", {"aten::add_": 12}, 60, name="SGD"),
    ]
    first = compare_sets(*load_sets(paths)).findings[0]
    assert first.title.startswith("the optimizer is SGD instead of Adam: 60 → 12 operators, 300.0 → 60.0 µs")


def test_the_sides_can_be_swapped(tmp_path):
    first = findings(tmp_path, (FUSED, 100), (FOREACH, 300))[0]
    assert first.title.startswith("the optimizer runs foreach operators instead of fused operators: 2 → 5 operators")
    assert first.delta_us == pytest.approx(200)


def test_the_same_optimizer_of_another_speed_is_no_change_of_it(tmp_path):
    assert "optimizer-change" not in {f.code for f in findings(tmp_path, (FOREACH, 100), (FOREACH, 200))}


def test_a_single_foreach_helper_does_not_make_an_optimizer_foreach(tmp_path):
    helped = {**PER_TENSOR, "aten::_foreach_copy_": 1}
    assert "optimizer-change" not in {f.code for f in findings(tmp_path, (PER_TENSOR, 300), (helped, 350))}


def test_scalars_of_another_dtype_are_no_change_of_dtype(tmp_path):
    found = findings(tmp_path, (PER_TENSOR, 300, "long int"), (PER_TENSOR, 200, "float"))
    assert "dtype-change" not in {f.code for f in found}
