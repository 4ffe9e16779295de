"""The flame graph: kernels below their calls, own amounts that add up whatever is left out, nothing lost."""

from build_trace import call, document, event, kernel, op, step, write
from hypothesis import given, strategies as st
from properties import examples
from random_traces import trace_events
from traces import needs_traces, trace

import tracediff
from tracediff.aggregate.call_tree import Call, CallTree, Occurrence, Work
from tracediff.diff.call_trees import CALL_UNKNOWN, Frame, flame_graph, largest, line_graph, of_one, pruned
from tracediff.diff.views import summed
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.structs import total


def compared(folder, control, test):
    paths = [write(folder / name / "t.json", document(e)) for name, e in (("control", control), ("test", test))]
    return compare_sets(*load_sets([str(path) for path in paths]), force=True)


def graph(comparison):
    return flame_graph(comparison.trees, comparison.pairing)


def launched(kernel_name, start, number, op_name="aten::mm", length=10, **args):
    return [
        op(op_name, start, 4, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=number),
        kernel(kernel_name, start + 10, length, correlation=number),
    ]


def module(name, start, length):
    return event("python_function", f"nn.Module: {name}", start, length)


def quantities(frames):
    """The sums of all quantities."""
    return [total(pairs) for pairs in zip(*(frame.quantities for frame in frames), strict=True)]


def test_kernels_are_below_their_calls_and_a_replaced_one_is_one_box(tmp_path):
    control = [step(1, 0, 100), *launched("gemm_a", 0, 1), *launched("same", 30, 2, "aten::add", 5)]
    test = [step(1, 0, 100), *launched("gemm_b", 0, 1, length=30), *launched("same", 50, 2, "aten::add", 5)]
    frames = graph(compared(tmp_path, control, test))
    kernels = {f.name: (frames[f.parent].name, f.work, f.count) for f in frames if f.kind == "kernel"}
    scale = frames[-1].count[0]
    assert kernels == {
        "gemm_a → gemm_b": ("aten::mm", (10_000 * scale, 30_000 * scale), (scale, scale)),
        "same": ("aten::add", (5_000 * scale, 5_000 * scale), (scale, scale)),
    }
    assert largest(frames, lambda pair: pair[1] - pair[0]) == ("aten::mm", (10_000 * scale, 30_000 * scale))


def by_line(comparison):
    items = [[item for group in comparison.work.groups for item in group.items[side]] for side in (0, 1)]
    return line_graph(comparison.trees, items)


def test_work_is_below_the_lines_that_it_runs_for_as_their_view_sums_it(tmp_path):
    def events(line, length):
        own = launched("gemm", 0, 1, length=length, stack=f"model.py({line}): forward")
        return [step(1, 0, 100), *own, *launched("gemm", 30, 2), op("aten::view", 60, 3, stack="model.py(20): end")]

    comparison = compared(tmp_path, events(7, 10), events(8, 30))
    frames, scale = by_line(comparison), comparison.scale
    assert [(f.kind, f.name, frames[f.parent].name) for f in frames[1:]] == [
        ("line", "model.py(8): forward", "all work"), ("op", "aten::mm", "model.py(8): forward"),
        ("line", "(unknown)", "all work"), ("op", "aten::mm", "(unknown)"),
        ("line", "model.py(20): end", "all work"), ("op", "aten::view", "model.py(20): end"),
        ("kernel", "gemm", "aten::mm"), ("kernel", "gemm", "aten::mm"),
    ]  # fmt: skip
    sums = {line.name: line.time for line in summed(comparison.work, "line")}
    work = {frames[frames[f.parent].parent].name: f.work for f in frames if f.kind == "kernel"}
    assert (
        work == sums == {"model.py(8): forward": (10_000 * scale, 30_000 * scale), "(unknown)": (10_000 * scale,) * 2}
    )
    assert quantities(frames) == quantities(graph(comparison))


def test_instances_of_a_module_have_one_name_and_numbers_of_their_own(tmp_path):
    events = [step(1, 0, 200), module("Net_0", 0, 190)]
    for k in range(3):
        events += [module(f"Linear_{k}", 50 * k, 40), *launched("gemm", 50 * k + 1, k + 1)]
    frames = graph(compared(tmp_path, events, events))
    modules = [(f.name, f.instance) for f in frames if f.kind == "module"]
    assert modules == [("Net", None), ("Linear", 0), ("Linear", 1), ("Linear", 2)]
    assert largest(frames, lambda pair: pair[0])[0] == "aten::mm"


def test_work_of_an_unknown_call_is_beside_the_phases():
    lost = Work(0, Occurrence(0, 0, "7"), -1, "kernel", "lost", None, 0, count=1, ns=7)
    frames = of_one(CallTree(1, [Call(-1, "phase", "forward", None, 0, label="forward")], [lost]))
    assert frames[2:] == [
        Frame(parent=0, kind="phase", name=CALL_UNKNOWN),
        Frame(parent=2, kind="kernel", name="lost", work=(7, 0), count=(1, 0)),
    ]


def test_without_a_gpu_an_operator_has_its_self_time(tmp_path):
    events = [step(1, 0, 100), op("aten::outer", 0, 30), op("aten::inner", 5, 10)]
    frames = graph(compared(tmp_path, events, events))
    own = {f.name: f.work[0] // max(f.count[0], 1) for f in frames if f.kind == "op"}
    assert own == {"aten::outer": 20_000, "aten::inner": 10_000}
    assert all(f.work == f.host for f in frames)


@examples(60)
@given(
    control=trace_events(),
    test=trace_events(),
    least=st.sampled_from([0.0, 0.05, 0.4, 2.0]),
    most=st.integers(1, 40),
)
def test_all_work_is_in_the_graph_and_stays_when_frames_are_left_out(tmp_path_factory, control, test, least, most):
    comparison = compared(tmp_path_factory.mktemp("sides"), control, test)
    frames = graph(comparison)
    assert frames[0].parent == -1
    assert all(frame.parent < k for k, frame in enumerate(frames))
    for which, tree in enumerate(comparison.trees):
        assert sum(f.work[which] for f in frames) == sum(w.ns for w in tree.work)
        assert sum(f.calls[which] for f in frames) == sum(c.count for c in tree.calls if c.kind == "op")
        assert sum(f.host[which] for f in frames) == sum(c.self_ns for c in tree.calls if c.kind == "op")
    assert quantities(by_line(comparison)) == quantities(frames)
    kept, _ = pruned(frames, least, most)
    assert quantities(kept) == quantities(frames)
    assert all(frame.parent < k for k, frame in enumerate(kept))
    assert len(kept) <= max(2 * most, 2)
    assert len([f for f in kept if f.kind != "rest"]) + sum(f.left_out for f in kept) <= len(frames)
    one = of_one(comparison.trees[0])
    assert quantities(one) == [(control, 0) for control, _ in quantities(frames)]


@needs_traces
def test_real_traces_close_with_the_kernel_account():
    comparison = tracediff.compare(trace("timesformer_h100"), trace("timesformer_mi300")).comparison
    frames = graph(comparison)
    kept, least = pruned(frames)
    assert total(f.work for f in kept) == comparison.work.time
    assert least == 0.001
    replaced = [f for f in kept if " → " in f.name]
    assert sum(f.work[0] for f in replaced) > 0.9 * comparison.work.time.control
