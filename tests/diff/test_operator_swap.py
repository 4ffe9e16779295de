"""Operators that run in the place of others."""

import pytest
from build_trace import call, document, kernel, op, step, write

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


def model(folder, name, runs, activation, us, on_gpu=False):
    """Runs of two steps with a product and an ``activation`` of ``us`` µs, on the host or in a kernel, one after the
    other; a run is 1 % longer than the one before.
    """
    for run in range(runs):
        events, at = [], 0.0
        for number in (0, 1):
            start = at
            for k, (operator, length) in enumerate((("aten::mm", 300), (activation, us), ("aten::sum", 40))):
                length *= 1 + run / 100
                if on_gpu:
                    args = {"correlation": 10 * number + k + 1}
                    events += [op(operator, start + 9 * k, 8), call("cudaLaunchKernel", start + 9 * k + 1, 4, **args)]
                    events.append(kernel(f"{operator[6:]}_kernel", at + 12, length, **args))
                else:
                    events.append(op(operator, at, length))
                at += length
            events.append(step(number, start, at - start))
        write(folder / name / f"run{run + 1}" / "rank0.json", document(events))
    return str(folder / name)


def findings(*sides):
    return compare_sets(*load_sets(sides)).findings


@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "GPU"])
@pytest.mark.parametrize("runs", [1, 3])
def test_an_activation_in_the_place_of_another(tmp_path, runs, on_gpu):
    control = model(tmp_path, "a", runs, "aten::gelu", 200, on_gpu)
    test = model(tmp_path, "b", runs, "aten::relu", 50, on_gpu)
    first = findings(control, test)[0]
    assert first.code == "operator-swap"
    assert first.title.startswith("aten::relu instead of aten::gelu: ")
    kernels = ": gelu_kernel → relu_kernel" if on_gpu else ""
    assert [e.name for e in first.evidence] == [f"aten::gelu → aten::relu{kernels}"]
    back = findings(test, control)[0]
    assert back.title.startswith("aten::gelu instead of aten::relu: ")
    assert back.delta_us == pytest.approx(-first.delta_us)


def test_the_same_operator_of_another_speed_is_none(tmp_path):
    control = model(tmp_path, "a", 1, "aten::gelu", 200)
    found = findings(control, model(tmp_path, "b", 1, "aten::gelu", 50))
    assert "operator-swap" not in {f.code for f in found}


def test_equal_times_are_no_finding(tmp_path):
    control = model(tmp_path, "a", 1, "aten::gelu", 200)
    found = findings(control, model(tmp_path, "b", 1, "aten::relu", 200))
    assert "operator-swap" not in {f.code for f in found}
