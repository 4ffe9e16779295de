"""Compiled kernels of a trace with the lines of code of a log of torch.compile."""

import json
import os
import subprocess
import sys
from textwrap import indent

import pytest
from build_trace import annotation, call, document, kernel, op, python, step, write
from traces import FOLDER, needs_traces

import tracediff
from tracediff.aggregate.snapshot import read_snapshot, write_snapshot
from tracediff.diff.views import UNKNOWN, summed
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.placement.calls import CALL_OF_GRAPH

KERNEL = "triton_poi_fused_mul_relu_0"
ADD = "triton_poi_fused_add_1"
ONE, TWO = "## Call CompiledFxGraph fone ##", "## Call CompiledFxGraph ftwo ##"
WITHOUT_KERNELS = "the traces name no compiled kernel, so logs of torch.compile give no line of code"
STACKS = "inductor_provenance_tracking_kernel_stack_traces"


def record(payload, frame=0, **fields):
    head = json.dumps({**fields, "frame_id": frame, "frame_compile_id": 0})
    return f"V1206 15:18:15.925000 15 torch/_dynamo/utils.py:1288] {head}\n{indent(payload, chr(9), lambda _: True)}\n"


def graph(line, frame=0, names=(KERNEL,), key=None, phase="inference", **fields):
    code = [f"# AOT ID: ['{frame}_{phase}']"]
    for name in names:
        code += ["# Topologically Sorted Source Nodes: [x], Original ATen: [aten.mul.Tensor, aten.view, aten.relu]",
                 f"{name} = async_compile.triton('{name}', '''"]  # fmt: skip
    stacks = {f"{name}:1": [f'  File "/u/model.py", line {line}, in forward\n'] for name in names}
    text = record("\n".join(code), frame, inductor_output_code={}, **fields)
    text += record(json.dumps(stacks), frame, artifact={"name": STACKS}, **fields)
    return text + (record(f'{{"key": "{key}"}}', frame, artifact={"name": "fx_graph_cache_miss"}) if key else "")


def broken(line, number=1):
    breaks = record(
        f"Graph break in user code at /u/model.py:{line}\nreason\n", artifact={"name": "dynamo_graph_break_reason"}
    )
    again = [record("0/0: x == 1", frame, artifact={"name": "recompile_reasons"}) for frame in range(number)]
    return breaks + "".join(again)


def trace(folder, *names, around=(), name="trace.json", rank=None):
    events = [step(1, 0, 90), *(op(scope, 1, 80) for scope in around)]
    for k, launched in enumerate(names or (KERNEL,), 1):
        events += [call("cudaLaunchKernel", 10 * k, 2, k), kernel(launched, 100 + 10 * k, 5, k)]
    folder.mkdir(exist_ok=True, parents=True)
    extra = {"distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl"}} if rank is not None else {}
    return write(folder / name, {**document(events), **extra})


def load(where, log=None):
    (traces,) = load_sets([str(where)], LoadOptions((SetOptions(torch_trace=log and str(log)),)))
    return traces


def logged(path, text):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return path


def lines(traces):
    comparison = compare_sets(traces, traces)
    return {line.name: line.count.control // comparison.scale for line in summed(comparison.work, "line")}


def notes(traces):
    return [(note.message, note.count) for note in traces.notes if note.code == "torch-log"]


def named(number, whole):
    return f"{number} of {whole} compiled kernels have their line of code from logs of torch.compile", 1


def test_a_kernel_runs_for_its_lines_of_the_log(tmp_path):
    path = trace(tmp_path, KERNEL, KERNEL, ADD, "ampere_sgemm", "triton_poi_fused_neg_9")
    log = logged(tmp_path / "log.txt", graph(41, names=(KERNEL, ADD)))
    traces = load(path, log)
    assert lines(traces) == {"model.py(41): forward": 3, UNKNOWN: 2}
    assert notes(traces) == [named(2, 3)]
    items = [item for group in compare_sets(traces, traces).work.groups for item in group.items[0]]
    assert {item.fused for item in items} == {("mul", "relu"), ("neg",), ()}
    assert lines(tracediff.load(path, torch_trace=log)) == lines(traces)
    assert lines(load(path)) == {UNKNOWN: 5}


def test_several_lines_of_a_kernel_are_named_up_to_three(tmp_path):
    stacks = {f"{KERNEL}:1": [f'File "/u/m.py", line {line}, in f' for line in (5, 3, 4, 9)]}
    text = graph(1) + record(json.dumps(stacks), artifact={"name": STACKS})
    assert lines(load(trace(tmp_path), logged(tmp_path / "log.txt", text))) == {
        "m.py(3): f, m.py(4): f, m.py(5): f, …": 1
    }


def test_a_name_that_graphs_share_is_of_the_graph_that_is_called(tmp_path):
    log = logged(tmp_path / "log.txt", graph(1, 0, key="fone") + graph(2, 1, key="ftwo"))
    assert lines(load(trace(tmp_path, around=(TWO,)), log)) == {"model.py(2): forward": 1}
    both = load(trace(tmp_path, around=(ONE, TWO)), log)
    assert (lines(both), notes(both)) == ({UNKNOWN: 1}, [named(0, 1)])
    assert lines(load(trace(tmp_path), log)) == {UNKNOWN: 1}  # no call of a graph is recorded
    same = logged(tmp_path / "log.txt", graph(1, 0, key="fone") + graph(1, 1, key="ftwo"))
    assert lines(load(trace(tmp_path, around=(ONE, TWO)), same)) == {"model.py(1): forward": 1}


MATMULS = """    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(a, b)
    # [Provenance debug handles] extern_kernels.mm:2
    extern_kernels.mm(b, c)
    # [Provenance debug handles] torch.ops.aten.sort.stable:3
    buf = torch.ops.aten.sort.stable(d)
"""


def matmuls(*lines, key="fone"):
    handles = ("extern_kernels.mm:1", "extern_kernels.mm:2", "torch.ops.aten.sort.stable:3")
    frames = [[f'  File "/u/model.py", line {line}, in forward\n'] for line in lines]
    stacks = dict(zip(handles, frames, strict=True))
    text = record(MATMULS, inductor_output_code={}) + record(json.dumps(stacks), artifact={"name": STACKS})
    return text + record(f'{{"key": "{key}"}}', artifact={"name": "fx_graph_cache_miss"})


def with_operators(folder, *names, steps=2, caller=None):
    """Each step runs the graph ``fone``, which calls ``names``, each with one inside; one is beside the graph."""
    events = []
    for number in range(steps):
        at = 1000 * number
        events += [step(number + 1, at, 900), annotation(ONE, at + 10, 800), op("aten::mm", at + 850, 5)]
        events += [python(caller, at + 5, 890, number + 1)] if caller else []
        for k, name in enumerate(names):
            events += [op(name, at + 50 + 20 * k, 10), op("aten::copy_", at + 52 + 20 * k, 2)]
    folder.mkdir(exist_ok=True, parents=True)
    return write(folder / "trace.json", document(events))


def operators(named):
    """The note that so many of so many have a line."""
    return f"{named} calls of operators by compiled graphs have their line of code from logs of torch.compile", 1


def test_operators_that_a_graph_calls_run_for_their_lines(tmp_path):
    log = logged(tmp_path / "log.txt", matmuls(7, 8, 9))
    traces = load(with_operators(tmp_path, "aten::mm", "aten::sort", "aten::mm"), log)
    named = {f"model.py({line}): forward": 2 for line in (7, 8, 9)}  # each with what is inside of it
    assert lines(traces) == {**named, UNKNOWN: 1}
    assert operators("3 of 3") in notes(traces)
    write_snapshot(traces, tmp_path / "a.tdprof.gz")
    restored = load(tmp_path / "a.tdprof.gz")
    assert (lines(restored), notes(restored)) == (lines(traces), notes(traces))
    again = load(tmp_path / "a.tdprof.gz", log)
    assert (lines(again), notes(again)) == (lines(traces), notes(traces))
    write_snapshot(load(with_operators(tmp_path, "aten::mm", "aten::sort", "aten::mm")), tmp_path / "b.tdprof.gz")
    assert lines(load(tmp_path / "b.tdprof.gz", log)) == lines(traces)


@needs_traces
def test_kernels_of_operators_that_a_graph_calls_on_a_gpu_run_for_their_lines(tmp_path):
    where = FOLDER / "triton_mi300"
    (found,) = {key[1] for name in load(where).profiles[0].names if (key := CALL_OF_GRAPH.match(name))}
    handles = [f"extern_kernels.mm:{k}" for k in range(7)]
    code = "".join(f"# [Provenance debug handles] {handle}\nextern_kernels.mm(a, b)\n" for handle in handles)
    stacks = {handle: [f'  File "/u/model.py", line {k}, in forward\n'] for k, handle in enumerate(handles)}
    text = record(code, inductor_output_code={}) + record(json.dumps(stacks), artifact={"name": STACKS})
    text += record(json.dumps({"key": found}), artifact={"name": "fx_graph_cache_hit"})
    joined = lines(load(where, logged(tmp_path / "log.txt", text)))
    assert {line: joined[line] for line in joined if line != UNKNOWN} == {
        f"model.py({k}): forward": 1 for k in range(7)
    }


def test_the_caller_of_a_graph_is_not_the_line_of_what_it_calls(tmp_path):
    path = with_operators(tmp_path, "aten::mm", "aten::sort", "aten::mm", caller="/u/train.py(3): step")
    assert lines(load(path)) == {"train.py(3): step": 7}
    joined = lines(load(path, logged(tmp_path / "log.txt", matmuls(7, 8, 9))))
    assert joined == {**{f"model.py({line}): forward": 2 for line in (7, 8, 9)}, "train.py(3): step": 1}


def test_a_graph_that_calls_an_operator_more_often_than_the_log_has_no_line_for_it(tmp_path):
    path = with_operators(tmp_path, "aten::mm", "aten::sort")
    different = load(path, logged(tmp_path / "log.txt", matmuls(7, 8, 9)))
    assert lines(different) == {"model.py(9): forward": 2, UNKNOWN: 3}
    assert operators("1 of 2") in notes(different)
    same = load(path, logged(tmp_path / "log.txt", matmuls(7, 7, 9)))
    assert lines(same) == {"model.py(7): forward": 2, "model.py(9): forward": 2, UNKNOWN: 1}


def test_calls_of_another_graph_or_whose_logs_differ_have_no_line(tmp_path):
    path = with_operators(tmp_path, "aten::mm", "aten::mm", "aten::sort")
    assert lines(load(path, logged(tmp_path / "log.txt", matmuls(7, 8, 9, key="ftwo")))) == {UNKNOWN: 7}
    folder = tmp_path / "logs"
    logged(folder / "a.log", matmuls(7, 8, 9))
    logged(folder / "b.log", matmuls(7, 6, 9))
    assert lines(load(path, folder)) == {"model.py(9): forward": 2, UNKNOWN: 5}


def test_phases_tell_kernels_of_a_name_apart(tmp_path):
    log = logged(tmp_path / "log.txt", graph(1, 0, phase="forward") + graph(2, 1, phase="backward"))
    events = [step(1, 0, 90), op("aten::mm", 1, 8), call("cudaLaunchKernel", 2, 2, 1), kernel(KERNEL, 100, 5, 1),
              op("autograd::engine::evaluate_function: CompiledFunctionBackward", 20, 9, tid=101),
              call("cudaLaunchKernel", 21, 2, 2, tid=101), kernel(KERNEL, 110, 5, 2)]  # fmt: skip
    path = write(tmp_path / "trace.json", document(events))
    assert lines(load(path, log)) == {"model.py(1): forward": 1, "model.py(2): forward": 1}


def test_the_own_line_of_the_trace_comes_first(tmp_path):
    events = [step(1, 0, 90), python("/u/own.py(7): f", 1, 20, 1), op(KERNEL, 2, 8), call("cudaLaunchKernel", 3, 2, 1),
              kernel(KERNEL, 100, 5, 1)]  # fmt: skip
    path = write(tmp_path / "trace.json", document(events))
    assert lines(load(path, logged(tmp_path / "log.txt", graph(41)))) == {"own.py(7): f": 1}


def test_a_log_of_another_run_is_not_used(tmp_path):
    log = logged(tmp_path / "log.txt", graph(41, names=(ADD,), key="ftwo") + broken(7))
    other = [("logs of torch.compile are of another run or of other ranks, and were not used", 1)]
    for around in ((), (ONE,)):
        traces = load(trace(tmp_path, around=around), log)
        assert (lines(traces), notes(traces), traces.torch_log) == ({UNKNOWN: 1}, other, None)
    eager = load(trace(tmp_path, "ampere_sgemm"), log)  # nothing tells
    none = [(text, 1) for text in ("graph break at model.py:7: reason", "recompiled x == 1", WITHOUT_KERNELS)]
    assert notes(eager) == none
    assert notes(load(trace(tmp_path, "ampere_sgemm", around=(TWO,)), log)) == none


def test_each_rank_has_its_log(tmp_path):
    for rank in (0, 1):
        trace(tmp_path / "set", name=f"rank{rank}.json", rank=rank)
        text = graph(41, rank=rank) + broken(7 + rank) + broken(20)
        logged(tmp_path / "set" / "torch_trace" / f"dedicated_log_torch_trace_rank_{rank}_x.log", text)
    both = load(tmp_path / "set")
    assert lines(both) == {"model.py(41): forward": 1}
    assert notes(both)[1:] == [
        ("graph break at model.py:20: reason", 1),
        ("graph break at model.py:7: reason", 1),
        ("graph break at model.py:8: reason", 1),
        ("recompiled x == 1", 1),
    ]
    (one,) = load_sets([str(tmp_path / "set")], LoadOptions((SetOptions(ranks=frozenset({1})),)))
    assert [text for text, _ in notes(one) if "graph break" in text] == [
        "graph break at model.py:20: reason", "graph break at model.py:8: reason"]  # fmt: skip


def test_sides_that_break_or_recompile_differently(tmp_path):
    path = trace(tmp_path)
    logs = [logged(tmp_path / f"{k}.txt", graph(41) + text) for k, text in enumerate((broken(7, 3), broken(9), ""))]
    many, few, none = (load(path, log) for log in logs)
    facts = {fact.code: fact.text for fact in compare_sets(many, few).explanation.facts}
    assert facts["recompiles"] == "torch.compile recompiled 3 → 1 times, on trace for x == 1"
    assert "1 graph break: model.py:" in facts["graph-breaks"]
    codes = {fact.code for fact in compare_sets(few, few).explanation.facts}
    assert not codes & {"recompiles", "graph-breaks"}
    assert "recompiles" not in {fact.code for fact in compare_sets(few, load(path)).explanation.facts}
    judged = tracediff.check(none, few, limits=["graph-breaks=0"])
    (limit,) = [limit for limit in judged.limits.to_dict("records") if limit["limit"] == "graph-breaks"]
    assert (limit["control"], limit["test"]) == (0, 1)


def test_a_snapshot_keeps_what_joined(tmp_path):
    log = logged(tmp_path / "log.txt", graph(41, names=(KERNEL, ADD), key="fone") + broken(7))
    traces = load(trace(tmp_path, around=(ONE,)), log)
    write_snapshot(traces, tmp_path / "a.tdprof.gz")
    restored = read_snapshot(TraceFile(str(tmp_path / "a.tdprof.gz")))
    assert restored.torch_log == traces.torch_log
    assert (lines(restored), restored.notes) == (lines(traces), traces.notes)
    assert ADD not in str(traces.torch_log)
    again = load(tmp_path / "a.tdprof.gz", log)
    assert (again.torch_log, again.notes) == (traces.torch_log, traces.notes)


@pytest.mark.parametrize("data", ["", "no log", "\t\t\n{", "[1]"])
def test_other_files_are_a_note(data, tmp_path):
    path = trace(tmp_path)
    traces = load(path, logged(tmp_path / "log.txt", data))
    assert lines(traces) == {UNKNOWN: 1}
    assert "log.txt is not a log of torch.compile, and was skipped" in [text for text, _ in notes(traces)]
    assert traces.torch_log is None


RECORDED = """
import sys, torch, torch._inductor.config
from torch.profiler import ProfilerActivity, profile
torch._inductor.config.cpp.enable_kernel_profile = True
def scaled(x, k):
    y = (x * 2).relu()
    torch._dynamo.graph_break()
    return y.sin() + k
compiled = torch.compile(scaled, dynamic=False)
x = torch.ones(64, 64)
with torch.no_grad():
    compiled(x, 1.0)
    compiled(x[:32], 1.0)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        compiled(x[:32], 1.0)
recorded.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.torch
@pytest.mark.slow
def test_a_log_that_torch_writes(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "scaled.py").write_text(RECORDED)
    own = {"TORCH_TRACE": str(tmp_path / "torch_trace"), "INDUCTOR_PROVENANCE": "1"}
    own["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, "scaled.py", str(tmp_path / "trace.json")]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **own}, check=True, timeout=300, capture_output=True)
    traces = load(tmp_path / "trace.json")
    found = lines(traces)
    assert {line for line in found if line.startswith("scaled.py")} == {
        "scaled.py(6): scaled", "scaled.py(8): torch_dynamo_resume_in_scaled_at_7"}  # fmt: skip
    assert traces.torch_log.graph_breaks[0].line == 7
    assert [(place.file, place.line) for place in traces.torch_log.recompiles] == [("scaled.py", 5), ("scaled.py", 7)]
    assert notes(traces)[0] == named(2, 2)
    assert min(traces.torch_log.compile_us) > 0
