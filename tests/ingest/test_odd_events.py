"""Valid JSON that no profiler should write, and old spellings that some did: read as far as it goes, and counted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from build_trace import MAIN, document, event, kernel, op, python, rows, step, text

from tracediff.arrays import MISSING
from tracediff.ingest.model import categories as cat


@pytest.mark.parametrize(
    "name", ["a" * 10_000, "", "\x00\x07\x1b[31m\u202e", "<script>alert(1)</script>", "名前 ✓ \U0001f600"]
)
def test_any_name_is_kept_as_it_is(read, name: str) -> None:
    for layout in ("kineto", "compact"):
        found = read(text(document([op(name, 0, 1), kernel(name, 1, 1, 1)]), layout), 4096)
        assert (found.names, found.notes) == ([name], [])


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("name", 5, "5"), ("name", None, ""), ("name", [1, {"a": 2}], '[1, {"a": 2}]'), ("name", True, "true"),
        ("cat", 7, "7"), ("cat", ["kernel"], '["kernel"]'),
        ("pid", 1.5, "1.5"), ("pid", [1], "[1]"), ("pid", {"a": 1}, '{"a": 1}'),
        ("pid", 2**70, str(2**70)), ("pid", -1, -1), ("pid", "1", "1"), ("pid", None, None),
        ("tid", 1.5, "1.5"), ("tid", "stream 7", "stream 7"),
    ],
)  # fmt: skip
def test_fields_of_any_type_are_kept_as_text(read, codes, field: str, value: Any, kept: Any) -> None:
    found = read(text(document([op("a", 0, 1), {**op("b", 1, 1.125), field: value}, op("c", 2, 1)])))
    column = {"name": 2, "cat": 3, "pid": 4, "tid": 5}[field]
    back = rows(found)[1]
    assert (back[column], type(back[column])) == (kept, type(kept))
    assert back[:2] == (1000, 1125)
    assert set(codes(found)) <= {"odd-fields"}


def test_numbers_written_as_text_are_numbers(read, codes) -> None:
    """ROCm's older tracer quotes them."""
    events = [
        {k: str(v) if k in ("ts", "dur") else v for k, v in e.items()}
        for e in (step(1, 0, 100.5), kernel("k", 1712195495519689, 2.125, 3))
    ]
    events[1]["ts"] = "1712195495519689.047"
    events[1]["args"] = {k: str(v) for k, v in events[1]["args"].items()}
    found = read(text(document(events)))
    assert (found.ts.tolist(), found.dur.tolist()) == ([0, 1712195495519689047], [100500, 2125])
    assert found.arguments_of(1) == {"correlation": 3, "device": 0, "stream": 7}
    assert codes(found) == {"odd-fields": 2}


def test_pointers_as_stream_of_a_hip_call_are_kept_as_text(read) -> None:
    found = read(
        text(
            document(
                [
                    event("cuda_runtime", "hipLaunchKernel", 0, 1, stream="0x7f00", correlation=1),
                    event("cuda_runtime", "x", 1, 1, stream=7),
                ]
            )
        )
    )
    assert [found.arguments_of(i)["stream"] for i in range(2)] == ["0x7f00", "7"]
    assert found.notes == []


def test_unknown_keys_of_an_event_are_passed_over_and_keys_may_come_in_any_order(read) -> None:
    plain_event = op("a", 5, 1.5, **{"External id": 1})
    for event_ in (
        {**plain_event, "sf": 1, "stack": ["a", {"b": 1}], "cname": "x"},
        dict(reversed(plain_event.items())),
        {"args": plain_event["args"], **plain_event},
    ):
        assert rows(read(text(document([event_])))) == rows(read(text(document([plain_event]))))


def test_old_categories_mean_todays(read) -> None:
    old = {
        "Operator": "cpu_op",
        "Kernel": "kernel",
        "Runtime": "cuda_runtime",
        "Memcpy": "gpu_memcpy",
        "Memset": "gpu_memset",
    }
    found = read(text(document([event(o, "x", i, 1) for i, o in enumerate(old)]), "list"))
    assert [found.categories[c] for c in found.category.tolist()] == list(old.values())
    annotations = ["ProfilerStep#5", "Optimizer.step#SGD.step", "enumerate(DataLoader)#_next", "aten::mm"]
    found = read(text(document([event("Operator", n, i, 1) for i, n in enumerate(annotations)]), "list"), 100)
    assert found.category.tolist() == [cat.ANNOTATION, cat.ANNOTATION, cat.ANNOTATION, cat.CPU_OP]


def test_events_without_a_category_are_told_by_their_phase(read) -> None:
    def bare(ph: str, name: str = "x") -> dict[str, Any]:
        return {"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 1}

    found = read(
        text(
            document(
                [
                    bare("X"),
                    bare("M"),
                    bare("C"),
                    bare("i"),
                    bare("I"),
                    bare("i", "[memory]"),
                    bare(""),
                    {"name": "no phase", "ts": 1},
                ]
            )
        )
    )
    named = ["unknown", "metadata", "counter", "instant", "instant", "cpu_instant_event", "instant", "instant"]
    assert [found.categories[c] for c in found.category.tolist()] == named


def test_devices_and_phases_without_a_reader_are_named_and_counted(read) -> None:
    events = [
        event("tpu_task", "x", 0, 1, pid=9, stream=1),
        event("hpu_task", "x", 1, 1, pid=9, stream=1),
        {**op("b", 2, 0), "ph": "B"},
        {**op("b", 3, 0), "ph": "E"},
        event("tpu_task", "x", 4, 1, pid=9, stream=1),
    ]
    notes = {
        (n.code, n.message.split()[2] if n.code == "unread-device" else ""): n.count
        for n in read(text(document(events))).notes
    }
    assert notes == {
        ("unread-device", "tpu_task"): 2,
        ("unread-device", "hpu_task"): 1,
        ("unread-phase", ""): 2,
    }


@pytest.mark.parametrize(
    ("written", "reduced"),
    [
        ("/home/me/proj/model.py(12): forward", "model.py(12): forward"),
        (r"C:\Users\me\model.py(12): forward", "model.py(12): forward"),
        ("site-packages/torch/nn/a.py(3): <lambda a/b>", "a.py(3): <lambda a/b>"),
        ("/secret/a\nb/model.py(1): f", "model.py(1): f"),
        ("model.py(12): forward", "model.py(12): forward"),
        ("<built-in method a/b>", "<built-in method a/b>"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
        ("/" * 5000 + "a.py(1): f", "a.py(1): f"),
    ],
)
def test_python_names_lose_the_folders_of_their_file(read, written: str, reduced: str) -> None:
    found = read(text(document([python(written, 0, 1, 1), python(reduced, 1, 1, 2)])))
    assert found.names == [reduced]
    assert found.name.tolist() == [0, 0]


def test_columns_have_the_types_and_lengths_they_promise(read) -> None:
    found = read(
        text(
            document(
                [
                    op("a", 0, 1, **{"External id": 1, "Input Dims": []}),
                    kernel("k", 1.5, 1, 1, **{"blocks per SM": 0.5}),
                    step(1, 0, 1),
                ]
            )
        )
    )
    assert {c.dtype for c in (found.ts, found.dur)} == {np.dtype(np.int64)}
    assert {c.dtype for c in (found.name, found.pid, found.tid)} == {np.dtype(np.int32)}
    assert {c.dtype for c in (found.category, found.phase)} == {np.dtype(np.int16)}
    assert {len(c) for c in (found.ts, found.dur, found.name, found.category, found.pid, found.tid, found.phase)} == {3}
    kernels = found.arguments[cat.KERNEL]
    assert (
        kernels.columns["correlation"].dtype,
        kernels.columns["blocks per SM"].dtype,
        found.arguments[0].columns["Input Dims"].dtype,
    ) == (
        np.int64,
        np.float64,
        np.int32,
    )
    assert found.integer_column("correlation", cat.KERNEL).tolist() == [MISSING, 1, MISSING]
    assert found.text_column("Input Dims", cat.CPU_OP).tolist() == [0, -1, -1]
    assert found.integer_column("nothing", cat.KERNEL).tolist() == [MISSING] * 3


def test_only_allow_listed_metadata_is_kept(read) -> None:
    secret = "hf_secret_token"
    found = read(
        text(
            document(
                [op("a", 0, 1)],
                env={"TOKEN": secret},
                host_name=secret,
                trace_id=secret,
                with_stack=1,
                deviceProperties=[{"id": 0, "name": "GPU", "uuid": secret}],
            )
        )
    )
    assert (found.meta.flags, found.meta.device_properties[0].name) == (("with_stack",), "GPU")
    assert secret not in repr(found)


def test_events_that_hold_many_lists_of_objects_are_read_in_linear_effort(read) -> None:
    """So long that no cut near the end of a chunk is right."""
    events = [op(f"op {i}", i, 1, items=[{"a": j, "b": [{"c": j}]} for j in range(300)]) for i in range(40)]
    found = read(text(document(events), "compact"), 2000)
    assert len(found) == 40
    assert json.loads(found.arguments_of(39)["items"]) == events[39]["args"]["items"]
    assert found.notes == []


def test_the_thread_keeps_its_id_whether_number_or_text(read) -> None:
    found = read(text(document([op("a", 0, 1, tid=MAIN), op("b", 1, 1, tid=str(MAIN)), op("c", 2, 1, tid=MAIN)])))
    assert found.tid[0] == found.tid[2] != found.tid[1]
