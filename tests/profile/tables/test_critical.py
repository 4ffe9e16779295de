"""The critical path on traces whose answer is known by hand (µs in the events, ns in the table)."""

import random

import critical_reference
import numpy as np
import pytest
from build_trace import BACKWARD, annotation, call, document, event, kernel, memcpy, op, python, step, write
from hypothesis import given, strategies as st
from one_file import profile_file, real_profile
from properties import examples
from random_traces import long_trace_events
from traces import NAMES, needs_traces, trace

from tracediff.aggregate.averages import table_average
from tracediff.engine import LoadOptions, load_sets
from tracediff.ingest.files.source import TraceFile

SIDE = 102
"""A thread that is neither the step's nor autograd's."""


def rows_of(path):
    """[{(kind, name): (critical ns, total ns)} of each step], and the profile."""
    profile = profile_file(TraceFile(str(path)), tables=("critical",))
    return critical_rows(profile), profile


def critical_rows(profile):
    """[{(kind, name): (critical ns, total ns)} of each step]."""
    table = profile.tables["critical"]
    rows = [{} for _ in profile.periods]
    for position, key, values in zip(table.step.tolist(), table.key.tolist(), table.values.tolist(), strict=True):
        rows[position][table.keys[key]] = tuple(values)
    return rows


def path_of(folder, events, position=0):
    """{(kind, name): critical µs} of one step."""
    rows, profile = rows_of(write(folder / "trace.json", document(events)))
    assert sum(critical for critical, _ in rows[position].values()) == profile.periods[position]
    return {key: critical / 1000 for key, (critical, _) in rows[position].items() if critical}


def launch(name, start, took, number, begins, runs, tid=100, stream=7, wrap=None):
    """A launch under an operator, and its kernel."""
    return [
        op(wrap or f"aten::{name}", start, took, tid=tid),
        call("cudaLaunchKernel", start + 1, took - 2, number, tid=tid),
        kernel(name, begins, runs, number, stream=stream),
    ]


def test_a_gpu_that_is_always_busy_is_the_path_and_the_host_is_not(tmp_path):
    events = [
        step(1, 0, 30),
        *launch("a", 0, 10, 1, 9, 50),
        *launch("b", 10, 10, 2, 59, 40),
        *launch("c", 20, 10, 3, 100, 20),
    ]
    assert path_of(tmp_path, events) == {
        ("gpu_compute", "a"): 50,
        ("gpu_compute", "b"): 40,
        ("gpu_compute", "c"): 20,
        ("queue", "cudaLaunchKernel"): 1,
        ("call", "cudaLaunchKernel"): 8,
        ("op", "aten::a"): 1,
    }


def test_a_host_that_is_late_is_the_path_and_the_gpu_is_its_end(tmp_path):
    events = [step(1, 0, 100), *launch("a", 0, 20, 1, 22, 5), op("aten::slow", 20, 40), *launch("b", 70, 20, 2, 92, 15)]
    rows, _ = rows_of(write(tmp_path / "t.json", document(events)))
    assert rows[0] == {
        ("gpu_compute", "a"): (0, 5_000),
        ("gpu_compute", "b"): (15_000, 15_000),
        ("queue", "cudaLaunchKernel"): (3_000, 6_000),
        ("call", "cudaLaunchKernel"): (36_000, 36_000),
        ("op", "aten::a"): (2_000, 2_000),
        ("op", "aten::b"): (1_000, 2_000),
        ("op", "aten::slow"): (40_000, 40_000),
        ("python", "ProfilerStep#"): (10_000, 20_000),
        ("python", "nothing recorded"): (0, 7_000),  # the host is done, the GPU is not
    }


def test_a_synchronising_call_hands_over_to_what_it_waited_for(tmp_path):
    events = [
        step(1, 0, 100),
        *launch("a", 0, 10, 1, 12, 60),
        op("aten::item", 10, 70),
        call("cudaStreamSynchronize", 15, 60),
        op("aten::print", 80, 20),
    ]
    assert path_of(tmp_path, events) == {
        ("op", "aten::print"): 20,
        ("op", "aten::item"): 5,
        ("call", "cudaStreamSynchronize"): 3,  # from the kernel's end to the return
        ("gpu_compute", "a"): 60,
        ("queue", "cudaLaunchKernel"): 3,
        ("call", "cudaLaunchKernel"): 8,
        ("op", "aten::a"): 1,
    }


def test_a_call_that_copies_waits_for_its_own_copy(tmp_path):
    events = [
        step(1, 0, 50),
        call("cudaMemcpyAsync", 0, 30, 1),
        memcpy("Memcpy DtoH (Device -> Pageable)", 5, 20, 1),
        op("aten::add", 30, 20),
    ]
    assert path_of(tmp_path, events) == {
        ("op", "aten::add"): 20,
        ("call", "cudaMemcpyAsync"): 10,
        ("gpu_copy", "Memcpy DtoH"): 20,
    }


def test_a_copy_without_duration_leads_back_to_its_operator_once(tmp_path):
    copy = memcpy("Memcpy DtoH (Device -> Pageable)", 20, 0, 1)
    launched = [op("aten::copy_", 0, 30), call("cudaLaunchKernel", 5, 10, 1), copy]
    path = path_of(tmp_path, [step(1, 0, 50), *launched, op("aten::add", 30, 20)])
    assert path == {("op", "aten::add"): 20, ("op", "aten::copy_"): 20, ("call", "cudaLaunchKernel"): 10}


TWO_STREAMS = [
    step(1, 0, 40),
    *launch("comm", 0, 10, 1, 12, 80, stream=20),
    *launch("a", 10, 10, 2, 22, 10),
    *launch("b", 30, 10, 3, 95, 10),
]


def test_a_stream_that_nothing_waits_for_is_not_on_the_path(tmp_path):
    path = path_of(tmp_path, TWO_STREAMS)
    assert ("gpu_compute", "comm") not in path
    assert path["queue", "cudaLaunchKernel"] == 95 - 39


@pytest.mark.parametrize(("category", "on_path"), [("kernel", 304 - 39), ("gpu_memcpy", 0)])
def test_a_long_wait_is_of_the_work_that_occupies_the_gpu(tmp_path, category, on_path):
    others = launch("fills", 0, 10, 1, 12, 292, stream=20)
    others[-1]["cat"] = category
    path = path_of(tmp_path, [step(1, 0, 60), *others, *launch("starved", 30, 10, 2, 330, 10)])
    assert path.get(("gpu_compute", "fills"), 0) == on_path
    assert path["queue", "cudaLaunchKernel"] == 330 - 39 - on_path


def test_a_stream_that_was_told_to_wait_hands_over_to_the_other_one(tmp_path):
    path = path_of(tmp_path, [*TWO_STREAMS, call("cudaStreamWaitEvent", 25, 1)])
    assert path == {
        ("gpu_compute", "b"): 10,
        ("gpu_compute", "comm"): 80,
        ("queue", "cudaLaunchKernel"): 3 + 3,
        ("call", "cudaLaunchKernel"): 8,
        ("op", "aten::comm"): 1,
    }


@pytest.mark.parametrize(("target", "on_path"), [(20, True), (21, False)])
def test_where_the_trace_says_which_stream_was_waited_for_that_alone_counts(tmp_path, target, on_path):
    other = launch("other", 20, 4, 9, 50, 2, stream=21)
    recorded = [
        call("cudaEventRecord", 24, 1, 70),
        call("cudaStreamWaitEvent", 26, 1, 71),
        event("cuda_sync", "Stream Wait Event", 26, 1, pid=0, tid=7, correlation=71, device=0, stream=7,
              wait_on_stream=target, wait_on_cuda_event_record_corr_id=70),
    ]  # fmt: skip
    path = path_of(tmp_path, [*TWO_STREAMS, *other, *recorded])
    assert (("gpu_compute", "comm") in path) == on_path
    assert (("gpu_compute", "other") in path) == (not on_path)


def test_an_event_synchronisation_waits_for_what_was_launched_before_its_record(tmp_path):
    events = [
        step(1, 0, 100),
        *launch("early", 0, 4, 1, 6, 30),
        call("cudaEventRecord", 5, 1, 50),
        *launch("late", 8, 4, 2, 36, 20),
        call("cudaEventSynchronize", 20, 40, 51),
        event(
            "cuda_sync",
            "Event Sync",
            20,
            40,
            pid=0,
            tid=-1,
            correlation=51,
            device=0,
            stream=-1,
            wait_on_stream=7,
            wait_on_cuda_event_record_corr_id=50,
        ),
        op("aten::add", 60, 40),
    ]
    path = path_of(tmp_path, events)
    assert ("gpu_compute", "late") not in path
    assert path["gpu_compute", "early"] == 30
    assert path["call", "cudaEventSynchronize"] == 60 - 36


def test_a_host_that_runs_ahead_is_on_no_path(tmp_path):
    events = []
    for n in range(4):
        events += [step(n, 10 * n, 10), *launch("gemm", 10 * n + 1, 4, n + 1, 5 + 50 * n, 50)]
    for position in (1, 2, 3):
        assert path_of(tmp_path, events, position) == {("gpu_compute", "gemm"): 50}


def test_a_host_that_limits_each_step_is_all_of_the_path_though_the_gpu_ends_later(tmp_path):
    """Steps of 100 µs, in which the host loads for 60, then launches 50 µs of work, for which the next one does not
    wait. Of the last one only what the GPU works after the host is left to it.
    """
    events = []
    for n in range(4):
        begin = 100 * n
        events += [step(n, begin, 100), annotation("load", begin, 60)]
        events += launch("gemm", begin + 60, 39, n + 1, begin + 99, 50)
    for position in (1, 2):
        path = path_of(tmp_path, events, position)
        assert sum(path.values()) == 100
        assert not [kind for kind, _ in path if kind.startswith("gpu")]
        assert path["python", "load"] == 60
    last = path_of(tmp_path, events, 3)
    assert (last["gpu_compute", "gemm"], last["python", "load"]) == (49, 60 - 49)


def test_work_launched_by_an_earlier_step_counts_where_it_runs(tmp_path):
    events = [
        step(1, 0, 20),
        *launch("long", 1, 4, 1, 6, 30),
        step(2, 20, 30),
        op("aten::add", 21, 2),
        call("cudaDeviceSynchronize", 30, 15),
    ]
    first, second = (path_of(tmp_path, events, n) for n in (0, 1))
    assert first["gpu_compute", "long"] == 30
    assert second == {("call", "cudaDeviceSynchronize"): 9, ("python", "ProfilerStep#"): 5}


@pytest.mark.parametrize(("end", "waits"), [(60, True), (90, False)])
def test_what_gives_memory_back_waits_for_all_that_was_launched_before(tmp_path, end, waits):
    """Unless other work that was launched before it goes on."""
    events = [
        step(1, 0, 100),
        *launch("a", 0, 10, 1, 12, 48),
        *launch("b", 12, 2, 2, 15, end - 15, stream=9),
        call("cudaFree", 20, 55),
        op("aten::print", 80, 20),
    ]
    path = path_of(tmp_path, events)
    assert any(kind == "gpu_compute" for kind, _ in path) == waits
    assert path["call", "cudaFree"] == (75 - 60 if waits else 55)


def test_without_a_gpu_it_is_the_innermost_operator_and_autograds_thread_while_the_step_waits_for_it(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::linear", 0, 30),
        op("aten::addmm", 5, 20),
        op("autograd::engine::evaluate_function: AddmmBackward0", 40, 30, tid=BACKWARD),
        op("aten::mm", 45, 20, tid=BACKWARD),
        op("aten::collate", 0, 100, tid=SIDE),
        op("aten::add_", 80, 10),
    ]
    assert path_of(tmp_path, events) == {
        ("op", "aten::linear"): 10,
        ("op", "aten::addmm"): 20,
        ("op", "autograd::engine::evaluate_function: AddmmBackward0"): 10,
        ("op", "aten::mm"): 20,
        ("op", "aten::add_"): 10,
        ("python", "ProfilerStep#"): 30,
    }


def test_python_is_named_by_its_function_else_by_its_annotation(tmp_path):
    events = [
        step(1, 0, 50),
        annotation("enumerate(DataLoader)#next", 0, 20),
        python("train.py(3): main", 25, 20, 1),
        python("model.py(7): forward", 30, 10, 2, 1),
        op("aten::add", 32, 3),
    ]
    assert path_of(tmp_path, events) == {
        ("python", "enumerate(DataLoader)#next"): 20,
        ("python", "ProfilerStep#"): 10,
        ("python", "train.py(3): main"): 10,
        ("python", "model.py(7): forward"): 7,
        ("op", "aten::add"): 3,
    }


def test_a_launch_on_a_thread_of_its_own_is_followed_to_its_outermost_operator(tmp_path):
    events = [step(1, 0, 60), op("aten::main", 0, 60), *launch("copy", 20, 20, 1, 42, 40, tid=SIDE)]
    assert path_of(tmp_path, events) == {
        ("gpu_compute", "copy"): 40,
        ("queue", "cudaLaunchKernel"): 3,
        ("call", "cudaLaunchKernel"): 18,
        ("op", "aten::copy"): 1,
        ("op", "aten::main"): 20,
    }


def test_the_events_of_a_graph_wait_for_each_other_on_any_stream(tmp_path):
    graph = [kernel("a", 20, 30, 1), kernel("b", 50, 30, 1, stream=9), kernel("c", 81, 10, 1)]
    events = [step(1, 0, 20), call("cudaGraphLaunch", 5, 10, 1), *graph]
    assert path_of(tmp_path, events) == {
        ("gpu_compute", "a"): 30,
        ("gpu_compute", "b"): 30,
        ("gpu_compute", "c"): 10,
        ("queue", "cudaGraphLaunch"): 6,
        ("call", "cudaGraphLaunch"): 10,
        ("python", "ProfilerStep#"): 5,
    }


def test_a_kernel_without_launch_is_none_of_the_first_graph(tmp_path):
    graph = [kernel("a", 20, 10, 1), kernel("b", 30, 10, 1)]
    spilled = kernel("spilled", 25, 50, stream=9)
    own = [call("cudaLaunchKernel", 20, 10, 2), kernel("mine", 76, 10, 2, stream=20)]
    path = path_of(tmp_path, [step(1, 0, 35), call("cudaGraphLaunch", 5, 10, 1), *graph, spilled, *own])
    assert path == {
        ("gpu_compute", "mine"): 10,
        ("queue", "cudaLaunchKernel"): 36,  # after the graph; nothing says that it waited for the kernel without launch
        ("gpu_compute", "a"): 10,
        ("gpu_compute", "b"): 10,
        ("queue", "cudaGraphLaunch"): 5,
        ("call", "cudaGraphLaunch"): 10,
        ("python", "ProfilerStep#"): 5,
    }


def test_kernels_that_overlap_by_a_tick_of_the_clock_still_follow_each_other(tmp_path):
    events = [step(1, 0, 20), call("cudaGraphLaunch", 5, 10, 1), kernel("a", 20, 30.064, 1), kernel("b", 50, 30, 1)]
    path = path_of(tmp_path, events)
    assert (path["gpu_compute", "a"], path["gpu_compute", "b"]) == (30, 30)


def test_before_a_kernel_without_launch_nothing_is_known(tmp_path):
    events = [
        step(1, 0, 100),
        kernel("first", 1, 0, 2),
        call("cudaLaunchKernel", 0, 1, 2),
        *launch("mine", 20, 10, 1, 60, 50),
        kernel("spilled", 5, 20),
        kernel("spilled_too", 30, 30),
    ]
    assert path_of(tmp_path, events) == {
        ("gpu_compute", "mine"): 50,
        ("gpu_compute", "spilled_too"): 30,
        ("gpu_compute", "spilled"): 20,
        ("queue", "launch not in the file"): 5,
        ("unknown", "launch not in the file"): 5,
    }


def test_a_file_without_host_events_is_walked_too(tmp_path):
    rows, profile = rows_of(write(tmp_path / "t.json", document([kernel("a", 0, 10), kernel("b", 12, 10)])))
    assert profile.periods.tolist() == [22_000]
    critical = {key: on_path for key, (on_path, _) in rows[0].items() if on_path}
    assert critical == {
        ("gpu_compute", "a"): 10_000,
        ("gpu_compute", "b"): 10_000,
        ("queue", "launch not in the file"): 2_000,
    }


def test_a_call_that_waits_for_its_own_copy_hands_over_to_what_the_copy_waited_for(tmp_path):
    events = [
        step(1, 0, 200),
        *launch("a", 0, 10, 1, 12, 150),
        call("hipMemcpyWithStream", 20, 150, 2),
        memcpy("Memcpy DtoH (Device -> Pageable)", 164, 20, 2),  # ends after its call has returned: other clocks
        op("aten::add", 170, 30),
    ]
    assert path_of(tmp_path, events) == {
        ("op", "aten::add"): 30,
        ("gpu_copy", "Memcpy DtoH"): 170 - 164,
        ("gpu_compute", "a"): 150,
        ("queue", "hipMemcpyWithStream"): 2,
        ("queue", "cudaLaunchKernel"): 3,
        ("call", "cudaLaunchKernel"): 8,
        ("op", "aten::a"): 1,
    }


def test_a_copy_that_begins_long_after_the_gpu_was_idle_was_prepared_by_its_call(tmp_path):
    events = [
        step(1, 0, 200),
        *launch("a", 0, 10, 1, 12, 60),
        call("cudaMemcpyAsync", 20, 150, 2),
        memcpy("Memcpy HtoD (Pageable -> Device)", 140, 20, 2),
        op("aten::add", 170, 30),
    ]
    path = path_of(tmp_path, events)
    assert path["call", "cudaMemcpyAsync"] == (140 - 20) + (170 - 160)
    assert ("gpu_compute", "a") not in path


def test_a_dependent_launch_that_overlaps_its_predecessor_follows_it(tmp_path):
    events = [
        step(1, 0, 30),
        *launch("a", 0, 10, 1, 10, 50),
        *launch("b", 10, 10, 2, 45, 40),
        *launch("c", 20, 10, 3, 80, 20),
    ]
    path = path_of(tmp_path, events)
    assert {name: us for (kind, name), us in path.items() if kind == "gpu_compute"} == {"a": 35, "b": 35, "c": 20}
    assert ("queue", "cudaLaunchKernel") not in path or path["queue", "cudaLaunchKernel"] == 1


def test_a_full_queue_is_waiting_for_the_gpu(tmp_path):
    queued = [
        event_
        for i in range(1_001)
        for event_ in (call("cudaLaunchKernel", i, 1, i), kernel("long", 2_000 + 10 * i, 10, i))
    ]
    late = [call("cudaLaunchKernel", 1_001, 2_000, 5_000), op("aten::add", 3_010, 20_000)]
    path = path_of(tmp_path, [step(1, 0, 30_000), *queued, *late, kernel("last", 12_010, 10, 5_000)])
    assert path["call", "cudaLaunchKernel"] < 100
    assert path["gpu_compute", "long"] == 3_000 - 2_000


def test_a_short_queue_is_the_cost_of_the_launch(tmp_path):
    events = [
        step(1, 0, 3_000),
        call("cudaLaunchKernel", 0, 5, 1),
        kernel("long", 100, 500, 1),
        call("cudaLaunchKernel", 10, 1_000, 2),
        kernel("short", 1_020, 10, 2),
    ]
    assert path_of(tmp_path, events)["call", "cudaLaunchKernel"] >= 1_000


def test_a_wait_between_streams_that_nothing_records_is_told_by_what_ended_then(tmp_path):
    late = [step(1, 0, 40), *launch("comm", 0, 10, 1, 12, 180, stream=20), *launch("b", 30, 10, 2, 200, 10)]
    assert path_of(tmp_path, late)["gpu_compute", "comm"] == 180
    soon = [step(1, 0, 40), *launch("comm", 0, 10, 1, 12, 80, stream=20), *launch("b", 30, 10, 2, 100, 10)]
    assert ("gpu_compute", "comm") not in path_of(tmp_path, soon)


def test_records_of_waits_that_name_another_device_count_in_a_file_with_one(tmp_path):
    recorded = [
        call("cudaEventRecord", 24, 1, 70),
        call("cudaStreamWaitEvent", 26, 1, 71),
        event("cuda_sync", "Stream Wait Event", 26, 1, pid=0, tid=7, correlation=71, device=5, stream=7,
              wait_on_stream=20, wait_on_cuda_event_record_corr_id=70),
    ]  # fmt: skip
    assert path_of(tmp_path, [*TWO_STREAMS, *recorded])["gpu_compute", "comm"] == 80


@needs_traces
def test_on_real_traces_the_path_goes_through_calls_that_wait_for_the_gpu():
    def per_step(where):
        rows, _ = rows_of(where)
        kinds = {}
        for (kind, _name), (ns, _total) in (item for row in rows for item in row.items()):
            kinds[kind] = kinds.get(kind, 0) + ns / 1e6
        return kinds

    copied = per_step(trace("timesformer_mi300"))  # one hipMemcpyWithStream waits for the model
    assert copied["call"] < 1.0
    assert copied["gpu_compute"] > 100


def test_generated_kernels_meet_whatever_their_counter(tmp_path):
    events = [step(1, 0, 20), *launch("triton_poi_fused_add_3", 0, 10, 1, 12, 20, wrap="aten::add")]
    assert ("gpu_compute", "triton_poi_fused_add") in path_of(tmp_path, events)


def polling(runs, pauses):
    """Launches, each followed by a pause without any call in which its kernel runs for one of ``runs`` µs."""
    events, begin = [], 0
    for number, (us, pause) in enumerate(zip(runs, pauses, strict=True), 1):
        events += launch("poll", begin, 10, number, begin + 12, us)
        begin += 10 + pause
    return [step(1, 0, begin + 20), *events, *launch("poll", begin, 10, 99, begin + 12, 5)]


def asking(runs):
    """Two such steps, with calls that ask whether the GPU is done; the second ends the recording."""
    events, begin = [], 0
    for number, us in enumerate(runs, 1):
        events += launch("poll", begin, 10, number, begin + 12, us)
        asks = [call("cudaEventQuery", begin + 15 + 150 * k, 3) for k in range(us // 150)]
        events += [
            *asks,
            call("cudaDeviceSynchronize" if number == len(runs) else "cudaEventRecord", begin + us + 50, 5),
        ]
        begin += us + 60
    return [step(1, 0, begin), *events]


def test_calls_that_ask_whether_the_gpu_is_done_are_part_of_the_wait(tmp_path):
    path = path_of(tmp_path, asking(LONG))
    assert path["gpu_compute", "poll"] == sum(LONG)
    plain = critical_reference.Walk(tmp_path / "trace.json")
    assert path == {tuple(key): ns / 1000 for (_, *key), ns in plain.path.items()}


LONG = (2_000, 3_100, 2_600, 2_300)


@pytest.mark.parametrize(
    ("pauses", "waits"),
    [
        ([us + after for us, after in zip(LONG, (40, 42, 41, 40), strict=True)], True),
        ([us + 400 for us in LONG], False),  # in which the GPU has long nothing to do
        ([3_150] * 4, False),  # whatever the GPU does
        ([us - 100 for us in LONG], False),  # after which it still works
    ],
)
def test_a_pause_that_ends_when_the_gpu_has_nothing_left_to_do_waits_for_it(tmp_path, pauses, waits):
    path = path_of(tmp_path, polling(LONG, pauses))
    assert (path.get(("gpu_compute", "poll"), 0) > 9_000) is (waits or sum(pauses) < sum(LONG))
    plain = critical_reference.Walk(tmp_path / "trace.json")
    assert path == {tuple(key): ns / 1000 for (_, *key), ns in plain.path.items()}
    rows, _ = rows_of(tmp_path / "trace.json")
    assert rows == [{tuple(key): (plain.path[0, *key], ns) for (_, *key), ns in plain.total().items()}]


@pytest.mark.slow
@examples(150)
@given(long_trace_events(), st.booleans(), st.booleans(), st.randoms())
def test_any_trace_agrees_with_the_slow_reference_and_closes(tmp_path, events, backward, waits, random):
    for scope in events:
        if backward and scope["tid"] == BACKWARD and scope["cat"] == "cpu_op":
            scope["name"] = "autograd::engine::evaluate_function: " + scope["name"]
        if waits and scope["name"] == "cudaMemcpyAsync":
            scope["name"] = "cudaStreamWaitEvent"
    random.shuffle(events)
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    rows, profile = rows_of(path)
    plain = critical_reference.Walk(path)
    expected = [{} for _ in rows]
    for (position, *key), ns in plain.total().items():
        expected[position][tuple(key)] = (plain.path[position, *key], ns)
    assert rows == expected
    assert [sum(critical for critical, _ in row.values()) for row in rows] == profile.periods.tolist()
    duration = {id(e): e["dur"] for e in plain.events}
    assert all(ns <= duration[event_key] for (_, event_key), ns in plain.of_event.items())


@needs_traces
@pytest.mark.parametrize("name", NAMES)
def test_on_real_traces_the_path_is_the_period_and_no_row_is_longer_than_its_events(name):
    profile = real_profile(name)
    rows = critical_rows(profile)
    assert [sum(critical for critical, _ in row.values()) for row in rows] == profile.periods.tolist()
    assert all(critical <= total for row in rows for critical, total in row.values())


@needs_traces
def test_a_loader_that_the_step_waits_for_is_on_the_path_and_graphs_that_save_launches_save_nothing():
    def per_step(name, kinds):
        (traces,) = load_sets([str(trace(name))], LoadOptions(tables=("critical",), jobs=1))
        table = table_average(traces, "critical")
        denominator, rows = table.denominator, table.rows
        return (
            sum(critical for (kind, text), (critical, _) in rows.items() if kind in kinds or "DataLoader" in text)
            / denominator
            / 1e6
        )

    assert per_step("resnet50_workers0", ()) > 30
    assert per_step("resnet50_workers4", ()) < 1
    for name in ("tinylm_compile", "tinylm_cudagraph"):
        assert per_step(name, ("op", "call", "python")) < 0.001


def test_order_in_the_file_does_not_matter(tmp_path):
    events = [
        *TWO_STREAMS,
        call("cudaStreamWaitEvent", 25, 1),
        kernel("comm", 12, 80, 1, stream=20),
        kernel("comm", 12, 80, 1, stream=21),
    ]
    shuffled = events.copy()
    random.Random(1).shuffle(shuffled)
    first, second = (
        rows_of(write(tmp_path / name, document(some)))[0] for name, some in (("a.json", events), ("b.json", shuffled))
    )
    assert first == second
    assert np.array(list(first[0].values())).sum() > 0
