"""The line of code that an operator runs for: from its stack, from the Python functions around it, and for a backward
operator from its forward operator.
"""

import pytest
from build_trace import BACKWARD, call, document, kernel, op, python, step, write

from tracediff.diff.views import UNKNOWN, summed
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.ingest.model.names import innermost_line

GENERATED = "cgbpecykcjt27nyt25ziv6zwgmr2jn4ux3sm4kfjshul4wisyorj.py"
FX = """  File "/home/u/train.py", line 41, in forward
    x = torch.relu(self.a(x) + x)
  File "/opt/site-packages/torch/nn/modules/module.py", line 1775, in _wrapped_call_impl
    return self._call_impl(*args)
"""


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        ("/x/site-packages/torch/nn/functional.py(9): relu;/x/model.py(41): forward;train.py(3): <module>",
         "model.py(41): forward"),
        ("train.py(3): <module>;/x/model.py(39): forward;torch/nn/functional.py(9): softmax;", "model.py(39): forward"),
        ("C:\\x\\model.py(41): forward;train.py(3): <module>", "model.py(41): forward"),
        (FX, "train.py(41): forward"),
        ("torch/nn/functional.py(9): relu", None),
        (f"/any/gb/{GENERATED}(259): call;/x/model.py(3): forward", "model.py(3): forward"),
        (f"/any/ab/{GENERATED}(259): call", f"{GENERATED}(259): call"),
        ("", None),
        (f"a.py(1{'0' * 5000}): f", None),
        ("no frame; at all\n", None),
        ("((((;;;.py(: x.py(12)", None),
    ],
)  # fmt: skip
def test_the_innermost_line_outside_of_torch(stack, line):
    assert innermost_line(stack) == line


def launched(name, start, number, tid=100, **args):
    return [op(name, start, 8, tid=tid, **args), call("cudaLaunchKernel", start + 1, 2, number, tid=tid),
            kernel(f"{name}_kernel", 100 + 10 * number, 5, number)]  # fmt: skip


def lines(folder, events):
    path = write(folder / "trace.json", document(events))
    comparison = compare_sets(*load_sets([str(path), str(path)]))
    found = {line.name: line.count.control for line in summed(comparison.work, "line")}
    assert sum(line.time.control for line in summed(comparison.work, "line")) == comparison.gpu_time.time.control
    return {name: count // comparison.scale for name, count in found.items()}


def test_work_is_of_the_line_of_its_operator_and_backward_work_of_the_forward_one(tmp_path):
    events = [
        step(1, 0, 90),
        python("/home/u/train.py(12): forward", 0, 20, 1),
        python("/x/site-packages/torch/nn/functional.py(5): linear", 1, 18, 2, parent=1),
        *launched("aten::addmm", 2, 1, **{"Sequence number": 7}),
        *launched("aten::relu", 30, 2, **{"Call stack": "/x/model.py(41): forward;train.py(3): <module>"}),
        *launched("triton_poi_fused_add_0", 40, 3, stack=FX),
        op("autograd::engine::evaluate_function: AddmmBackward0", 50, 12, tid=BACKWARD, **{"Sequence number": 7}),
        *launched("aten::mm", 52, 4, tid=BACKWARD),
        *launched("aten::add", 70, 5),
    ]
    assert lines(tmp_path, events) == {
        "train.py(12): forward": 2,
        "model.py(41): forward": 1,
        "train.py(41): forward": 1,
        UNKNOWN: 1,
    }


def test_on_a_host_backward_work_is_of_no_line_that_calls_backward(tmp_path):
    """On a CPU, backward() works in the thread of its caller; a backward function of the program has its own line."""
    node = "autograd::engine::evaluate_function: {}"
    events = [
        step(1, 0, 90),
        python("/home/u/train.py(3): step", 0, 88, 1),
        python("/home/u/model.py(12): forward", 1, 20, 2, parent=1),
        *launched("aten::addmm", 2, 1, **{"Sequence number": 7}),
        *launched("aten::relu", 12, 2, **{"Sequence number": 8}),
        op(node.format("AddmmBackward0"), 40, 12, **{"Sequence number": 7}),
        *launched("aten::mm", 42, 3),
        op(node.format("OwnBackward"), 60, 20, **{"Sequence number": 8}),
        python("/home/u/model.py(30): backward", 61, 18, 3, parent=1),
        *launched("aten::sub", 62, 4),
    ]
    assert lines(tmp_path, events) == {"model.py(12): forward": 3, "model.py(30): backward": 1}


def test_a_line_of_the_explanation_names_its_line_of_code(tmp_path):
    def side(took):
        events = [step(1, 0, 30), python("/home/u/train.py(12): forward", 0, 25, 1), *launched("aten::mm", 2, 1)]
        return [*events[:-1], kernel("aten::mm_kernel", 40, took, 1)]

    paths = [write(tmp_path / f"{took}.json", document(side(took))) for took in (100, 300)]
    (cause,) = compare_sets(*load_sets([str(path) for path in paths])).explanation.causes
    assert "in train.py(12): forward" in [reason.text for reason in cause.reasons if reason.code == "line"]
