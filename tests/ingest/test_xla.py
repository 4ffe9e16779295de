"""XProf's Chrome traces of TPUs: real files, whose sums were computed by plain scripts, and small ones made here."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_trace import Event, noted, process_name, write
from formats import FOLDER, needs_formats

import tracediff
from tracediff.analysis import analyze_set
from tracediff.arrays import MISSING
from tracediff.errors import TracediffError
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import read_trace
from tracediff.ingest.vendors.xla import MARKS
from tracediff.profile.kernels.families import COMMUNICATION, DEFAULT
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import TPU, is_communication

CONTROL, TEST = (FOLDER / "jax" / f"{side}.trace.json.gz" for side in ("control", "test"))
needs_tpu = pytest.mark.skipif(not CONTROL.is_file(), reason="no traces of TPUs among the files of other formats")
OPS = "XLA Ops"
HOST, CHIP = 701, 3
MODULES, INSTRUCTIONS, ASYNC, STEPS = 2, 3, 4, 1


def plain_events(path: Path) -> list[dict[str, Any]]:
    """The complete events of a file, each with the names of its process and thread."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    named = [e for e in events if e.get("ph") == "M" and e["name"] in ("process_name", "thread_name")]
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in named}
    return [
        {**e, "process": names.get((e["pid"], None)), "thread": names.get((e["pid"], e["tid"]))}
        for e in events
        if e.get("ph") == "X"
    ]


def rows_of(trace: Trace, *categories: str) -> Any:
    return np.flatnonzero(np.isin(trace.category, [trace.categories.index(c) for c in categories]))


def names_of(trace: Trace, *categories: str) -> list[str]:
    return [trace.names[code] for code in trace.name[rows_of(trace, *categories)].tolist()]


@needs_formats
@needs_tpu
@pytest.mark.parametrize(
    ("path", "count", "us"),
    [
        (CONTROL, 3454, ("67209.402879", "67206.931659")),
        (TEST, 4682, ("65722.835292", "65719.852548")),
    ],
)
def test_each_device_works_as_often_and_as_long_as_the_file_says(path: Path, count: int, us: tuple[str, str]) -> None:
    trace = read_trace(str(path))
    rows = rows_of(trace, "kernel")
    device = trace.integer_column("device", cat.KERNEL)[rows]
    assert np.unique(device).tolist() == [0, 1]
    for number, total in enumerate(us):
        mine = rows[device == number]
        assert len(mine) == count
        assert abs(int(trace.dur[mine].sum()) - Decimal(total) * 1000) < count / 2


@needs_formats
@needs_tpu
@pytest.mark.parametrize("path", [CONTROL, TEST])
def test_every_event_is_read_once_and_what_is_no_work_is_counted(path: Path) -> None:
    trace, events = read_trace(str(path)), plain_events(path)
    assert int((trace.dur >= 0).sum()) == len(events)
    on_device = [e for e in events if e["process"].startswith("/device:TPU")]
    python = [e for e in events if e["name"].startswith("$")]
    calls = [e for e in events if e["name"] in ("DoEnqueueProgram", "np.asarray(jax.Array)")]
    counted = {name: len(rows_of(trace, name)) for name in trace.categories}
    assert counted["kernel"] == sum(e["thread"] == OPS for e in on_device)
    assert counted["gpu_user_annotation"] == sum(e["thread"] == "XLA Modules" for e in on_device) == 8
    notes = {n.message: n.count for n in trace.notes if n.code == "device-marks"}
    assert sum(notes.values()) == counted[MARKS]
    beside = next(count for message, count in notes.items() if message.startswith("TPU"))
    assert beside == len(on_device) - counted["kernel"] - 8 == 10
    assert counted["python_function"] == len(python) - (counted[MARKS] - beside)
    assert counted["xla_runtime"] == len(calls)
    assert counted["user_annotation"] == len(events) - len(on_device) - len(python) - len(calls)
    assert "unread-device" not in noted(trace)


@needs_formats
@needs_tpu
def test_every_instruction_belongs_to_the_call_that_enqueued_its_program() -> None:
    trace, events = read_trace(str(CONTROL)), plain_events(CONTROL)
    rows = rows_of(trace, "kernel")
    correlation = trace.integer_column("correlation", cat.KERNEL)[rows]
    of_calls = trace.integer_column("correlation", cat.KNOWN.index(TPU.calls[0]))
    of_calls = of_calls[of_calls != MISSING]
    assert len(set(of_calls.tolist())) == len(of_calls) == 8
    assert set(correlation.tolist()) == set(of_calls.tolist())
    programs = [e for e in events if e["thread"] == "XLA Modules"]
    inside = [
        sum(e["thread"] == OPS and e["pid"] == p["pid"] and p["ts"] <= e["ts"] < p["ts"] + p["dur"] for e in events)
        for p in programs
    ]
    assert sorted(np.bincount(correlation)[np.unique(correlation)].tolist()) == sorted(inside)


@pytest.mark.slow
@needs_formats
@needs_tpu
def test_two_models_do_different_work_and_the_accounts_close() -> None:
    diff = tracediff.compare(str(CONTROL), str(TEST))
    document = json.loads(diff.to_json())
    assert document["step_time"]["residual_us"] == document["gpu_time"]["residual_us"] == 0
    assert document["gpu_time"]["unattributed_us"] == 0
    explanation = document["explanation"]
    parts = [*(line["delta_us"] for line in explanation["lines"]), explanation["exposure_us"], explanation["rest_us"]]
    assert sum(parts) == pytest.approx(explanation["change_us"])


def thread(name: str, tid: int, pid: int = CHIP) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def bare(name: Any, ts: Any, dur: Any, tid: int = INSTRUCTIONS, pid: int = CHIP, **args: Any) -> Event:
    """A complete event as XProf writes it: without a category, numbers as text."""
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **({"args": args} if args else {})}


def instruction(name: str, ts: Any, dur: Any, kind: str = "loop fusion", source: str = "", pid: int = CHIP) -> Event:
    return bare(name, ts, dur, INSTRUCTIONS, pid, hlo_category=kind, **({"tf_op": source} if source else {}))


def enqueue(ts: Any, run: int, device: int = 0) -> Event:
    return bare("DoEnqueueProgram", ts, 1, 7, HOST, run_id=str(run), device_ordinal=str(device))


NAMES = [
    process_name("/device:TPU:0", CHIP),
    process_name("/device:TPU:1", CHIP + 1),
    process_name("/host:CPU", HOST),
    *(
        thread(name, tid, pid)
        for pid in (CHIP, CHIP + 1)
        for name, tid in ((OPS, INSTRUCTIONS), ("XLA Modules", MODULES), ("Async XLA Ops", ASYNC), ("Steps", STEPS))
    ),
]
TWO_STEPS = [
    bare("train", 0, 100, 9, HOST, step_num="4"),
    bare("train", 100, 100, 9, HOST, step_num="5"),
    *(enqueue(10 + 100 * step, 70 + step, device) for step in (0, 1) for device in (0, 1)),
    *(
        event
        for step in (0, 1)
        for pid in (CHIP, CHIP + 1)
        for event in (
            bare("jit_step(5120112285394406626)", 20 + 100 * step, 60, MODULES, pid, run_id=str(70 + step)),
            instruction("while.1", 20 + 100 * step, 30, "while", pid=pid),
            instruction(f"fusion.{step}", 20 + 100 * step, 10, source="jit(step)/aten::mul.Tensor/mul:", pid=pid),
            instruction(f"fusion.{step + 7}", 30 + 100 * step, 20, "convolution fusion", "jit(s)/dot_general:", pid),
            instruction("all-reduce.3", 50 + 100 * step, 25, "all-reduce", "jit(s)/psum:", pid),
            bare("all-reduce.3", 50 + 100 * step, 25, ASYNC, pid),
            bare(str(4 + step), 20 + 100 * step, 60, STEPS, pid),
        )
    ),
    bare("$loop.py:12 train", -50, 400, 9, HOST),
    bare("$loop.py:3 prepare", -50, 20, 9, HOST),
    bare("$builtins len", 5, 1, 9, HOST),
]  # fmt: skip


def test_a_small_trace_with_known_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "tpu.json", {"traceEvents": [*NAMES, *TWO_STEPS, {}]})
    found = analyze_set(tracediff.load(str(path)))
    (profile,) = tracediff.load(str(path)).profiles
    assert profile.step_numbers.tolist() == [4, 5]
    assert profile.busy_ns.tolist() == [2 * 55_000] * 2  # of two chips; the loop and the transfer count once
    assert {share.name: share.ns for share in found.states if share.ns} == {
        "gpu_compute": 2 * 30_000,
        "gpu_comm": 2 * 25_000,
        "gpu_queued": 2 * 9_000,
        "launching": 2 * 1_000,
        "python": 2 * 35_000,
    }
    assert {share.name for share in found.views["family"]} == {"pointwise", "gemm", COMMUNICATION}
    trace = read_trace(str(path))
    assert set(names_of(trace, "kernel")) == {
        "%fusion.0 (loop fusion, aten::mul.Tensor)",
        "%fusion.1 (loop fusion, aten::mul.Tensor)",
        "%fusion.7 (convolution fusion, dot_general)",
        "%fusion.8 (convolution fusion, dot_general)",
        "%all-reduce.3 (psum)",
    }
    assert names_of(trace, "python_function") == ["loop.py(12): train", "builtins len"]
    (train, _) = rows_of(trace, "python_function").tolist()
    assert (trace.ts[train], trace.dur[train]) == (0, 200_000)
    assert {(n.code, n.count) for n in trace.notes} >= {("device-marks", 1), ("device-marks", 4), ("cut-python", 1)}
    assert "unread-device" not in noted(trace)


@pytest.mark.parametrize(
    ("raw", "matched", "family"),
    [
        ("%fusion.123 (loop fusion, aten::mul.Tensor)", "fusion (loop fusion, aten::mul.Tensor)", "pointwise"),
        ("%fusion.9.remat2.clone.1 (custom fusion)", "fusion (custom fusion)", "fused"),
        ("%copy-start.16", "copy-start", "copy"),
        ("%slice-done (async-done)", "slice-done (async-done)", "copy"),
        ("%psum.3 (all-reduce)", "psum (all-reduce)", COMMUNICATION),
        ("%all-gather-start.2", "all-gather-start", COMMUNICATION),
        ("%collective-permute-done.2", "collective-permute-done", COMMUNICATION),
        ("%RPA-bq_32-bkvp_64-p_64-.5 (custom-call)", "RPA-bq_32-bkvp_64-p_64- (custom-call)", "attention"),
        ("%convolution.1.5x (dot_general)", "convolution.5x (dot_general)", "gemm"),
        ("%", "%", "other"),
        ("%.1", "", "other"),
    ],
)
def test_instructions_match_without_their_numbers(raw: str, matched: str, family: str) -> None:
    assert match_name(raw) == (matched or raw)
    assert DEFAULT.of_kernel(raw, None) == family
    assert is_communication(raw) == (family == COMMUNICATION)


def test_programs_match_without_their_fingerprint() -> None:
    assert match_name("jit_step(5120112285394406626)") == "jit_step"
    for name in ("model.py(12): forward", "PyTorch Profiler (0)", "f(12)"):
        assert match_name(name) == name


@pytest.mark.parametrize("source", ["jit(s)/all_gather:", "jit(s)/psum_scatter/reduce_scatter:"])
def test_what_prepares_a_collective_is_no_communication(tmp_path: Path, source: str) -> None:
    events = [instruction("copy.1", 0, 1, "data formatting", source), instruction("ag", 1, 1, "all-gather", source)]
    trace = read_trace(str(write(tmp_path / "t.json", {"traceEvents": [*NAMES, *events]})))
    assert [is_communication(name) for name in names_of(trace, "kernel")] == [False, True]


@pytest.mark.parametrize(
    "events",
    [
        [bare("fusion.1", 0, 1)],
        [bare("", 0, 1), bare("%", 1, 1), bare("%% \n\t(", 2, 1), bare("x" * 50_000 + ".1", 3, 1)],
        [instruction("a b\n.1", 0, 1, "<b>(\x1b[31m", "/" * 5000 + ";:/")],
        [bare("fusion.1", 0, 1, hlo_category=5, tf_op=["a"]), bare("fusion.2", 1, 1, hlo_category=None)],
        [bare("f.1", 0, 1), bare("jit_f", 0, 2, MODULES, run_id="x" * 30), enqueue("1", 2**70)],
        [bare("f.1", 0, 1), bare("jit_f", 0, 2, MODULES, run_id=3), bare("DoEnqueueProgram", 0, 1, 7, HOST)],
        [bare("f.1", 0, 0), bare("f.2", 0, 0), bare("f.3", 0, 5), bare("f.4", 4.999, 1)],
        [bare("f.1", 0, 1), bare("s", 0, 1, 9, HOST, step_num=-1), bare("s", 1, 1, 9, HOST, step_num="9" * 18)],
        [bare("f.1", 5, 1), bare("$", 0, 1, 9, HOST), bare("$a.py:x f", 4, 2, 9, HOST), bare("$:1 ", 5, 1, 9, HOST)],
        [process_name("/device:TPU:99999999999", CHIP), bare("f.1", 0, 1)],
        [process_name("/device:TPU:0 SparseCore 0", 55), bare("f.1", 0, 1), bare("g", 1, 1, pid=55)],
        [thread(OPS, 9, HOST), bare("f.1", 0, 1), bare("g", 1, 1, 9, HOST)],
    ],
)
def test_unusual_events_end_in_a_trace(tmp_path: Path, events: list[Event]) -> None:
    path = write(tmp_path / "t.json", {"traceEvents": [*NAMES, *events]})
    trace = read_trace(str(path))
    assert int((trace.dur >= 0).sum()) == sum(e["ph"] == "X" for e in events)
    found = analyze_set(tracediff.load(str(path), tables=["all"]))
    assert sum(share.ns for share in found.states) > 0


@pytest.mark.parametrize("events", [[], [bare("jit_f", 0, 2, MODULES)], [bare("x", 0, 1, ASYNC)]])
def test_a_device_without_instructions_is_refused_in_a_line(tmp_path: Path, events: list[Event]) -> None:
    path = write(tmp_path / "t.json", {"traceEvents": [*NAMES, *events]})
    with pytest.raises(TracediffError) as error:
        tracediff.load(str(path))
    assert "\n" not in str(error.value)


def test_a_device_of_a_list_that_is_named_late_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([*TWO_STEPS, *NAMES]))
    trace = read_trace(str(path))
    assert len(rows_of(trace, "kernel")) == 12
    assert (trace.integer_column("correlation", cat.KERNEL)[rows_of(trace, "kernel")] != MISSING).all()
    parts = read_trace(str(path), 100, frozenset())
    assert names_of(parts, "kernel") == names_of(trace, "kernel")
