"""Files with launches and without a GPU event: the profiler could not record GPU activity."""

import json

import pytest
from build_trace import call, document, kernel, op, step, write

import tracediff
from tracediff.analysis import analyze_set
from tracediff.present.setting import facts
from tracediff.report.analysis import head

LAUNCHES = [
    event
    for n in range(4)
    for event in (
        step(n, 1000 * n, 900),
        op("aten::mm", 1000 * n + 5, 400),
        *(call("cudaLaunchKernel", 1000 * n + 10 + 3 * k, 2, 1000 * n + k) for k in range(105)),
        call("cudaStreamSynchronize", 1000 * n + 500, 100),
    )
]
DEVICE = {"deviceProperties": [{"id": 0, "name": "NVIDIA GeForce RTX 3060"}]}
NOT_RECORDED = "GPU activity was not recorded (420 launches)"


def trace(folder, name, events=LAUNCHES, **meta):
    return str(write(folder / name / "trace.json", document(events, **meta)))


def test_launches_without_gpu_events_are_no_work_on_the_cpu(tmp_path):
    path, named = trace(tmp_path, "control"), trace(tmp_path, "test", **DEVICE)
    first = head(analyze_set(tracediff.load(path)))
    assert first.facts.startswith(f"{NOT_RECORDED} · 1 run")
    assert first.caution == f"Caution: {NOT_RECORDED}: this is the host's side only"
    diff = tracediff.compare(path, named)
    (reason,) = (r for r in diff.comparison.comparability.reasons if r.code == "gpu-not-recorded")
    assert (reason.level, reason.control, reason.test) == ("caution", "420 launches", "420 launches")
    assert facts(diff.comparison).startswith(f"{NOT_RECORDED} → NVIDIA GeForce RTX 3060: {NOT_RECORDED} · ")


def test_one_side_without_gpu_activity_is_refused_with_the_reason(tmp_path):
    recorded = [*LAUNCHES, *(kernel("gemm", 1000 * n + 50, 300, 1000 * n) for n in range(4))]
    diff = tracediff.compare(trace(tmp_path, "control", recorded), trace(tmp_path, "test"))
    levels = {r.code: (r.level, r.control, r.test) for r in diff.comparison.comparability.reasons}
    assert levels["one-side-no-gpu"][0] == "refused"
    assert levels["gpu-not-recorded"] == ("caution", "none", "420 launches")


@pytest.mark.parametrize(
    ("properties", "shown"),
    [
        ({}, "CPU"),
        (DEVICE, "CPU only (no work of the NVIDIA GeForce RTX 3060 recorded)"),
        ({"deviceProperties": [{"id": 0, "name": ""}]}, "CPU"),
    ],
)
def test_a_device_without_events_is_named(tmp_path, properties, shown):
    events = [e for e in LAUNCHES if e["cat"] != "cuda_runtime"]
    path = trace(tmp_path, "set", events, **properties)
    diff = tracediff.compare(path, path)
    assert facts(diff.comparison).partition(" · ")[0] == shown
    assert json.loads(diff.to_json())["control"]["gpu"] == []  # whose peak no rate of the host is compared with
