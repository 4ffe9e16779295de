"""What the host does while no GPU works, on traces whose answer is known by hand, and against the states."""

import numpy as np
from build_trace import BACKWARD, annotation, call, event, kernel, op, step
from hypothesis import given
from properties import examples
from random_traces import trace_events
from table_rows import first_step, measured, profile_with

from tracediff.profile.events.step_states import GPU_STATES


def python(name, ts, dur):
    return event("python_function", name, ts, dur)


def test_the_innermost_operator_then_python_then_annotation(tmp_path):
    events = [
        step(1, 0, 100),
        annotation("phase one", 10, 60),
        python("train.py(3): main", 20, 30),
        op("aten::linear", 25, 10),
        op("aten::addmm", 28, 4),
        op("AddmmBackward0", 60, 5, tid=BACKWARD),
        call("cudaLaunchKernel", 80, 5, correlation=1),
        kernel("gemm", 90, 10, correlation=1),
    ]
    found = first_step(measured(tmp_path, events, "idle"), "time")
    assert found == {
        ("python", "", "nothing recorded", ""): 10_000 + 10_000,
        ("python", "phase one", "annotation", ""): 10_000 + 10_000 + 5_000,
        ("python", "train.py(3): main", "Python", ""): 5_000 + 15_000,
        ("op", "aten::linear", "operator", "train.py(3): main"): 6_000,
        ("op", "aten::addmm", "operator", "train.py(3): main"): 4_000,
        ("op", "AddmmBackward0", "operator", ""): 5_000,
        ("launching", "cudaLaunchKernel", "runtime call", ""): 5_000,
    }


def test_the_caller_is_the_innermost_function_of_a_file_outside_of_torch(tmp_path):
    events = [
        step(1, 0, 100),
        python("/home/me/train.py(3): main", 0, 90),
        python("/usr/lib/python3/dist-packages/torch/nn/modules/linear.py(124): forward", 10, 40),
        python("<built-in function linear>", 12, 36),
        op("aten::linear", 20, 10),
        op("AddmmBackward0", 60, 5, tid=BACKWARD),
    ]
    found = first_step(measured(tmp_path, events, "idle"), "time")
    callers = {host: caller for _, host, _, caller in found}
    assert callers == {
        "": "",
        "train.py(3): main": "",
        "linear.py(124): forward": "train.py(3): main",
        "<built-in function linear>": "train.py(3): main",
        "aten::linear": "train.py(3): main",
        "AddmmBackward0": "",
    }


def test_without_a_gpu_every_state_is_divided(tmp_path):
    events = [step(1, 0, 30), op("aten::mm", 5, 10), op("aten::relu", 15, 5)]
    found = first_step(measured(tmp_path, events, "idle"), "time")
    assert found == {
        ("python", "", "nothing recorded", ""): 15_000,
        ("op:gemm", "aten::mm", "operator", ""): 10_000,
        ("op:pointwise", "aten::relu", "operator", ""): 5_000,
    }


@examples(60)
@given(trace_events())
def test_the_rows_of_a_state_add_up_to_it(tmp_path, events):
    profile = profile_with(tmp_path, events, "idle")
    table = profile.tables["idle"]
    for position, state in enumerate(profile.state_names):
        rows = (
            np.array([key[0] == state for key in table.keys], bool)[table.key] if len(table.key) else np.zeros(0, bool)
        )
        sums = np.zeros(len(profile.step_numbers), np.int64)
        np.add.at(sums, table.step[rows], table.values[rows, 0])
        expected = 0 * sums if state in GPU_STATES else profile.state_ns[:, position]
        assert sums.tolist() == expected.tolist()
