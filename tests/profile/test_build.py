"""Kernels joined to launch, op and step; the order of events in a file does not matter."""

import traces
from build_trace import BACKWARD, call, document, kernel, memcpy, op, step, write
from hypothesis import given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events

from tracediff.aggregate.averages import call_tree, kernel_average, op_average, step_average, weighted_files
from tracediff.engine import load_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.placement.calls import OP


def kernels_of(folder, events):
    profile = profile_file(TraceFile(str(write(folder / "trace.json", document(events)))))
    table, calls = profile.kernels, profile.calls
    rows = []
    for step_, node, name, count, ns in zip(
        *(c.tolist() for c in (table.step, table.node, table.name, table.count, table.total_ns)), strict=True
    ):
        op = node if node >= 0 and calls.kind[node] == OP else -1
        shapes = profile.texts[calls.shapes[op]] if op >= 0 and calls.shapes[op] >= 0 else None
        rows.append((step_, profile.names[name], profile.names[calls.name[op]] if op >= 0 else None, shapes, count, ns))
    return rows


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch_that_is_no_wrapper(tmp_path):
    shapes = {"Input Dims": [[2, 3], [3, 4]]}
    events = [
        step(1, 0, 100),
        op("aten::linear", 0, 50),
        op("aten::addmm", 5, 40, **shapes),
        call("cudaLaunchKernel", 10, 2, correlation=1),
        op("CompiledFunctionBackward", 60, 20, tid=BACKWARD),
        call("cudaLaunchKernel", 62, 2, correlation=2, tid=BACKWARD),
        call("cudaLaunchKernel", 90, 2, correlation=3),
        kernel("gemm", 20, 10, correlation=1),
        kernel("wrapped", 70, 10, correlation=2),
        kernel("bare", 95, 1, correlation=3),
    ]
    assert sorted(kernels_of(tmp_path, events), reverse=True) == [
        (0, "wrapped", None, None, 1, 10_000),
        (0, "gemm", "aten::addmm", "[[2, 3], [3, 4]]", 1, 10_000),
        (0, "bare", None, None, 1, 1_000),
    ]


def test_one_graph_launch_stands_for_many_kernels(tmp_path):
    events = [
        step(1, 0, 10),
        call("cudaGraphLaunch", 1, 2, correlation=5),
        *(kernel(f"k{i}", 10 + i, 1, correlation=5) for i in range(3)),
    ]
    assert [(k[0], k[1]) for k in kernels_of(tmp_path, events)] == [(0, "k0"), (0, "k1"), (0, "k2")]


def test_events_before_the_capture_and_outside_steps_stand_apart(tmp_path):
    events = [
        step(1, 10, 10),
        op("aten::mm", 11, 1),
        call("cudaLaunchKernel", 2, 1, correlation=1),
        kernel("outside", 12, 1, correlation=1),
        memcpy("Memcpy HtoD (Pinned -> Device)", 1, 2, correlation=9),
    ]
    assert sorted((k[0], k[1]) for k in kernels_of(tmp_path, events)) == [
        (-2, "Memcpy HtoD (Pinned -> Device)"),
        (-1, "outside"),
    ]


def test_stream_zero_counts_like_any_other(tmp_path):
    events = [
        step(1, 0, 10),
        call("hipLaunchKernel", 1, 1, correlation=1),
        kernel("gemm", 3, 4, correlation=1, stream=0),
    ]
    assert [k[0] for k in kernels_of(tmp_path, events)] == [0]


def averages(path):
    (traces_,) = load_sets([str(path)])
    kernels = kernel_average(traces_)
    tree = call_tree(traces_, True, weighted_files(traces_)[0])
    ops = op_average(traces_).rows
    return step_average(traces_), tree_text(tree), kernels.busy, kernels.spilled, kernels.outside, ops


def tree_text(tree):
    """Calls and work of a tree as text, whatever order they were numbered in."""

    def path(node):
        call = tree.calls[node] if node >= 0 else None
        return (*path(call.parent), (call.kind, call.name, call.shapes, call.ordinal)) if call else ()

    calls = sorted(map(repr, ((path(i), c.count, c.total, c.self_ns) for i, c in enumerate(tree.calls))))
    return calls, sorted(map(repr, ((path(w.node), w.category, w.name, w.ordinal, w.count, w.ns) for w in tree.work)))


@examples(40)
@given(trace_events(), st.randoms())
def test_the_order_of_events_does_not_matter(tmp_path, events, random):
    before = averages(write(tmp_path / "trace.json", document(events), layout="compact"))
    random.shuffle(events)
    assert averages(write(tmp_path / "trace.json", document(events), layout="compact")) == before


@traces.needs_traces
def test_busy_time_is_the_union_of_the_used_steps():
    """Over all steps it is TRUTH.tsv's busy time, which the events of hta_sampled overlap to reach."""
    truth = traces.truth()["hta_sampled/rank-0.json.gz"]
    profile = profile_file(TraceFile(str(traces.FOLDER / "hta_sampled/rank-0.json.gz")))
    assert f"{profile.busy_ns.sum() / 1e6:.3f}" == truth["gpu_busy_ms"]
    assert profile.busy_ns.sum() < profile.kernels.total_ns.sum()
