"""Devices whose events do not have Kineto's categories: real files, whose sums were computed by plain scripts."""

import gzip
import json
from decimal import Decimal

import numpy as np
import pytest
from build_trace import MAIN, PROCESS, call, document, kernel, op, process_name, step, write
from formats import FOLDER, needs_formats

from tracediff.arrays import MISSING
from tracediff.engine import load_sets
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace
from tracediff.profile.build import ARGUMENTS
from tracediff.profile.placement.gpu_events import gpu_events
from tracediff.profile.placement.steps import find_steps
from tracediff.runtimes import is_communication

ASCEND = [FOLDER / "ascend" / "level1" / f"rank{rank}_trace_view.json.gz" for rank in (0, 1)]
POOL = "aclnnMaxPool2dWithMask_MaxPoolWithArgmaxV1AiCore_MaxPoolWithArgmaxV1"
MTIA = FOLDER / "mtia" / "mtia_inference_rank_0.json.gz"


def plain_events(path):
    with gzip.open(path) as file:
        document = json.load(file, parse_float=Decimal)
    return document if isinstance(document, list) else document["traceEvents"]


def union_ns(trace, rows):
    total, end = 0, None
    for start, length in sorted(zip(trace.ts[rows].tolist(), trace.dur[rows].tolist(), strict=True)):
        begin = start if end is None else max(start, end)
        end = max(start + length, begin)
        total += end - begin
    return total


def path_of(profile, node):
    """The names of a node of the call tree and of those around it."""
    while node >= 0:
        yield profile.names[profile.calls.name[node]]
        node = profile.calls.parent[node]


def work(trace):
    rows = np.flatnonzero(np.isin(trace.category, cat.GPU))
    is_communication_row = trace.name_matches(is_communication, rows)
    is_copy = trace.category[rows] == cat.MEMCPY
    return rows[~is_communication_row & ~is_copy], rows[is_communication_row], rows[is_copy]


@needs_formats
@pytest.mark.parametrize(
    ("path", "computing", "communication", "exposed"),
    [(ASCEND[0], 8_873_756, 105_991_878, 101_963_203), (ASCEND[1], 8_878_295, 100_375_286, 96_359_047)],
)
def test_ascend_computes_and_communicates_as_long_as_torch_npu_says(path, computing, communication, exposed):
    trace = read_trace(str(path))
    compute, collectives, _ = work(trace)
    assert union_ns(trace, compute) == pytest.approx(computing, rel=2e-3)
    assert union_ns(trace, collectives) == pytest.approx(communication, rel=1e-6)
    hidden = union_ns(trace, compute) + union_ns(trace, collectives) - union_ns(trace, [*compute, *collectives])
    assert union_ns(trace, collectives) - hidden == pytest.approx(exposed, rel=2e-3)


@needs_formats
@pytest.mark.parametrize("path", ASCEND)
def test_no_task_of_ascend_is_lost(path):
    """Every event of a stream is work, or a mark that a health note counts."""
    trace = read_trace(str(path))
    hardware = {e["pid"] for e in plain_events(path) if e["ph"] == "M" and e["args"].get("name") == "Ascend Hardware"}
    of_streams = [pid in hardware for pid in trace.ids]
    rows = np.flatnonzero(np.array(of_streams)[trace.pid] & (trace.dur >= 0))
    tasks = [e for e in plain_events(path) if e["ph"] == "X" and e["pid"] in hardware]
    assert len(rows) == len(tasks)
    assert int(trace.dur[rows].sum()) == pytest.approx(
        float(sum(Decimal(e["dur"]) for e in tasks) * 1000), abs=len(rows)
    )
    marks = trace.categories.index("privateuse1_marks")
    assert np.isin(trace.category[rows], (*cat.GPU, marks)).all()
    (note,) = [n for n in trace.notes if n.code == "device-marks"]
    assert note.count == (trace.category == marks).sum()


@needs_formats
def test_work_on_ascend_belongs_to_the_operator_that_enqueued_it():
    (traces,) = load_sets([ASCEND[0]])
    (profile,) = traces.profiles
    assert "unread-device" not in {note.code for note in traces.notes}
    owners = {}
    for node, name in zip(profile.kernels.node.tolist(), profile.kernels.name.tolist(), strict=True):
        owners.setdefault(profile.names[name], set()).update(path_of(profile, node))
    assert "aten::mm" in owners["aclnnMm_MatMulCommon_MatMulV2"]
    assert "aten::addmm" in owners["aclnnAddmm_MatMulCommon_MatMulV2"]
    assert "aten::max_pool2d_with_indices" in owners[POOL]
    assert not {name for name, path in owners.items() if not path}


def launches(trace):
    """(task, start of its launch) of each GPU event, in order of time."""
    gpu = gpu_events(trace, find_steps(trace, None, Notes()), Notes())
    begins = np.where(gpu.launch >= 0, trace.ts[gpu.launch], MISSING)
    return sorted(zip(trace.ts[gpu.rows].tolist(), begins.tolist(), strict=True))


@needs_formats
@pytest.mark.parametrize("path", ASCEND)
def test_without_calls_of_cann_arrows_lead_from_operators_to_their_tasks(path, tmp_path):
    """Level 0 records what level 1 does less the calls; arrows of both kinds, or of one, say the same."""
    events = plain_events(path)
    (cann,) = {e["pid"] for e in events if e["ph"] == "M" and e["args"].get("name") == "CANN"}
    level0 = [e for e in events if not (e["ph"] == "X" and e["pid"] == cann)]
    expected, file = launches(read_trace(str(path))), tmp_path / "trace_view.json"
    assert MISSING not in dict(expected).values()
    for arrows in ({"HostToDevice", "async_npu"}, {"async_npu"}):
        kept = [e for e in level0 if e["ph"] not in ("s", "f") or e["cat"] in arrows]
        file.write_text(json.dumps(kept, default=float))
        level0_trace = read_trace(str(file), only=ARGUMENTS)
        assert "calls-not-recorded" in {note.code for note in level0_trace.notes}
        found = launches(level0_trace)
        unknown = [task for task, begin in found if begin == MISSING]
        assert len(unknown) == (0 if "HostToDevice" in arrows else 5)  # copies of a collective
        assert [one for one in found if one[0] not in unknown] == [one for one in expected if one[0] not in unknown]


@pytest.mark.parametrize("queue", [True, False])
def test_an_arrow_makes_the_operators_work_a_part_of_the_step(tmp_path, queue):
    device = 7001
    arrow = {"ph": "s", "id": 2**60, "cat": "async_npu", "name": "torch_to_npu", "ts": 5, "pid": 100, "tid": 100}
    events = [
        process_name("Ascend Hardware", device),
        step(1, 0, 900),
        op("aten::mm", 5, 40),
        {**arrow, "pid": PROCESS, "tid": MAIN},
        {**arrow, "ph": "f", "bp": "e", "ts": 70, "pid": device, "tid": 2},
        {"ph": "X", "name": "MatMul", "ts": 70, "dur": 200, "pid": device, "tid": 2, "args": {"Task Type": "AI_CORE"}},
    ]
    if queue:
        events.append({**call("Enqueue", 10, 3), "cat": "enqueue", "args": {"correlation_id": 1}})
    (traces,) = load_sets([str(write(tmp_path / "trace_view.json", document(events)))])
    (profile,) = traces.profiles
    states = dict(zip(profile.state_names, profile.state_ns[0].tolist(), strict=True))
    assert (profile.kernels.step.tolist(), profile.kernels.total_ns.tolist()) == ([0], [200_000])
    assert "aten::mm" in path_of(profile, profile.kernels.node[0])
    assert "spilled-kernels" not in {note.code for note in traces.notes}
    begun, enqueued = (13, 3) if queue else (45, 0)
    assert (states["gpu_queued"], states["launching"]) == ((70 - begun) * 1000, enqueued * 1000)


@needs_formats
def test_mtia_copies_have_directions_and_bytes_and_waits_are_no_work():
    trace = read_trace(str(MTIA))
    events = [e for e in plain_events(MTIA) if e.get("cat") == "mtia_ccp_events"]
    for direction in ("HOST_TO_DEVICE", "DEVICE_TO_HOST"):
        copies = [e for e in events if e["name"] == "dma_request" and e["args"]["direction"] == direction]
        rows = np.flatnonzero(trace.name_matches(f"dma_request ({direction})".__eq__))
        assert (trace.category[rows] == cat.MEMCPY).all()
        assert len(rows) == len(copies)
        assert trace.integer_column("bytes", cat.MEMCPY)[rows].sum() == sum(int(e["args"]["size"]) for e in copies)
    kernels = np.flatnonzero(trace.category == cat.KERNEL)
    by_name = [e for e in events if e["name"] in ("remote", "merge", "pe_exe")]
    assert (len(kernels), int(trace.dur[kernels].sum())) == (97, int(sum(e["dur"] for e in by_name) * 1000))
    assert (trace.category == trace.categories.index("mtia_marks")).sum() == 291 + 48
    assert len(events) == 1313
    joined = {int(c) for c in trace.integer_column("correlation", cat.KERNEL)[kernels]} - {MISSING}
    assert joined <= set(trace.integer_column("correlation", *cat.CALLS).tolist())


def test_refiled_events_keep_their_arguments(tmp_path):
    events = [
        {"ph": "X", "cat": c, "name": n, "ts": i, "dur": 1, "pid": 1, "tid": 1, "args": {"stream": i, "what": f"w{i}"}}
        for i, (c, n) in enumerate([("kernel", "k"), ("own", "a"), ("kernel", "k"), ("own", "b")])
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = read_trace(str(path))
    before = [trace.arguments_of(row) for row in range(4)]
    category = trace.category.copy()
    category[1] = cat.KERNEL
    trace.refile(category)
    assert [trace.arguments_of(row) for row in range(4)] == before
    trace.set_integers("correlation", np.array([1, 3]), np.array([7, 8]))
    assert [trace.arguments_of(row).get("correlation") for row in range(4)] == [None, 7, None, 8]


def test_xpu_is_read_by_its_categories(tmp_path):
    """No published trace of one could be had: this is Kineto's specification."""
    events = [
        step(1, 0, 900),
        op("aten::mm", 5, 60),
        {**call("urEnqueueKernelLaunch", 10, 20, 1), "cat": "xpu_runtime"},
        kernel("gemm_kernel", 40, 300, 1),
        {**call("zeCommandQueueSynchronize", 100, 250), "cat": "xpu_runtime"},
    ]
    (traces,) = load_sets([str(write(tmp_path / "trace.json", document(events)))])
    (profile,) = traces.profiles
    assert {note.code for note in traces.notes} <= {"no-steps"}
    states = dict(zip(profile.state_names, profile.state_ns[0].tolist(), strict=True))
    assert states["gpu_compute"] == 300_000
    assert states["synchronising"] == 10_000  # behind the kernel
    assert next(path_of(profile, profile.kernels.node[0])) == "aten::mm"
