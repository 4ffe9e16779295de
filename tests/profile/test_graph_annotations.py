"""Kernels of graph replays are placed by the annotations that torch.cuda.graph_annotations recorded of their graph."""

from __future__ import annotations

from collections import Counter

import pytest
from build_trace import annotation, call, document, kernel, memcpy, op, step, write
from hypothesis import given, strategies as st

import tracediff
from tracediff import bounds
from tracediff.profile.placement.captures import PART

STEPS = 2


def with_arguments(event, arguments):
    event["args"] |= arguments
    return event


def replayed(*arguments):
    """Two steps that each replay a graph of one kernel for each of ``arguments``, and launch one kernel besides."""
    events = []
    for n in range(STEPS):
        t = 10_000 * n
        events += [step(n, t, 9000), annotation("decode", t + 10, 8000), call("cudaGraphLaunch", t + 20, 50, 2 * n + 1)]
        for i, args in enumerate(arguments):
            node = {"graph id": 5, "graph node id": 100 + i}
            events.append(with_arguments(kernel(f"k{i}", t + 100 + 10 * i, 5, 2 * n + 1), node | args))
        events += [op("aten::mm", t + 500, 20), call("cudaLaunchKernel", t + 505, 5, 2 * n + 2)]
        events.append(with_arguments(kernel("alone", t + 600, 5, 2 * n + 2), {"name": "not of a graph"}))
    return events


def scopes(tmp_path, events):
    """(kernel → the names of the scopes that it is in, from the outermost on, and its count; health notes)."""
    (profile,) = tracediff.engine.load_sets([str(write(tmp_path / "trace.json", document(events)))])[0].profiles
    found = {}
    work, calls = profile.kernels, profile.calls
    for node, name, count in zip(work.node.tolist(), work.name.tolist(), work.count.tolist(), strict=True):
        path = []
        while node >= 0:
            if calls.kind[node]:
                path.insert(0, profile.names[calls.name[node]])
            node = calls.parent[node]
        found.setdefault(profile.names[name], Counter())["/".join(path)] += count
    return found, {note.code: note.count for note in profile.notes}


@pytest.mark.parametrize("argument", ["str", "name", "annotation"])
def test_each_kernel_is_below_its_annotation(tmp_path, argument):
    """The spellings of torch 2.12, of later ones, and of the CUPTI monitor."""
    found, notes = scopes(tmp_path, replayed({argument: "attention"}, {argument: "mlp", "stream": "62"}, {}))
    assert found == {
        "k0": {"decode/attention": STEPS},
        "k1": {"decode/mlp": STEPS},
        "k2": {"decode": STEPS},
        "alone": {"decode/aten::mm": STEPS},  # an argument of a kernel that no graph launched is none of a graph
    }
    assert notes["graph-annotations"] == 2 * STEPS


def test_qualified_names_are_modules_and_backward_is_apart(tmp_path):
    name = {"module_fqn": "layers.3.attention.wq"}
    path = {"set": str(write(tmp_path / "a.json", document(replayed(name, name | {"autograd_phase": "backward"}))))}
    found, _ = scopes(tmp_path, replayed(name, name | {"autograd_phase": "backward"}))
    assert found["k0"] == {"decode/layers.3/attention/wq": STEPS}
    assert found["k1"] == {"decode/backward/layers.3/attention/wq": STEPS}
    merged = tracediff.compare(path["set"], path["set"]).by("module")
    assert "layers.*/attention/wq" in set(merged.index)


def test_lists_of_annotations_are_read(tmp_path):
    """The CUPTI monitor of torch 2.13 writes all annotations of a kernel as JSON."""
    listed = {"annotation": '[{"str": "outer"}, {"str": "inner", "stream": 61}]'}
    found, _ = scopes(tmp_path, replayed(listed, {"annotation": "[{"}))
    assert found["k0"] == {"decode/inner": STEPS}
    assert found["k1"] == {"decode/[{": STEPS}


def test_copies_and_nested_graphs_without_annotations_stay(tmp_path):
    events = replayed({"name": "fill"})
    copy = memcpy("Memcpy DtoD (Device -> Device)", 300, 5, 1)
    events.append(with_arguments(copy, {"graph node id": 200, "name": "cache"}))
    found, _ = scopes(tmp_path, events)
    assert found["Memcpy DtoD (Device -> Device)"] == {"decode/cache": 1}


def test_without_annotations_there_is_no_note(tmp_path):
    _, notes = scopes(tmp_path, replayed({}, {}))
    assert "graph-annotations" not in notes


@pytest.mark.torch
def test_what_torch_itself_adds_to_a_trace_is_read(tmp_path):
    tool = pytest.importorskip("torch.cuda._annotate_cuda_graph_trace", reason="torch 2.12 and 2.13 have this module")
    events = replayed({}, {}, {})
    trace = {"traceEvents": events}
    annotated = tool.annotate_trace(trace, {100: [{"str": "norm"}], 101: [{"name": "mlp", "stream": 61}, "inner"]})
    assert annotated == 2 * STEPS
    found, _ = scopes(tmp_path, trace["traceEvents"])
    assert found["k0"] == {"decode/norm": STEPS}
    assert found["k1"] == {"decode/mlp": STEPS}
    assert found["k2"] == {"decode": STEPS}


@given(st.text(alphabet="a.0 b", max_size=40))
def test_the_parts_of_a_qualified_name_hold_all_but_its_dots(name):
    parts = PART.findall(name)
    assert "".join(parts).replace(".", "") == name.replace(".", "")
    assert all(parts)


def test_a_name_that_is_too_deep_is_one_module(tmp_path):
    deep = ".".join("a" * 3 for _ in range(bounds.MODULES + 1))
    found, _ = scopes(tmp_path, replayed({"module_fqn": deep}))
    assert found["k0"] == {f"decode/{deep}": STEPS}
