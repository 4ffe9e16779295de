"""Kernels of graph replays get the operators of the graph's capture."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import numpy as np
import pytest
from build_trace import annotation, call, document, kernel, memcpy, op, step, write
from formats import FOLDER, needs_formats
from hypothesis import given, strategies as st
from traces import needs_traces, trace

import tracediff
from tracediff.aggregate.averages import call_tree, weighted_files
from tracediff.engine import LoadOptions, SetOptions, read_captures
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.placement.captures import ALIGNED, BY_NUMBER, EQUAL, align

CAPTURE = FOLDER / "graph_capture" / "vllm_mi300_capture_bs32.json.gz"


def load(path, *captures, **options):
    sets = (SetOptions(captures=tuple(map(str, captures))),)
    (found,) = tracediff.engine.load_sets([str(path)], LoadOptions(sets=sets, **options))
    return found


def path_of(profile, node):
    names = []
    while node >= 0:
        if profile.calls.kind[node]:
            names.append(profile.names[profile.calls.name[node]])
        node = profile.calls.parent[node]
    return names


def owners(profile):
    """(kernel, innermost operator or scope) → how many."""
    found = Counter()
    work = profile.kernels
    for node, name, count in zip(work.node.tolist(), work.name.tolist(), work.count.tolist(), strict=True):
        found[profile.names[name], next(iter(path_of(profile, node)), "")] += count
    return found


@needs_traces
@needs_formats
def test_every_kernel_of_a_real_replay_has_the_operator_of_its_capture():
    """The truth is another way to the operator: the id that a captured launch has in common with the operator."""
    with gzip.open(CAPTURE) as file:
        events = json.load(file)["traceEvents"]
    ran = {e["args"]["correlation"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")}
    operators = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    launches = [e for e in events if "kernel" in e.get("args", {}) and e["args"]["correlation"] not in ran]
    truth = Counter((e["args"]["kernel"], operators[e["args"]["External id"]]) for e in launches)
    (profile,) = load(trace("vllm_graph_mi300"), CAPTURE, step_marker="execute_.*").profiles
    found = owners(profile)
    assert truth.total() == 421
    assert truth - found == Counter()
    notes = {note.message: note.count for note in profile.notes if note.code == "graph-capture"}
    assert list(notes.values()) == [421]


@needs_traces
@needs_formats
def test_groups_by_operator_reach_into_the_graph():
    """Counts and times of a plain script: launches below the operators that hold them in time, kernels in order."""
    traces = load(trace("vllm_graph_mi300"), CAPTURE)
    found = Counter()
    count = Counter()
    tree = call_tree(traces, True, weighted_files(traces)[0])
    for work in tree.work:
        found[tree.op(work.node)] += work.ns / tree.denominator
        count[tree.op(work.node)] += work.count / tree.denominator
    expected = {"vllm::moe_forward": (72, 7171.5), "aten::addmm": (72, 953.9), "SortTokens": (72, 375.1),
                "vllm::unified_attention_with_output": (36, 724.4), "TopK": (24, 119.8)}  # fmt: skip
    assert {name: (count[name], round(found[name] / 1000, 1)) for name in expected} == expected


@needs_traces
@needs_formats
def test_without_a_capture_nothing_else_changes():
    with_capture = load(trace("vllm_graph_mi300"), CAPTURE, step_marker="execute_.*")
    without = load(trace("vllm_graph_mi300"), step_marker="execute_.*")
    a, b = with_capture.profiles[0], without.profiles[0]
    assert np.array_equal(a.state_ns, b.state_ns)
    assert a.kernels.total_ns.sum() == b.kernels.total_ns.sum()
    assert np.array_equal(a.ops.self_ns, b.ops.self_ns)


LAUNCH = "hipModuleLaunchKernel"


def captured(names, named=True, first=1000):
    """A capture trace: an operator below a module for each kernel, and one that ran before the capture began."""
    events = [
        call("hipMalloc", 1, 1),
        op("aten::zeros", 2, 3),
        call(LAUNCH, 3, 1, 1, kernel="fill"),
        kernel("fill", 6, 1, 1),
        call("hipStreamBeginCapture", 10, 1),
    ]
    for i, name in enumerate(names):
        start = first + 10 * i
        args = {"kernel": name, "grid": [i % 2 + 1, 1, 1], "block": [64, 1, 1]} if named else {}
        events.append(op(f"mine::{name}", start, 8, **{"Input Dims": [[i]], "External id": i}))
        launch = "hipMemcpyAsync" if name == "copy" else LAUNCH
        events.append(call(launch, start + 2, 2, 100 + i, **args))
    return events


def replayed(names, shapes=True):
    """A trace of two steps that each replay the graph."""
    events = []
    for n in range(2):
        t = 10_000 * n
        events += [step(n, t, 9000), annotation("decode", t + 10, 8000), call("hipGraphLaunch", t + 20, 50, n + 1)]
        for i, name in enumerate(names):
            args = {"grid": [i % 2 + 1, 1, 1], "block": [64, 1, 1]} if shapes else {}
            if name == "copy":
                events.append(memcpy("Memcpy DtoD (Device -> Device)", t + 100 + 10 * i, 5, n + 1))
            else:
                events.append(kernel(name, t + 100 + 10 * i, 5, n + 1, **args))
    return events


def files(tmp_path, replay, *captures):
    path = write(tmp_path / "trace.json", document(replay))
    return path, [write(tmp_path / f"capture{i}.json", document(c)) for i, c in enumerate(captures)]


NAMES = ["gemm", "norm", "gemm", "copy", "gemm", "act"]


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_each_kernel_is_below_the_operator_that_launched_it(tmp_path, shapes, named):
    path, captures = files(tmp_path, replayed(NAMES, shapes), captured(NAMES, named))
    (profile,) = load(path, *captures).profiles
    assert {owner for _, owner in owners(profile)} == {f"mine::{name}" for name in NAMES}
    work = profile.kernels
    paths = {tuple(path_of(profile, node)) for node in work.node.tolist()}
    assert len(paths) == 4  # of gemm, norm, copy and act, below the annotation around the launch
    assert all(path[-1] == "decode" for path in paths)
    assert len(set(work.node.tolist())) == len(NAMES)  # each with its own shapes, the same in both steps
    (note,) = [note for note in profile.notes if note.code == "graph-capture"]
    assert note.message.endswith(EQUAL if named and shapes else BY_NUMBER if not named else EQUAL)
    assert note.count == 2 * len(NAMES)


def test_the_capture_that_fits_is_used(tmp_path):
    other = captured([*NAMES, "gemm"])
    path, captures = files(tmp_path, replayed(NAMES), other, captured(NAMES))
    (profile,) = load(path, *captures).profiles
    assert [n.message for n in profile.notes if n.code == "graph-capture"] == [f"kernels of graph replays {EQUAL}"]


def cautions(control, test):
    return {r.code for r in compare_sets(control, test).comparability.reasons if r.level == "caution"}


def test_a_capture_of_another_graph_and_one_of_one_side_are_cautions(tmp_path):
    path, (own, other) = files(tmp_path, replayed(NAMES), captured(NAMES), captured(["other", "kernels"]))
    with_own, with_other, bare = load(path, own), load(path, other), load(path)
    assert "graph-capture" in cautions(with_own, bare)
    assert "other-capture" in cautions(with_other, with_other)
    assert not {"graph-capture", "other-capture"} & (cautions(with_own, with_own) | cautions(bare, bare))


def test_captures_beside_a_trace_are_found_and_are_no_traces(tmp_path):
    write(tmp_path / "rank0.json", document(replayed(NAMES)))
    (tmp_path / "capture_traces").mkdir()
    write(tmp_path / "capture_traces" / "capture_rank0.json", document(captured(NAMES)))
    write(tmp_path / "capture_traces" / "capture_rank1.json", document(captured(["other"])))
    for where in (tmp_path, tmp_path / "rank0.json"):
        (profile,) = load(where).profiles
        assert ("gemm", "mine::gemm") in owners(profile)


def test_a_trace_without_a_captured_launch_is_refused(tmp_path):
    path, captures = files(tmp_path, replayed(NAMES), [op("aten::mm", 0, 5)])
    with pytest.raises(TracediffError, match="no launch that a graph captured"):
        load(path, *captures)


def test_what_ran_before_the_capture_is_no_part_of_it(tmp_path):
    (graph,) = read_captures(TraceFile(str(write(tmp_path / "c.json", document(captured(NAMES))))))
    assert [name for (name, _), _ in graph] == list(NAMES)


def graph_of(names):
    return tuple(((name, ""), ((3, f"op{i}", "", "", "", 0),)) for i, name in enumerate(names))


KERNELS = st.lists(st.sampled_from("abc"), max_size=12)


@given(names=KERNELS)
def test_a_replay_of_the_same_kernels_is_the_capture(names):
    places, how = align([(name, "") for name in names], graph_of(names))
    assert places.tolist() == list(range(len(names)))
    assert how == EQUAL


@given(replay=KERNELS, captured_names=KERNELS)
def test_no_kernel_gets_another_s_launch_and_no_launch_two_kernels(replay, captured_names):
    places, _ = align([(name, "") for name in replay], graph_of(captured_names))
    taken = [place for place in places.tolist() if place >= 0]
    assert len(set(taken)) == len(taken)
    assert all(captured_names[p] == replay[i] for i, p in enumerate(places.tolist()) if p >= 0)


@given(names=KERNELS, data=st.data())
def test_streams_side_by_side_lose_no_kernel(names, data):
    """A replay on two streams interleaves the launches of the capture in another way."""
    first = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    halves = [
        [f"{name}{int(half)}" for name, f in zip(names, first, strict=True) if f == half] for half in (True, False)
    ]
    both = [f"{name}{int(f)}" for name, f in zip(names, first, strict=True)]
    places, how = align([(name, "") for half in halves for name in half], graph_of(both))
    assert (places >= 0).all()
    assert how in (EQUAL, ALIGNED)
