"""Streams, sizes of kernels and gaps, on traces whose answer is known by hand and against a plain sweep µs by µs."""

from random import Random

import profile_reference as reference
import pytest
from build_trace import BACKWARD, annotation, call, document, kernel, memcpy, op, step, write
from hypothesis import example, given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events
from table_rows import first_step, measured, rows_of

from tracediff.ingest.files.source import TraceFile
from tracediff.profile.tables.gpu import WAITS_IN


def two_streams():
    """Kernel a on stream 7 (20–50), b on stream 20 launched at 15 and begun at 45, a copy on stream 20 (60–70)."""
    return [
        step(1, 0, 100),
        call("cudaLaunchKernel", 5, 5, correlation=1),
        call("cudaLaunchKernel", 10, 5, correlation=2),
        call("cudaMemcpyAsync", 15, 3, correlation=3),
        kernel("a", 20, 30, correlation=1, stream=7),
        kernel("b", 45, 10, correlation=2, stream=20),
        memcpy("Memcpy HtoD (Pinned -> Device)", 60, 10, correlation=3, stream=20),
    ]


def test_work_that_is_launched_stands_behind_other_streams_only_while_its_own_is_free_and_they_run(tmp_path):
    assert measured(tmp_path, two_streams(), "streams") == {
        (0, ("GPU", "all streams")): {"busy": 45_000, "sum": 50_000, "behind": 0, "events": 3},
        (0, ("GPU", "7")): {"busy": 30_000, "sum": 30_000, "behind": 0, "events": 1},
        (0, ("GPU", "20")): {
            "busy": 20_000,
            "sum": 20_000,
            "behind": 25_000,
            "events": 2,
        },  # b from 20 to 45; the copy waits for its own stream, then for none
    }


def test_several_gpus_have_numbers_and_unknown_streams_a_name(tmp_path):
    events = [
        step(1, 0, 50),
        *(call("cudaLaunchKernel", i, 1, correlation=i) for i in (1, 2)),
        kernel("a", 5, 5, correlation=1, device=3),
    ]
    other = kernel("b", 5, 5, correlation=2, device=5)
    del other["args"]["stream"]
    assert first_step(measured(tmp_path, [*events, other], "streams"), "events") == {
        ("GPU 3", "all streams"): 1,
        ("GPU 3", "7"): 1,
        ("GPU 5", "all streams"): 1,
        ("GPU 5", "unknown"): 1,
    }


def test_a_kernel_is_in_the_bucket_that_begins_at_its_duration_and_names_sort_by_duration(tmp_path):
    durations = [0, 1.999, 2, 4, 10, 999.999, 1000, 5000, 70_000]
    events = [
        step(1, 0, 10),
        call("cudaGraphLaunch", 1, 1, correlation=1),
        memcpy("Memcpy DtoD (Device -> Device)", 2, 3, correlation=1),
    ]
    events += [kernel("k", 100_000 * i, d, correlation=1) for i, d in enumerate(durations, 1)]
    found = first_step(measured(tmp_path, events, "kernel_sizes"), "kernels")
    assert [(bucket, found[bucket,]) for (bucket,) in sorted(found)] == [
        ("0000–0002 µs", 2),
        ("0002–0005 µs", 2),
        ("0010–0020 µs", 1),
        ("0500–1000 µs", 1),
        ("1000–2000 µs", 1),
        ("5000 µs and more", 2),
    ]


def test_each_gap_is_told_by_what_the_gpu_waits_for_and_counts_where_most_of_it_was_spent(tmp_path):
    events = [
        step(1, 0, 100),
        annotation("enumerate(DataLoader)#next", 0, 10),
        op("aten::mm", 10, 15),
        call("cudaLaunchKernel", 20, 4, correlation=1),
        kernel(
            "gemm", 30, 10, correlation=1
        ),  # the gap before it: data 10, op 10, launching 4, queued 6; longest is data, the first of equal ones
        call("cudaLaunchKernel", 41, 1, correlation=2),
        kernel("ncclAllReduce", 55, 5, correlation=2),  # python 1, launching 1, and from 42 on it is the next to begin
        annotation("gloo:all_reduce", 62, 20, tid=9),
        call("cudaStreamSynchronize", 70, 20),
    ]
    rows = measured(tmp_path, events, "gaps")
    assert {key[1:]: (values["time"], values["gaps"]) for (_, key), values in rows.items()} == {
        ("busy", "gpu_compute"): (10_000, 0),
        ("busy", "gpu_comm"): (5_000, 0),
        ("data", "data_loading"): (10_000, 1),
        ("host", "op"): (10_000, 0),
        ("launch", "launching"): (5_000, 0),
        ("launch", "gpu_queued"): (6_000, 0),
        ("peer", "gpu_queued"): (13_000, 1),
        ("host", "python"): (
            1_000 + 2_000 + 10_000,
            1,
        ),  # the last gap: 12 in Python, 8 and 12 for the peer, 8 in the call
        ("peer", "python"): (8_000, 0),
        ("peer", "synchronising"): (12_000, 0),
        ("host", "synchronising"): (8_000, 0),
    }


def test_a_second_gpu_that_idles_while_the_first_runs_is_told_by_the_host(tmp_path):
    events = [step(1, 0, 100), op("aten::mm", 0, 40), *(call("cudaLaunchKernel", i, 1, correlation=i) for i in (1, 2))]
    events += [kernel("a", 10, 90, correlation=1, device=0), kernel("b", 90, 10, correlation=2, device=1)]
    found = first_step(measured(tmp_path, events, "gaps"), "time")
    assert {key: ns for key, ns in found.items() if key[0] == "GPU 1"} == {
        ("GPU 1", "busy", "gpu_compute"): 10_000,
        ("GPU 1", "host", "op"): 2_000,
        ("GPU 1", "launch", "launching"): 1_000,
        ("GPU 1", "launch", "gpu_queued"): 87_000,
    }


@pytest.mark.parametrize("name", ["streams", "kernel_sizes", "gaps"])
def test_without_a_gpu_there_is_nothing_to_tell(tmp_path, name):
    assert measured(tmp_path, [step(1, 0, 10), op("aten::mm", 1, 2)], name) == {}


def swept(path):
    """(gaps' times, how many gaps, streams' rows) by (step, key), µs by µs: every time of `random_traces` is whole
    µs.
    """
    events = reference.read(path)
    steps, _ = reference.step_windows(events)
    _, periods, _ = reference.account(path)
    launch = {
        e["args"]["correlation"]: e
        for e in sorted(events, key=lambda e: e["ts"])
        if e["cat"] in reference.CALLS and "correlation" in e["args"]
    }
    gpu = [(e, launch.get(e["args"].get("correlation"))) for e in events if e["cat"] in reference.GPU]
    devices = sorted({e["args"]["device"] for e, _ in gpu})
    name = {d: f"GPU {d}" if len(devices) > 1 else "GPU" for d in devices}
    times, gaps, streams = {}, {}, {}

    def is_running(e, t):
        return e["ts"] <= t < e["end"]

    def of_step(e):
        return next((i for i, (_, start, end) in enumerate(steps) if e is not None and start <= e["ts"] < end), -1)

    for d in devices:
        mine = [(e, launch_call) for e, launch_call in gpu if e["args"]["device"] == d]
        completion = reference.drained(steps, gpu)
        for s, period in enumerate(periods):
            was_idle = False
            for t in range(completion, completion + period, 1000):
                running = {
                    "gpu_copy" if e["cat"] != "kernel" else "gpu_comm" if "nccl" in e["name"] else "gpu_compute"
                    for e, _ in mine
                    if is_running(e, t)
                }
                state = next((x for x in reference.STATES[:3] if x in running), None)
                waits = "busy"
                if state is None:
                    state = idle_state(events, mine, t)
                    waits = WAITS_NAMES[state]
                    next_start = min((e["ts"] for e, _ in mine if e["ts"] > t and e["dur"]), default=None)
                    if state == "gpu_queued" and any(
                        e["ts"] == next_start
                        and e["dur"]
                        and "nccl" in e["name"]
                        and launch_call
                        and launch_call["end"] <= t
                        for e, launch_call in mine
                    ):
                        waits = "peer"
                    if state in ("synchronising", "op", "python") and any(
                        e["name"].startswith("gloo:") and is_running(e, t) for e in events
                    ):
                        waits = "peer"
                key = (s, (name[d], waits, state))
                times[key] = times.get(key, 0) + 1000
                idle = waits != "busy"
                gaps[s, name[d]] = gaps.get((s, name[d]), 0) + (idle and not was_idle)
                was_idle = idle
            completion += period
        for stream in sorted({e["args"]["stream"] for e, _ in mine}):
            on_stream = sorted(
                (m for m in mine if m[0]["args"]["stream"] == stream),
                key=lambda m: (m[0]["ts"], m[0]["end"], m[1]["end"] if m[1] else m[0]["ts"]),
            )
            for i, (e, launch_call) in enumerate(on_stream):
                s = of_step(launch_call)
                if s >= 0:
                    waited = [
                        t
                        for t in range(launch_call["end"], e["ts"], 1000)
                        if all(o["end"] <= t for o, _ in on_stream[:i])
                    ]
                    row = streams.setdefault((s, (name[d], str(stream))), {"sum": 0, "behind": 0, "events": 0})
                    row["sum"] += e["dur"]
                    row["events"] += 1
                    row["behind"] += 1000 * sum(any(is_running(o, t) for o, _ in mine) for t in waited)
    return times, gaps, streams


WAITS_NAMES = {state: ("busy", "launch", "data", "host", "peer")[code] for state, code in WAITS_IN.items()}


def idle_state(events, mine, t):
    """The state of an instant at which the GPU whose events are ``mine`` is idle."""
    if any(launch_call is not None and launch_call["end"] <= t < e["ts"] for e, launch_call in mine):
        return "gpu_queued"
    open_now = [e for e in events if e["ts"] <= t < e["end"]]
    if any("DataLoader" in e["name"] and e["cat"] == "user_annotation" for e in open_now):
        return "data_loading"
    calls = [e for e in open_now if e["cat"] in reference.CALLS]
    if any("Synchronize" in e["name"] or e["name"] == "cudaMemcpy" for e in calls):
        return "synchronising"
    if any(c is launch_call for c in calls for _, launch_call in mine):
        return "launching"
    if any(e["cat"] in ("cpu_op", *reference.CALLS) for e in open_now):
        return "op"
    return "synchronising" if any(a <= t < b for a, b in reference.collective_waits(events)) else "python"


collectives = st.lists(
    st.builds(
        lambda start, long: annotation("gloo:all_reduce", start, long, tid=9), st.integers(0, 80), st.integers(1, 20)
    ),
    max_size=2,
)


OVERLAPPING_COLLECTIVES = [annotation("gloo:all_reduce", start, 2, tid=9) for start in (0, 1)]
DURING_AN_OP = [step(1, 0, 6), op("aten::mm", 1, 2, tid=BACKWARD), kernel("gemm", 5, 1, correlation=999)]


@examples(60)
@example(DURING_AN_OP, OVERLAPPING_COLLECTIVES, Random(0))
@given(trace_events(most_steps=3), collectives, st.randoms())
def test_any_trace_agrees_with_the_sweep_and_closes(tmp_path, events, on_host, random):
    events += on_host
    random.shuffle(events)
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    profile = profile_file(TraceFile(str(path)), tables=("streams", "gaps"))
    found, streams = rows_of(profile, "gaps"), rows_of(profile, "streams")
    times, gaps, plain = swept(path)
    assert {key: values["time"] for key, values in found.items()} == times
    counted = dict.fromkeys(gaps, 0)
    for (s, (gpu, *_)), values in found.items():
        counted[s, gpu] += values["gaps"]
    assert counted == gaps
    single = {key: values for key, values in streams.items() if key[1][1] != "all streams"}
    assert {key: {c: v for c, v in values.items() if c != "busy"} for key, values in single.items()} == plain
    for s, period in enumerate(profile.periods.tolist()):
        assert (
            sum(values["time"] for (position, _), values in found.items() if position == s)
            == period * profile.origin.gpu_count
        )
        assert (
            sum(
                values["busy"]
                for (position, key), values in streams.items()
                if position == s and key[1] == "all streams"
            )
            == profile.busy_ns[s]
        )
