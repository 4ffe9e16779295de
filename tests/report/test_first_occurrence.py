"""Every member of a group says where it is: the event can be found in the file, on its stream or thread."""

import gzip
import json

import pytest
from real_sets import real_comparison
from traces import FOLDER, needs_traces

import tracediff
from tracediff.report.to_json import to_json

PAIRS = [
    ("bertsmall_h100", "bertsmall_mi300"),
    ("tinylm_compile", "tinylm_cudagraph"),
    ("resnet50_workers0", "resnet50_workers4"),
    ("hta_control", "hta_test"),
    ("dlrm_8ranks", "dlrm_8ranks"),
]


def events_of(folder):
    """(file, ts, name) → lane of every GPU event."""
    found = {}
    for file in folder.iterdir():
        data = file.read_bytes()
        document = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
        for event in document["traceEvents"] if isinstance(document, dict) else document:
            if event.get("ph") == "X" and event.get("cat", "").lower() in (
                "kernel",
                "gpu_memcpy",
                "gpu_memset",
                "memcpy",
                "memset",
            ):
                found[file.name, float(event["ts"]), event["name"]] = event["args"].get("stream")
    return found


@needs_traces
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_first_event_of_each_member_is_in_the_file(pair):
    document = json.loads(to_json(real_comparison(*pair)))
    checked = 0
    for side, name in zip(("control", "test"), pair, strict=True):
        events = events_of(FOLDER / name)
        for group in document["gpu_time"]["groups"]:
            for member in group[side]:
                first = member["first"]
                assert events[first["file"], first["ts"], member["raw_name"]] == first["stream"]
                assert first["thread"] is None
                checked += 1
    assert checked > 50


def test_without_a_gpu_it_is_a_thread():
    sample = "sample_traces/vit"
    document = json.loads(tracediff.compare(f"{sample}/eager", f"{sample}/compile").to_json())
    members = [m for g in document["host_time"]["groups"] for m in g["control"]]
    assert members
    assert all(m["first"]["stream"] is None and int(m["first"]["thread"]) > 0 for m in members)
    assert {m["first"]["file"] for m in members} == {"run 1/rank0.pt.trace.json.gz"}
