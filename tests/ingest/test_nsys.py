"""SQLite exports of Nsight Systems: the same numbers as Kineto's JSON of the same events; exact sums of real files."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import zipfile

import numpy as np
import pytest
from build_trace import annotation, call, document, event, kernel, memcpy, memset, op, step, write
from formats import FOLDER, needs_formats
from hypothesis import given, settings
from nsys_file import NsysFile, write_nsys
from random_traces import trace_events

import tracediff
from tracediff.aggregate.summary import set_tables
from tracediff.engine import LoadOptions
from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace, read_traces
from tracediff.profile.placement.gpu_events import gpu_events
from tracediff.profile.placement.steps import whole_file
from tracediff.runtimes import is_communication

STEPS = [
    one
    for n in range(4)
    for one in (
        step(n, 1000 * n, 900),
        op("aten::linear", 1000 * n + 10, 100, **{"Input Dims": [[8, 4], [4, 4]], "Sequence number": 5}),
        op("aten::addmm", 1000 * n + 20, 80, **{"External id": 3}),
        call("cudaLaunchKernel", 1000 * n + 30, 10, 10 * n + 1),
        kernel("sm90_gemm<float>", 1000 * n + 100, 300, 10 * n + 1, grid=[8, 1, 1], block=[128, 1, 1]),
        call("cudaMemcpyAsync", 1000 * n + 120, 10, 10 * n + 2),
        memcpy("Memcpy HtoD (Pinned -> Device)", 1000 * n + 450, 50, 10 * n + 2, bytes=4096),
        call("cuLaunchKernel", 1000 * n + 140, 10, 10 * n + 3),
        memset(1000 * n + 520, 5, 10 * n + 3, bytes=64),
        annotation("Optimizer.step#Adam.step", 1000 * n + 600, 100),
        call("cudaStreamSynchronize", 1000 * n + 750, 50),
    )
]
TOTALS = {
    ("before", 0): {"kernel": (1993, 270_875_926)},
    ("before", 1): {"kernel": (2017, 264_324_724)},
    ("after", 0): {"kernel": (1793, 237_473_368)},
    ("after", 1): {"kernel": (1794, 251_362_038)},
}
COPIES = {
    ("before", 0): [("HtoD", 17, 13_408), ("DtoD", 493, 2_831_071)],
    ("before", 1): [("HtoD", 17, 13_248), ("DtoD", 493, 2_834_360)],
    ("after", 0): [("HtoD", 16, 12_608), ("DtoD", 436, 2_526_517)],
    ("after", 1): [("HtoD", 16, 12_576), ("DtoD", 436, 2_534_973)],
}


def real(side, rank):
    return read_trace(TraceFile(str(FOLDER / "nsys" / f"{side}.sqlite.gz"), part=f"rank{rank}"))


@needs_formats
@pytest.mark.parametrize(("side", "rank"), list(TOTALS))
def test_the_sums_of_real_files_are_exact(side, rank):
    trace = real(side, rank)
    kernels = trace.category == cat.KERNEL
    assert (kernels.sum(), trace.dur[kernels].sum()) == TOTALS[side, rank]["kernel"]
    for direction, count, ns in COPIES[side, rank]:
        rows = (trace.category == cat.MEMCPY) & trace.name_matches(re.compile(f"Memcpy {direction} ").match)
        assert (rows.sum(), trace.dur[rows].sum()) == (count, ns)
    copied = trace.integer_column("bytes", cat.MEMCPY)[trace.name_matches(re.compile("Memcpy DtoD ").match)]
    assert copied.sum() == {"before": 4_023_067_136, "after": 3_597_688_320}[side]


@needs_formats
@pytest.mark.parametrize(
    ("side", "memsets", "ranges"), [("before", (269, 213_408), 19_118), ("after", (242, 187_423), 17_113)]
)
def test_both_ranks_have_all_events_of_the_file(side, memsets, ranges):
    traces = [real(side, rank) for rank in (0, 1)]
    sets = [trace.dur[trace.category == cat.MEMSET] for trace in traces]
    assert (sum(map(len, sets)), sum(int(s.sum()) for s in sets)) == memsets
    assert sum(int(np.isin(t.category, (cat.CPU_OP, cat.ANNOTATION)).sum()) for t in traces) == ranges


@pytest.mark.slow
@needs_formats
def test_the_work_of_a_real_file_without_steps_is_all_that_its_gpus_did():
    (traces,) = tracediff.engine.load_sets([str(FOLDER / "nsys" / "before.sqlite.gz")])
    of_ranks = {p.origin.file.part: int(p.kernels.total_ns[p.kernels.step == 0].sum()) for p in traces.profiles}
    assert of_ranks == {"rank0": 273_830_229, "rank1": 267_275_916}  # sum(end - start) of the three tables in SQL


@needs_formats
def test_a_real_pair_is_compared_and_closes():
    diff = tracediff.compare(*(str(FOLDER / "nsys" / f"{side}.sqlite.gz") for side in ("before", "after")))
    found = json.loads(diff.to_json())
    assert found["step_time"]["residual_us"] == 0
    assert found["control"]["ranks"] == found["test"]["ranks"] == [0, 1]


def account(path):
    (profile,) = tracediff.load(str(path)).profiles
    states = dict(zip(profile.state_names, profile.state_ns.sum(axis=0).tolist(), strict=True))
    work = sorted(
        (profile.names[n], c, t)
        for n, c, t in zip(*(getattr(profile.kernels, k).tolist() for k in ("name", "count", "total_ns")), strict=True)
    )
    return profile.periods.tolist(), states, work


def test_the_same_events_have_the_same_account_in_both_formats(tmp_path):
    kineto = write(tmp_path / "kineto.json", document(STEPS))
    nsys = write_nsys(tmp_path / "nsys.sqlite", STEPS)
    assert account(nsys) == account(kineto)
    step_time = json.loads(tracediff.compare(str(kineto), str(nsys)).to_json())["step_time"]
    assert [state["delta_us"] for state in step_time["states"]] == [0] * len(step_time["states"])


@pytest.mark.slow
@given(events=trace_events())
@settings(max_examples=40, deadline=None)
def test_any_events_have_the_same_account_in_both_formats(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("formats")
    kineto = write(folder / "kineto.json", document(events))
    assert account(write_nsys(folder / "nsys.sqlite", events)) == account(kineto)


def test_arguments_are_those_of_kineto(tmp_path):
    trace = read_trace(str(write_nsys(tmp_path / "nsys.sqlite", STEPS)))
    kineto = read_trace(str(write(tmp_path / "kineto.json", document(STEPS))))
    for name in ("sm90_gemm<float>", "Memcpy HtoD (Pinned -> Device)", "aten::linear"):
        ours, theirs = (t.arguments_of(int(np.flatnonzero(t.name_matches(name.__eq__))[0])) for t in (trace, kineto))
        assert {k: ours.get(k) for k in theirs} == theirs
    assert trace.meta.device_properties[0].name == "NVIDIA H100 80GB HBM3"
    assert {trace.names[c] for c in trace.name[trace.category == cat.CALLS[1]].tolist()} == {"cuLaunchKernel"}


def test_each_process_with_gpu_work_is_a_rank(tmp_path):
    other = [dict(e, ts=e["ts"] + 5) for e in STEPS]
    path = write_nsys(tmp_path / "two.sqlite", STEPS, other, [op("aten::add", 5, 5)])
    assert [trace.file.part for trace in read_traces(str(path))] == ["rank0", "rank1"]
    assert len(read_trace(TraceFile(str(path), part="rank1"))) == len(other)
    (run,) = tracediff.load(str(path)).runs
    assert sorted(run.ranks) == [0, 1]
    with pytest.raises(TracediffError, match="no such rank"):
        read_trace(TraceFile(str(path), part="rank2"))


def test_a_database_in_an_archive_has_all_its_ranks(tmp_path):
    path = write_nsys(tmp_path / "two.sqlite", STEPS, STEPS)
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.write(path, "two.sqlite")
    assert [p.origin.file.part for p in tracediff.load(str(tmp_path / "set.zip")).profiles] == ["rank0", "rank1"]


def test_a_damaged_database_among_others_can_be_left_out(tmp_path):
    write_nsys(tmp_path / "rank0.sqlite", STEPS)
    (tmp_path / "rank1.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(TracediffError, match=r"rank1\.sqlite"):
        tracediff.load(str(tmp_path))
    (traces,) = tracediff.engine.load_sets([str(tmp_path)], LoadOptions(keep_going=True))
    assert len(traces.profiles) == 1


@needs_formats
def test_tables_over_ranks_count_collectives_that_were_launched_before_the_recording():
    trace = real("before", 0)
    gpu = gpu_events(trace, whole_file(trace), Notes())
    assert (gpu.launch[trace.name_matches(is_communication)[gpu.rows]] < 0).any()
    sets = tracediff.load(str(FOLDER / "nsys" / "before.sqlite.gz"), tables=["stragglers"])
    tables, _ = set_tables(sets)
    assert tables["stragglers"].rows


@pytest.mark.parametrize("pack", [gzip.compress])
def test_packed_databases_are_read(tmp_path, pack):
    path = write_nsys(tmp_path / "nsys.sqlite", STEPS)
    packed = tmp_path / "packed.sqlite.gz"
    packed.write_bytes(pack(path.read_bytes()))
    assert account(packed) == account(path)


def test_ranges_of_nvtx_mark_the_steps(tmp_path):
    events = [e for e in STEPS if not e["name"].startswith("ProfilerStep")]
    events += [annotation(f"iteration {n}", 1000 * n, 900) for n in range(4)]
    path = write_nsys(tmp_path / "nsys.sqlite", events)
    (profile,) = tracediff.load(str(path), step_marker="iteration").profiles
    assert len(profile.step_numbers) == 4
    assert not profile.whole_file


def old(path, drop):
    connection = sqlite3.connect(path)
    for table, columns in drop.items():
        for column in columns:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.commit()
    connection.close()


def test_columns_and_tables_of_older_versions_may_be_missing(tmp_path):
    path = write_nsys(tmp_path / "nsys.sqlite", STEPS)
    whole = account(path)
    kernels = ("graphNodeId", "registersPerThread", "globalPid")
    old(path, {"CUPTI_ACTIVITY_KIND_KERNEL": kernels, "CUPTI_ACTIVITY_KIND_MEMSET": ("memKind",)})
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE TARGET_INFO_GPU")
    connection.commit()
    periods, states, _ = account(path)
    assert (periods, states) == whole[:2]


def test_tables_that_are_not_read_are_named(tmp_path):
    file = NsysFile(tmp_path / "nsys.sqlite")
    file.add_process(100, STEPS)
    file.connection.execute("CREATE TABLE OSRT_API (start, end, nameId)")
    file.add("OSRT_API", 1, 2, 3)
    notes = {note.code: note for note in read_trace(str(file.close())).notes}
    assert "OSRT_API" in notes["unread-tables"].message


def test_the_profilers_own_work_is_added_up(tmp_path):
    """In both formats, and only that of the process."""
    own = [event("overhead", "Buffer Flush", 100, 40.5), event("overhead", "Activity Buffer Request", 300, 2)]
    kineto = read_trace(str(write(tmp_path / "trace.json", document([*STEPS, *own]))))
    file = NsysFile(tmp_path / "nsys.sqlite")
    file.connection.execute("CREATE TABLE PROFILER_OVERHEAD (start, end, globalTid, nameId, overheadType)")
    flush = file.string("CUPTI Buffer flush")
    for pid, start, end in ((100, 100_000, 140_500), (100, 300_000, 302_000), (101, 0, 10**9)):
        file.add("PROFILER_OVERHEAD", start, end, pid << 24 | 7, flush, 3)
    file.add_process(100, STEPS)
    file.add_process(101, STEPS)
    nsys = read_trace(str(file.close()))
    for trace in (kineto, nsys):
        assert {n.code: n.count for n in trace.notes}["profiler-overhead"] == 42


def test_a_database_of_something_else_and_a_report_are_one_line(tmp_path):
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE users (name)")
    connection.commit()
    connection.close()
    with pytest.raises(NotATrace, match="no export of Nsight Systems"):
        read_trace(str(path))
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\x00\x01nsys" * 50)
    with pytest.raises(NotATrace, match=re.escape("nsys export --type sqlite run.nsys-rep")):
        read_trace(str(report))


def test_a_view_is_no_table(tmp_path):
    """The rows of a view are computed: one can take for ever."""
    file = NsysFile(tmp_path / "nsys.sqlite")
    file.add_process(100, [op("aten::mm", 0, 5)])
    file.connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS deviceId FROM n"
    file.connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
    assert len(read_trace(str(file.close()))) == 1


def test_odd_values_lose_no_other_event(tmp_path):
    file = NsysFile(tmp_path / "nsys.sqlite")
    file.add_process(100, STEPS)
    expected = len(read_trace(str(file.close())))
    file = NsysFile(tmp_path / "odd.sqlite")
    file.add_process(100, STEPS)
    file.add("NVTX_EVENTS", None, 5, 59, "aten::x, op_id = 1", 100 << 24, None)
    file.add("NVTX_EVENTS", 5, None, 59, "open", 100 << 24 | 100, None)
    file.add("NVTX_EVENTS", 9, 3, 59, b"\xff\xfe, op_id = 99999999999999999999", 100 << 24 | 100, None)
    file.add("NVTX_EVENTS", "x", "y", "z", "text", "t", "u")
    file.add("CUPTI_ACTIVITY_KIND_KERNEL", 2**63 - 1, -(2**63), 0, 0, 1, 100 << 24, *[0] * 10)
    trace = read_trace(str(file.close()))
    assert len(trace) == expected + 1
    assert {"no-time", "open-ranges", "odd-duration"} <= {note.code for note in trace.notes}


def outcome(path):
    """The number of events, or the error's line."""
    try:
        return len(read_trace(str(path)))
    except TracediffError as error:
        return str(error)


def test_every_damage_is_a_line_or_a_trace(tmp_path):
    whole = write_nsys(tmp_path / "nsys.sqlite", STEPS).read_bytes()
    path = tmp_path / "damaged.sqlite"
    damaged = [whole[:size] for size in range(16, len(whole), 997)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :] for at in range(16, len(whole), 211)]
    for content in damaged:
        path.write_bytes(content)
        assert "\n" not in str(outcome(path))
