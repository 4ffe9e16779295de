"""Traces with more of something than programs have: bounded work, and a note on what was left out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from build_trace import annotation, call, document, kernel, op, python, step, write

import tracediff
from tracediff import bounds
from tracediff.aggregate.traceset import TraceSet


def loaded(path: Path, events: list) -> TraceSet:
    return tracediff.load(write(path / "trace.json", document([step(1, 0, 1000), *events])))


def noted(traces: TraceSet) -> dict[str, int]:
    return {note.code: note.count for profile in traces.profiles for note in profile.notes}


def test_scopes_nested_too_deep_count_as_time_of_the_scope_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SCOPES", 10)
    events = [op(f"aten::n{i}", 1 + i, 900 - 2 * i) for i in range(25)]
    events += [python(f"nn.Module: L{i}_0", 1 + i, 900 - 2 * i, i + 1, i or None) for i in range(25)]
    traces = loaded(tmp_path, events)
    assert noted(traces)["deep-scopes"] == 15 + 15  # operators and Python
    ops = traces.profiles[0].ops
    names = traces.profiles[0].names
    own = {names[n]: ns for n, ns in zip(ops.name.tolist(), ops.self_ns.tolist(), strict=True)}
    assert own["aten::n9"] == (900 - 18) * 1000
    assert own["aten::n10"] == 0
    assert sum(ns for name, ns in own.items() if name.startswith("aten")) == 900_000


def test_streams_and_devices_beyond_many_are_not_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PLACES", 3)
    events = [call("cudaLaunchKernel", 5, 1, 1)]
    events += [kernel("k", 10 + 5 * i, 5, 1, stream=i, device=i % 2) for i in range(8)]
    traces = loaded(tmp_path, events)
    assert noted(traces)["many-places"] == 5
    assert traces.profiles[0].origin.gpu_count == 2
    assert traces.profiles[0].busy_ns.tolist() == [40_000]


@pytest.mark.slow
def test_many_names_take_linear_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "trace.json", document([step(1, 0, 1000), *(annotation(f"a{i}", 1, 1) for i in range(40_000))])
    )
    before = time.process_time()
    tracediff.load(path)
    assert time.process_time() - before < 7  # comparing each name with each takes twice that
