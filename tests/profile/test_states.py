"""The step account on traces whose answer is known by hand (µs in the events, ns in the account)."""

import json

import profile_reference
import pytest
from build_trace import BACKWARD, annotation, call, document, kernel, memcpy, op, step, write
from hypothesis import given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events

import tracediff
from tracediff.ingest.files.source import TraceFile


def profile_of(folder, events, **meta):
    return profile_file(TraceFile(str(write(folder / "trace.json", document(events, **meta)))))


def states_of(profile, position=0):
    return {name: ns for name, ns in zip(profile.state_names, profile.state_ns[position].tolist(), strict=True) if ns}


def test_each_state_holds_where_nothing_before_it_does(tmp_path):
    events = [
        step(1, 0, 100),
        annotation("enumerate(DataLoader)#next", 0, 10),
        op("aten::item", 10, 30),
        call("cudaLaunchKernel", 20, 5, correlation=1),
        kernel("gemm", 30, 20, correlation=1),
        kernel("ncclAllReduce", 45, 15, correlation=1),
        memcpy("Memcpy DtoH (Device -> Pinned)", 60, 5, correlation=1),
        call("cudaStreamSynchronize", 60, 20),
        op("aten::add", 85, 5),
    ]
    assert states_of(profile_of(tmp_path, events)) == {
        "data_loading": 10_000,
        "op": 10_000 + 5_000,
        "launching": 5_000,
        "gpu_compute": 20_000,
        "gpu_comm": 10_000,
        "gpu_copy": 5_000,
        "gpu_queued": 5_000,  # 25–30; the later two, also launched by 25, wait under the first kernel
        "synchronising": 15_000,
        "python": 5_000 + 10_000,
    }


def test_a_host_that_runs_ahead_pays_with_the_period_not_with_its_own_step(tmp_path):
    events = []
    for n in range(4):
        launch = 10 * n + 1
        events += [
            step(n, 10 * n, 10),
            call("cudaLaunchKernel", launch, 1, correlation=n + 1),
            kernel("gemm", 5 + 50 * n, 50, correlation=n + 1),
        ]
    profile = profile_of(tmp_path, events)
    assert profile.host_ns.tolist() == [10_000] * 4
    assert profile.periods.tolist() == [55_000, 50_000, 50_000, 50_000]
    assert states_of(profile, 2) == {"gpu_compute": 50_000}


def test_a_later_step_that_ends_earlier_has_a_period_of_zero(tmp_path):
    events = [
        step(1, 0, 10),
        call("cudaLaunchKernel", 1, 1, correlation=1),
        kernel("gemm", 5, 100, correlation=1),
        step(2, 10, 10),
        op("aten::add", 11, 2),
    ]
    assert profile_of(tmp_path, events).periods.tolist() == [105_000, 0]


def test_only_the_last_step_is_left_out_when_empty(tmp_path):
    events = [step(1, 0, 10), step(2, 10, 10), op("aten::add", 11, 2), step(3, 20, 10)]
    profile = profile_of(tmp_path, events)
    assert profile.step_numbers.tolist() == [1, 2]
    assert [n.code for n in profile.notes] == ["empty-step"]


def test_the_earliest_of_equal_steps_counts_and_a_gpu_side_step_does_not(tmp_path):
    gpu_side = annotation("ProfilerStep#7", 2, 90, tid=7) | {"cat": "gpu_user_annotation", "pid": 0}
    events = [gpu_side, step(7, 5, 10), step(7, 4, 12), op("aten::add", 6, 1)]
    profile = profile_of(tmp_path, events)
    assert profile.step_numbers.tolist() == [7]
    assert profile.completions.tolist() == [4_000, 16_000]


def test_without_a_gpu_an_instant_is_the_family_of_the_innermost_op(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::linear", 0, 50),
        op("aten::addmm", 10, 30),
        op("aten::copy_", 12, 5),
        op("aten::softmax", 40, 30, tid=BACKWARD),
    ]
    assert states_of(profile_of(tmp_path, events)) == {
        "op:gemm": 45_000,
        "op:copy": 5_000,
        "op:softmax": 20_000,
        "python": 30_000,
    }


def test_work_of_other_steps_in_a_period_is_foreign(tmp_path):
    events = [
        step(1, 0, 40),
        call("cudaLaunchKernel", 1, 1, correlation=1),
        kernel("gemm", 10, 20, correlation=1),
        kernel("spilled", 25, 15, correlation=99),
    ]
    profile = profile_of(tmp_path, events)
    owned = profile.owned
    rows = zip(owned.step.tolist(), owned.state.tolist(), owned.owner.tolist(), owned.ns.tolist(), strict=True)
    assert {(step, owner): ns for step, state, owner, ns in rows if state == 0} == {
        (0, -1): 10_000,
        (0, 0): 20_000,
    }


@pytest.mark.parametrize(("ends", "begins"), [(8, 8), (15, 10)])
def test_the_first_period_begins_when_the_gpu_has_drained_earlier_work(tmp_path, ends, begins):
    """Or, if that goes on beside it, with the first event of the step."""
    launched = [call("cudaLaunchKernel", 1, 1, correlation=1), kernel("gemm", 10, 20, correlation=1)]
    profile = profile_of(tmp_path, [kernel("earlier", 0, ends), step(1, 0, 20), *launched])
    assert profile.completions.tolist() == [1000 * begins, 30_000]
    assert profile.draining_ns == 1000 * begins
    whole = profile_of(tmp_path, [kernel("earlier", 0, ends), *launched])  # without steps it is the file's own
    assert (whole.completions.tolist(), whole.draining_ns) == ([0, 30_000], 0)


def test_a_file_without_steps_is_one_step(tmp_path):
    launched = [call("cudaLaunchKernel", 12, 2, correlation=1), kernel("gemm", 20, 30, correlation=1)]
    events = [op("aten::mm", 10, 10), *launched, kernel("late", 60, 10, correlation=5)]
    profile = profile_of(tmp_path, events)
    assert profile.whole_file
    assert profile.completions.tolist() == [10_000, 70_000]
    assert dict(zip([profile.names[n] for n in profile.kernels.name], profile.kernels.step.tolist(), strict=True)) == {
        "gemm": 0,
        "late": 0,
    }
    assert not {note.code for note in profile.notes} & {"spilled-kernels", "outside-steps"}


def test_the_work_of_a_file_without_steps_is_as_long_as_its_gpu_is_in_use(tmp_path):
    """Copies that no call in the file launched, as in a database of nsys that began late."""
    copies = [memcpy("Memcpy HtoD (Pinned -> Device)", 100 * n, 90, correlation=50 + n) for n in range(1, 5)]
    events = [op("aten::mm", 10, 10), call("cudaLaunchKernel", 12, 2, 1), kernel("gemm", 20, 30, 1), *copies]
    analysis = tracediff.analyze(str(write(tmp_path / "trace.json", document(events))))
    found = json.loads(analysis.to_json())
    states = {state["name"]: state["us"] for state in found["step_time"]["states"]}
    assert found["gpu_time"]["us"] == states["gpu_compute"] + states["gpu_copy"] == 30 + 4 * 90


@examples(60)
@given(trace_events(), st.randoms())
def test_any_trace_agrees_with_the_slow_reference_and_closes(tmp_path, events, random):
    random.shuffle(events)
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    profile = profile_file(TraceFile(str(path)))
    numbers, periods, states = profile_reference.account(path)
    assert (profile.step_numbers.tolist(), profile.periods.tolist()) == (numbers, periods)
    assert [states_of(profile, i) for i in range(len(numbers))] == [{k: v for k, v in s.items() if v} for s in states]
    assert profile.state_ns.sum(axis=1).tolist() == periods
