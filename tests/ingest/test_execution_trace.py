"""Execution traces beside a profiler's trace: recorded here by torch, and damaged ones."""

import json
import shutil

import pytest
from build_trace import PROCESS, document, op, step, write
from with_torch import run_with_torch

from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.execution_trace import COLUMNS, EXECUTION_TRACE, OPENING, with_inputs
from tracediff.ingest.files.source import TraceFile, opens_with
from tracediff.ingest.model import categories as cat
from tracediff.ingest.read import read_trace

RECORD = """
import sys, torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10))
observer = ExecutionTraceObserver().register_callback(sys.argv[1] + "/et.json")
steps = schedule(wait=1, warmup=1, active=2, repeat=1)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=steps,
             execution_trace_observer=observer) as p:
    for _ in range(4):
        y = model(torch.randn(32, 3, 8, 8))
        z = torch.cat([y, y])[..., [0, 2]].sum()
        torch._foreach_add([y.detach(), y.detach()], 1.0)
        y.detach().to(torch.bfloat16).half()
        z.backward()
        p.step()
p.export_chrome_trace(sys.argv[1] + "/trace.json")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with trace.json, recorded with shapes, and et.json of the same run."""
    folder = tmp_path_factory.mktemp("recorded")
    run_with_torch(RECORD, folder).check_returncode()
    return folder


def inputs(trace):
    """(name, shapes, types, strides) of each operator."""
    columns = [trace.text_column(column, cat.CPU_OP) for column in COLUMNS]
    rows = trace.arguments[cat.CPU_OP].rows.tolist()
    return [(trace.names[trace.name[r]], *(trace.texts[c[r]] if c[r] >= 0 else None for c in columns)) for r in rows]


def without_shapes(folder, where):
    """The recorded trace as it is without record_shapes."""
    content = json.loads((folder / "trace.json").read_text())
    for event in content["traceEvents"]:
        for column in COLUMNS:
            event.get("args", {}).pop(column, None)
    (where / "trace.json").write_text(json.dumps(content))
    return where / "trace.json"


def notes(traces):
    return {n.message: n.count for n in traces.notes if n.code == EXECUTION_TRACE}


@pytest.mark.torch
def test_inputs_are_those_that_the_profiler_would_have_written(recorded, tmp_path):
    observed = TraceFile(str(recorded / "et.json"))
    assert opens_with(observed, OPENING.match)
    assert not opens_with(TraceFile(str(recorded / "trace.json")), OPENING.match)
    expected = inputs(read_trace(str(recorded / "trace.json")))
    trace = read_trace(str(without_shapes(recorded, tmp_path)))
    assert not any(entry[1] for entry in inputs(trace))
    assert inputs(with_inputs(trace, [observed])) == expected
    assert sum(entry[1] is not None for entry in expected) > 50


@pytest.mark.torch
def test_a_folder_with_an_execution_trace_loads_and_says_what_was_taken_from_it(recorded, tmp_path):
    (whole,) = load_sets([recorded])
    assert notes(whole) == {"execution traces were found beside the traces: they give the shapes that a trace lacks": 1}
    assert len(whole.profiles) == 1
    without_shapes(recorded, tmp_path)
    shutil.copy(recorded / "et.json", tmp_path)
    (filled,) = load_sets([tmp_path])
    assert notes(filled)["shapes of operators were taken from et.json"] > 50
    calls = [
        [p.texts[c] if c >= 0 else None for c in p.calls.shapes.tolist()]
        for p in (whole.profiles[0], filled.profiles[0])
    ]
    assert calls[0] == calls[1]


def observed(pid=PROCESS, **changes):
    """An execution trace of one aten::mm, record function id 7."""
    attrs = [{"name": "rf_id", "type": "uint64", "value": 7}]
    tensors = {"types": ["Tensor(float)", "Int"], "shapes": [[2, 3], []], "strides": [[3, 1], []]}
    node = {"id": 2, "name": "aten::mm", "ctrl_deps": 1, "inputs": tensors, "attrs": attrs}
    return {"schema": "1.1.1-chakra.0.0.4", "pid": pid, "nodes": [node | changes]}


@pytest.mark.parametrize(
    ("content", "shapes"),
    [
        (json.dumps(observed()), "[[2, 3], []]"),
        (json.dumps(observed(pid=PROCESS + 1)), None),  # of another rank
        (json.dumps(observed(name="aten::add")), None),
        (json.dumps(observed(attrs=[])), None),
        (json.dumps(observed(attrs=[{"name": "rf_id", "value": "seven"}])), None),
        (json.dumps(observed())[:-20], None),
        (json.dumps(observed(inputs=None)), None),
        (json.dumps(observed() | {"nodes": []}), None),
    ],
)
def test_only_the_same_operator_of_the_same_process_is_taken_and_damage_is_no_fault(tmp_path, content, shapes):
    write(
        tmp_path / "trace.json",
        document([step(1, 0, 100), op("aten::mm", 10, 20, **{"Record function id": 7}), op("aten::mm", 40, 20)]),
    )
    (tmp_path / "et.json").write_text(content)
    (traces,) = load_sets([tmp_path])
    (profile,) = traces.profiles
    assert [profile.texts[c] for c in profile.calls.shapes.tolist() if c >= 0] == ([shapes] if shapes else [])
    assert sum(notes(traces).values()) >= 1


def test_execution_traces_alone_are_no_set(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(observed()))
    with pytest.raises(TracediffError, match=r"none of its 2 files is a trace \(an execution trace"):  # why none is
        load_sets([tmp_path])
    with pytest.raises(TracediffError, match="an execution trace"):
        load_sets([tmp_path / "a.json"])


@pytest.mark.parametrize(
    "content",
    [
        "[[1, 2], [[3, 4], [5, 6]]]",
        '[[12, "CREATE", 4, 0]]',
        '{"segments": [], "device_traces": [[{"action": "alloc"}]]}',
    ],
)
def test_memory_in_other_forms_of_json_is_passed_over(tmp_path, content):
    write(tmp_path / "trace.json", document([step(1, 0, 100), op("aten::mm", 10, 20)]))
    (tmp_path / "memory.json").write_text(content)
    (traces,) = load_sets([tmp_path])
    assert len(traces.profiles) == 1
    assert [n.code for n in traces.notes if n.code == "not-a-trace"] == ["not-a-trace"]
