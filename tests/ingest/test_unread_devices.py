"""Events on devices that are not supported yet are counted, whatever their shape; nothing else is taken for them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from build_trace import Event, call, document, event, kernel, memcpy, op, process_name, rows, step, text, write
from rich.console import Console

import tracediff
from tracediff.analysis import analyze_set
from tracediff.errors import NotATrace
from tracediff.ingest.read import read_trace
from tracediff.report import analysis

DEVICE = 3170820512


def bare(name: str, ts: Any, dur: Any, pid: Any = DEVICE, **args: Any) -> Event:
    """A complete event without a category."""
    return {"ph": "X", "name": name, "pid": pid, "tid": 2, "ts": ts, "dur": dur, **({"args": args} if args else {})}


def label(labels: str, pid: Any = DEVICE) -> Event:
    return {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": labels}}


HOST = [step(1, 0, 100), op("aten::mm", 10, 20)]
TASKS = [bare("MatMulV2", "20.5", 30.25), bare("EVENT_WAIT", "60.125", 5)]


def unread(trace: tracediff.ingest.model.trace.Trace) -> dict[str, int]:
    found = {n.message.removeprefix("events of ").partition(" are not read")[0]: n for n in trace.notes}
    return {what: n.count for what, n in found.items() if n.code == "unread-device"}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([process_name("/device:TPU:0", DEVICE), *TASKS], {"TPU": 2}),
        ([*TASKS, label("NPU"), process_name("Fabric", DEVICE)], {"NPU": 2}),
        ([*TASKS, process_name("/device:TPU:0", DEVICE)], {"TPU": 2}),
        ([*TASKS, process_name("CANN", DEVICE), label("CPU")], {"CANN": 2}),
        ([bare("k", 20, 5, **{"Physic Stream Id": 2}), bare("k", 30, 5)], {"an unknown device": 1}),
        ([bare("k", 20, 5, **{"stream id": 0}), bare("k", 30, 5, device_id="npu:0")], {"an unknown device": 2}),
        ([event("tpu_task", "k", 20, 5, pid=9, stream=3), event("tpu_task", "k", 20, 5, pid=9)], {"tpu_task": 1}),
        ([event("x" * 99, "k", 20, 5, pid=9, device=0)], {"x" * 64: 1}),
        ([event("npu_op", "k", 20, 5, pid=9), label("NPU 0", 9)], {"npu_op": 1}),
    ],
)  # fmt: skip
def test_device_events_of_any_shape_are_counted(scratch: Path, events: list[Event], found: dict[str, int]) -> None:
    for layout in ("list", "kineto"):
        path = scratch / "trace.json"
        path.write_bytes(text(document([*HOST, *events]), layout))
        assert unread(read_trace(str(path))) == found
        assert unread(read_trace(str(path), 100, frozenset())) == found


@pytest.mark.parametrize(
    "events",
    [
        [call("cudaLaunchKernel", 1, 1, 7, stream=7, device=0), kernel("k", 5, 5, 7), memcpy("Memcpy HtoD", 11, 5)],
        [event("cuda_sync", "Stream Sync", 5, 5, device=0, stream=7), event("cuda_event", "e", 5, 5, device=0)],
        [event("overhead", "Buffer Flush", 5, 5, pid=-1), bare("x", 5, 5, pid=8), event("mine", "x", 5, 5)],
        [event("mine", "to(npu)", 5, 5, pid=8, device=0), label("CPU", 8), process_name("GPU", 8)],
        [{**event("ac2g", "ac2g", 5, 5, pid=0, stream=7), "ph": "s"}, label("GPU 0", 0)],
        [{**bare("HBM", 5, 5), "ph": "C", "args": {"KB": 1}}, label("NPU")],
    ],
)
def test_nothing_else_is_taken_for_a_device_that_is_not_read(read, events: list[Event]) -> None:
    assert unread(read(text(document([*HOST, *events, label("GPU 1", 1)])))) == {}


def test_compare_and_analyze_say_so_in_their_first_lines(tmp_path: Path) -> None:
    events = [process_name("/device:TPU:0", DEVICE), *HOST, *TASKS]
    path = write(tmp_path / "tpu.json", document(events), "list")
    plain = write(tmp_path / "cpu.json", document(HOST))
    with_gpu = write(tmp_path / "gpu.json", document([*events, kernel("k", 50, 5, 1)]))

    diff = tracediff.compare(str(plain), str(path))
    (reason,) = (r for r in diff.comparison.comparability.reasons if r.code == "unread-device")
    assert (reason.level, reason.control, reason.test) == ("caution", "none", "TPU")
    screen = StringIO()
    analysis.show(analyze_set(tracediff.load(str(path))), Console(width=100, file=screen))
    first = screen.getvalue().splitlines()[:6]
    caution = "device events (TPU) are not read"
    assert first[1].startswith("CPU only")
    assert f"{caution}: this is the host's side only" in first[4]
    markdown = analysis.to_markdown(analyze_set(tracediff.load(str(with_gpu))))
    assert "Caution" in markdown
    assert "side only" not in markdown


def test_a_file_of_nothing_else_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "tpu.json", document([process_name("/device:TPU:0", DEVICE), *TASKS]))
    with pytest.raises(NotATrace, match=r"devices that are not supported yet \(TPU\)"):
        tracediff.load(str(path))


def test_inputs_written_as_text_are_read(read, codes) -> None:
    written = {"Input Dims": "32,3;\r\n;\r\n7", "Input type": "float;\r\nScalarList;\r\nlong int"}
    usual = {"Input Dims": [[32, 3], [], [7]], "Input type": ["float", "ScalarList", "long int"]}
    scalar = {"Input Dims": "", "Input type": "c10::complex<float>"}
    one = {"Input Dims": "4096", "Input type": "double"}
    found = read(text(document([op("a", i, 1, **args) for i, args in enumerate((usual, written, scalar, one))])))
    kept = [row[-1] for row in rows(found)]
    assert kept[0] == kept[1]
    assert [{k: json.loads(v) for k, v in row.items()} for row in kept[2:]] == [
        {"Input Dims": [[]], "Input type": ["c10::complex<float>"]},
        {"Input Dims": [[4096]], "Input type": ["double"]},
    ]
    assert found.notes == []
    odd = ("1,,2", "1;2", "07", "-1", "1], [2", "9" * 5000, ",".join("1" * 99), "no list")
    events = [op("a", 0, 1, **{"Input Dims": value}) for value in odd]
    events += [op("a", 0, 1, **{"Input type": value}) for value in ("", "5", "null", "<b>", "a;b")]
    found = read(text(document(events)))
    assert [row[-1] for row in rows(found)] == [{}] * len(events)
    assert codes(found) == {"odd-arguments": len(events)}
