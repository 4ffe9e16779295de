"""What torch.profiler really writes, recorded here and read back."""

import shutil
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from collecting import written
from with_torch import run_with_torch

import tracediff
from tracediff.aggregate.averages import op_average
from tracediff.engine import load_sets
from tracediff.ingest.manifest import read_manifest

torch = pytest.importorskip("torch")

from tracediff.collect.compiler import without_importing_inductor  # noqa: E402

LOOP = """
import sys, torch
from pathlib import Path
out = Path(sys.argv[1])
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
def train_step():
    model(torch.ones(4, 8)).sum().backward()
"""


def in_a_process(folder, code, *arguments):
    """Profilers of one process share state: each test has its own."""
    return run_with_torch(LOOP + textwrap.dedent(code), folder, *arguments)


def counts(traces, name):
    average = op_average(traces)
    return average.rows["cpu_op", name][0] / average.denominator


def test_record_steps_writes_a_run_that_loads(tmp_path):
    code = """
    import tracediff
    for _ in range(2):
        with tracediff.record_steps(out, wait=1, warmup=1, active=4) as p:
            for _ in range(6):
                train_step()
                p.step()
    """
    result = in_a_process(tmp_path, code)
    assert result.returncode == 0, result.stderr
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "manifest.json",
        "run1/rank0.pt.trace.json.gz",
        "run2/rank0.pt.trace.json.gz",
    ]
    manifest = read_manifest(tmp_path)
    assert [run.run for run in manifest.runs] == [1, 2]
    assert (manifest.variant, manifest.environment["torch"]) == (tmp_path.name, torch.__version__)
    settings = written(tmp_path)["settings"]
    assert (settings["wait"], settings["active"], manifest.settings.threads) == (1, 4, 1)
    assert manifest.settings.detail == "record_shapes"
    assert all(run.peak_memory_bytes.host > 1 << 20 for run in manifest.runs)
    (traces,) = load_sets([str(tmp_path)])
    assert [run.name for run in traces.runs] == ["run 1", "run 2"]
    assert traces.steps_used == [3, 4, 5]
    assert counts(traces, "aten::addmm") == 1
    assert {p.origin.torch for p in traces.profiles} == {torch.__version__}
    assert traces.notes == ()
    assert traces.manifest == manifest
    base = tmp_path / "base.tdprof.gz"
    tracediff.snapshot(traces, base)
    assert tracediff.load(base).manifest.runs == manifest.runs
    gate = tracediff.check(base, traces, limits=["memory=5%"]).limits.set_index("subject")
    assert gate.loc["memory", "control"] == gate.loc["memory", "test"] > 1 << 20


def test_a_program_that_does_not_compile_never_imports_inductor(tmp_path):
    code = """
    import tracediff
    for name in [name for name in sys.modules if name.startswith("torch._inductor")]:
        del sys.modules[name]  # which the process has inherited
    del torch._inductor
    with tracediff.record_steps(out, wait=0, warmup=1, active=1) as p:
        for _ in range(2):
            train_step()
            p.step()
    print([name for name in sys.modules if name.startswith("torch._inductor")], "_inductor" in torch._lazy_modules)
    """
    assert in_a_process(tmp_path, code).stdout.splitlines()[-1] == "[] True"


@pytest.mark.parametrize("reason", ["imported", "CUDA graphs", "another torch"])
def test_a_profiler_finds_inductor_where_it_has_been_or_sets_something(monkeypatch, reason):
    monkeypatch.delenv("TORCHINDUCTOR_CUDAGRAPHS", raising=False)
    monkeypatch.delitem(sys.modules, "torch._inductor", raising=False)
    on_demand = {"_dynamo", "_inductor"}
    monkeypatch.setattr(torch, "_lazy_modules", on_demand)
    with without_importing_inductor():
        assert on_demand == {"_dynamo"}
    assert on_demand == {"_dynamo", "_inductor"}
    if reason == "imported":
        monkeypatch.setitem(sys.modules, "torch._inductor", torch)
    elif reason == "CUDA graphs":
        monkeypatch.setenv("TORCHINDUCTOR_CUDAGRAPHS", "1")
    else:
        monkeypatch.setattr(torch, "_lazy_modules", frozenset(on_demand))
    with without_importing_inductor():
        assert "_inductor" in torch._lazy_modules


def test_the_manifest_has_the_runs_that_are_there(tmp_path):
    code = """
    import tracediff
    with tracediff.record_steps(out, wait=0, warmup=1, active=2) as p:
        for _ in range(3):
            train_step()
            p.step()
    """
    for _ in range(2):
        assert in_a_process(tmp_path, code).returncode == 0
    shutil.rmtree(tmp_path / "run1")
    assert in_a_process(tmp_path, code).returncode == 0
    assert [run.run for run in read_manifest(tmp_path).runs] == [1, 2]
    (tmp_path / "manifest.json").write_text('{"name": "of a web page"}')
    result = in_a_process(tmp_path, code)
    assert "manifest.json: not a manifest of this version, so the run is not added" in result.stderr
    assert (tmp_path / "manifest.json").read_text() == '{"name": "of a web page"}'
    assert (tmp_path / "run3" / "rank0.pt.trace.json.gz").exists()


def test_a_loop_that_is_too_short_writes_nothing_and_says_so(tmp_path):
    code = """
    import tracediff
    with tracediff.record_steps(out, wait=1, warmup=1, active=4) as p:
        for _ in range(3):
            train_step()
            p.step()
    """
    result = in_a_process(tmp_path, code)
    assert "the loop ended after 3 of 6 steps" in result.stderr
    assert not list(tmp_path.rglob("*.json*"))


def test_a_recorder_for_callbacks_never_raises_and_says_what_it_recorded(tmp_path):
    code = """
    from tracediff.collect.callback import LoopRecorder

    def train(name, steps, **options):
        recorder = LoopRecorder(out / name, **{"wait": 0, "warmup": 1, "active": 2, **options})
        recorder.step()  # of no training
        recorder.start()
        for _ in range(steps):
            train_step()
            recorder.step()
        recorder.stop()
        recorder.stop()

    (out / "file").write_text("")
    train("set", 6)
    train("set", 6, rank=1)
    train("short", 2)
    train("file", 6)
    """
    result = in_a_process(tmp_path, code)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("tracediff: ")]
    assert len(lines) == 3
    assert lines[0].startswith("tracediff: recorded steps 1–2")
    assert "not written, because the loop ended after 2 of 3 steps" in lines[1]
    assert "cannot be created (not a directory)" in lines[2]
    (traces,) = load_sets([str(tmp_path / "set")])
    assert [sorted(run.ranks) for run in traces.runs] == [[0, 1]]
    assert len(traces.manifest.runs) == 1
    assert not list(tmp_path.rglob("short/**/*.json*"))


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="only Linux tells how long threads wait")
def test_a_run_that_waited_for_a_processor_is_marked(tmp_path):
    code = """
    import json, os, subprocess, tracediff
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processor})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        with tracediff.record_steps(out, wait=0, warmup=1, active=2) as p:
            for _ in range(3):
                for _ in range(200):
                    train_step()
                p.step()
    finally:
        for other in others:
            other.kill()
    (run,) = json.loads((out / "manifest.json").read_text())["runs"]
    print(run["contended"], p.waiting == run["profiled_waiting"] > 0.3)
    """
    result = in_a_process(tmp_path, code)
    assert result.stdout.split() == ["True", "True"], result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("tracediff: ")]
    assert line.startswith("tracediff: recorded steps 1–2 (disturbed: waited ")
    assert line.endswith(f" of the time for a processor): {tmp_path}/run1/rank0.pt.trace.json.gz")
    assert [run.contended for run in read_manifest(tmp_path).runs] == [True]


def test_what_is_measured_around_recorded_steps_is_in_none_of_them(tmp_path):
    code = """
    import gzip, json, tracediff
    with tracediff.record_steps(out, wait=0, warmup=1, active=2, with_stack=True) as p:
        for _ in range(3):
            train_step()
            p.step()
    (path,) = out.rglob("*.json.gz")
    events = json.load(gzip.open(path))["traceEvents"]
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name", "").startswith("ProfilerStep")]
    python = [e for e in events if e.get("cat") == "python_function"]
    inside = {e["name"] for e in python for start, end in steps if start <= e["ts"] < end}
    print(len(steps), any("train_step" in name for name in inside), [name for name in inside if "waiting_ns" in name])
    """
    result = in_a_process(tmp_path, code)
    assert result.stdout.splitlines()[-1:] == ["2 True []"], result.stderr


def test_export_chrome_trace_loads_as_it_is(tmp_path):
    code = """
    with torch.profiler.profile(with_stack=True, record_shapes=True, profile_memory=True) as p:
        train_step()
    p.export_chrome_trace(str(out / "whole.json"))
    """
    assert in_a_process(tmp_path, code).returncode == 0
    (traces,) = load_sets([str(tmp_path / "whole.json")])
    assert traces.profiles[0].whole_file
    assert counts(traces, "aten::addmm") == 1
    assert set(traces.profiles[0].origin.flags) >= {"with_stack", "record_shapes", "profile_memory"}
    assert all("/" not in name.split("(")[0] for name in traces.profiles[0].names if ".py(" in name)


def test_cycles_of_the_tensorboard_handler_are_one_run(tmp_path):
    code = """
    handler = torch.profiler.tensorboard_trace_handler(str(out), use_gzip=True)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=2)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=handler) as p:
        for _ in range(10):
            train_step()
            p.step()
    """
    assert in_a_process(tmp_path, code).returncode == 0
    (traces,) = load_sets([str(tmp_path)])
    assert len(traces.profiles) == 2
    assert len(traces.runs) == 1
    assert traces.steps_used == [3, 4, 8, 9]


def test_cycles_of_our_own_handler_are_one_run_and_processes_several(tmp_path):
    code = """
    import tracediff
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=2)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=tracediff.on_trace_ready(out / "set")) as p:
        for _ in range(10):
            train_step()
            p.step()
    """
    for _ in range(2):
        assert in_a_process(tmp_path, code).returncode == 0
    (traces,) = load_sets([str(tmp_path / "set")])
    assert [run.name for run in traces.runs] == ["run 1", "run 2"]
    assert [len(files) for run in traces.runs for files in run.ranks.values()] == [2, 2]
    assert traces.steps_used == [3, 4, 8, 9]
    assert [run.run for run in traces.manifest.runs] == [1, 2]
    assert "wait" not in written(tmp_path / "set")["settings"]
    assert traces.manifest.settings.detail == "none"


def test_two_ranks_of_gloo_are_two_ranks_of_one_run(tmp_path):
    code = """
    import os, torch.distributed as dist, tracediff
    rank = int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{out}/rendezvous", rank=rank, world_size=2)
    with tracediff.record_steps(out / "set", wait=0, warmup=1, active=3) as p:
        for _ in range(4):
            train_step()
            dist.all_reduce(torch.ones(4))
            p.step()
    dist.destroy_process_group()
    """
    with ThreadPoolExecutor(2) as threads:
        ranks = [*threads.map(partial(in_a_process, tmp_path, code), range(2))]
    assert [rank.returncode for rank in ranks] == [0, 0], [rank.stderr for rank in ranks]
    (traces,) = load_sets([str(tmp_path / "set")])
    assert [sorted(run.ranks) for run in traces.runs] == [[0, 1]]
    assert {p.origin.world_size for p in traces.profiles} == {2}
    assert (traces.manifest.world_size, len(traces.manifest.runs)) == (2, 1)
    assert traces.steps_used == [2, 3]
