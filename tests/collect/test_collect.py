"""`tracediff collect` from the command line, on a user's own code, with real torch."""

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

import pytest
from collecting import ONCE, ROOT, SHORT, TRAIN, collect, written
from table_rows import per_step

from tracediff.aggregate.collective_skew import collective_tables
from tracediff.collected import collection_table
from tracediff.diff.preflight import different_results
from tracediff.diff.statistics.runs import estimate
from tracediff.diff.views import UNKNOWN, summed
from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.manifest import read_collection, read_manifest

torch = pytest.importorskip("torch")

from tracediff.collect.__main__ import main, next_command  # noqa: E402
from tracediff.collect.driver import Collection  # noqa: E402
from tracediff.collect.modules import losing_format  # noqa: E402
from tracediff.collect.options import request_of  # noqa: E402
from tracediff.collect.variant import parse_variant  # noqa: E402
from tracediff.report.collection import to_json  # noqa: E402


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A collection of two runs each of eager, the same again, and script; and what was written to standard output."""
    folder = tmp_path_factory.mktemp("collected")
    variants = [word for variant in ("eager", "eager@again", "script") for word in ("--variant", variant)]
    result = collect(folder, "train.py", *variants, "-o", "out", "--repeats", "2", *ONCE, "--", "6")
    assert result.returncode == 0, result.stderr
    phases = re.compile(r"(\S+), run ([12]) of 2: (build|warm-up|timing|record)(, about \d+:\d\d left)?")
    lines = [phases.fullmatch(line) for line in result.stderr.splitlines()]  # and no control characters
    runs = [(line[1], line[2]) for line in lines if line[3] == "build"]
    assert runs == [(v, k) for k, o in (("1", 1), ("2", -1)) for v in ("eager", "eager@again", "script")[::o]]
    assert [bool(line[4]) for line in lines if line[3] == "build"] == [False, *[True] * 5]
    return folder / "out", result.stdout


def test_it_ends_with_the_command_that_compares_what_was_collected(collected):
    _, shown = collected
    assert shown.splitlines()[-1] == "Next: tracediff matrix out/eager out/eager@again out/script"
    two = Collection(Path("my runs"), [parse_variant(v) for v in ("eager", "amp", "compile:mode=max-autotune")], {}, 1)
    two.runs = {"eager": [{}], "compile:mode=max-autotune": [{}]}  # amp failed
    words = ["tracediff", "compare", "my runs/eager", "my runs/compile_mode=max-autotune"]
    assert next_command(two) == "tracediff compare 'my runs/eager' 'my runs/compile_mode=max-autotune'"
    assert shlex.split(next_command(two)) == words
    del two.runs["eager"]
    assert next_command(two) == "tracediff analyze 'my runs/compile_mode=max-autotune'"


def test_an_a_a_collection_has_equal_counts_and_complete_manifests(collected):
    out, shown = collected
    assert "eager@again" in shown
    control, test = load_sets([out / "eager", out / "eager@again"])
    comparison = compare_sets(control, test)
    assert {op.count_change for op in comparison.ops} == {"unchanged"}
    assert (len(control.runs), control.notes) == (2, ())
    assert {r.code for r in comparison.comparability.reasons} <= {"contended"}  # this machine may be busy
    manifest = read_manifest(out / "eager@again")
    assert [r.run for r in manifest.runs] == [1, 2]
    runs = written(out / "eager")["runs"]
    assert all(run["order"] == order for run, order in zip(runs, (1, 6), strict=True) if run["attempts"] == 1)  # ABCCBA
    again = written(out / "eager@again")["runs"]
    assert all(len(r["unprofiled_steps"]) == len(r["profiled_steps"]) == 3 for r in again)
    assert manifest.modules == {
        "Net_0": "",
        "Sequential_0": "body",
        "Linear_0": "body.0",
        "ReLU_0": "body.1",
        "Linear_1": "head",
    }
    assert manifest.runs[0].compile is None


def test_torch_compile_leaves_its_facts(tmp_path):
    result = collect(
        tmp_path, "train.py:breaks", "--variant", "eager", "--variant", "compile", "-o", "out", "--repeats", "1", *ONCE
    )
    assert result.returncode == 0, result.stderr
    (run,) = read_manifest(tmp_path / "out" / "compile").runs
    assert [(b.file, TRAIN.splitlines()[b.line - 1].strip()) for b in run.compile.graph_breaks] == [
        ("train.py", 'kept["sum"] = y.sum().item()')
    ]
    assert "item" in run.compile.graph_breaks[0].reason
    assert run.compile.graph_count >= 2
    assert run.first_step_s > 10 * run.unprofiled_steps[0].wall_us / 1e6
    graphs = read_manifest(tmp_path / "out" / "compile").provenance
    assert {"aten.sin.default", "aten.cos.default"} <= {n.op for graph in graphs for n in graph.nodes}
    fused = {kernel: nodes for graph in graphs for kernel, nodes in graph.kernels.items() if "_sin_" in kernel}
    assert fused
    assert all(set(nodes) <= {n.name for graph in graphs for n in graph.nodes} for nodes in fused.values())
    (compiled,) = load_sets([tmp_path / "out" / "compile"])
    assert any("cpp_fused" in name for p in compiled.profiles for name in p.names)
    lines = {line.name for line in summed(compare_sets(compiled, compiled).work, "line")} - {UNKNOWN}
    assert {TRAIN.splitlines()[int(line.partition("(")[2].partition(")")[0]) - 1].strip() for line in lines} == {
        "y = x.sin()",
        "return y.cos()",
    }


def test_a_failed_variant_is_reported_and_the_others_are_kept(tmp_path):
    result = collect(
        tmp_path, "train.py:fails", "--variant", "compile", "--variant", "eager", "-o", "out", "--repeats", "2", *ONCE
    )
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "compile failed: RuntimeError: the step fell over" in result.stdout
    assert not (tmp_path / "out" / "compile").exists()
    assert len(read_manifest(tmp_path / "out" / "eager").runs) == 2
    assert [bool(v.failed) for v in read_collection(tmp_path / "out").variants] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.py", "--variant", "quick", "-o", "out"], "unknown variant 'quick'; valid are eager, compile"),
        (["train.py", "--variant", "quick", "-o", "out"], "eager@quick has the variant.label 'quick'"),
        (
            ["train.py", "--variant", "compile:speed=2", "-o", "out"],
            "unknown option 'speed' of compile; valid are mode",
        ),
        (["train.py", "--variant", "eager", "--variant", "eager", "-o", "out"], "eager@again"),
        (["--workload", "nothing", "-o", "out"], "unknown workload; workloads: vit"),
        (["--workload", "resnet80", "-o", "out"], "unknown workload; did you mean resnet50"),
        (["train.py", "--variant", "egaer", "-o", "out"], "unknown variant 'egaer'; did you mean eager?"),
        (
            ["train.py", "--variant", "compile:backend=indcutor", "-o", "out"],
            "torch.compile has no backend 'indcutor'; did you mean inductor?",
        ),
        (
            ["train.py", "--variant", "compile:options.epilog_fusion=false", "-o", "out"],
            "inductor has no option 'epilog_fusion'; did you mean epilogue_fusion",
        ),
        (["train.py", "--repeat", "2", "--activ", "1"], "add -o DIR"),
        (["train.py", "--ovrwrite"], "unknown argument '--ovrwrite'; did you mean --overwrite?"),
        (["train.py", "--repeats", "many"], "must be a whole number of 1 or more, not 'many'"),
        (["train.py", "--detail", "some"], "invalid choice: 'some'"),
        (["-o", "out"], "needs either FILE.py:make_step or --workload NAME"),
        (["train.py"], "add -o DIR"),
        (["train.py", "-o", "train.py"], "is a file, not a folder"),
        (["train.py", "-o", "full"], "is not empty; give another folder, or replace its contents with --overwrite"),
        (["train.py", "-o", "full", "--overwrite"], "is not a collection"),
    ],
)
def test_requests_that_cannot_be_served_are_one_line(tmp_path, monkeypatch, arguments, message):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TracediffError) as refused:
        main(arguments)
    (line,) = str(refused.value).splitlines()
    assert message in line
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_the_folder_of_a_collection_without_a_run_can_be_used_again(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "collection.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    request = request_of(["train.py", "--variant", "eager@old", "--variant", "eager", "-o", "out"])
    assert [variant.label for variant in request.variants] == ["old", ""]


def test_a_request_that_cannot_be_served_is_all_that_the_command_writes(tmp_path):
    result = collect(tmp_path, "train.py", "--ovrwrite")
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line == "tracediff: error: collect: unknown argument '--ovrwrite'; did you mean --overwrite?"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("compile", {}),
        ("compile:max-autotune", {"mode": "max-autotune"}),
        ("compile:fullgraph,dynamic=false,disable", {"fullgraph": True, "dynamic": False, "disable": True}),
        (
            "compile:options.epilogue_fusion=false,options.triton.cudagraphs,options.max_autotune_gemm_search_space=X",
            {"options": {"epilogue_fusion": False, "triton.cudagraphs": True, "max_autotune_gemm_search_space": "X"}},
        ),
        (
            "compile:options.coordinate_descent_search_radius=2+amp",
            {"options": {"coordinate_descent_search_radius": 2}},
        ),
        ("cudagraphs", {"mode": "reduce-overhead"}),
    ],
)
def test_the_options_of_compile_are_those_of_torch(text, options):
    assert dict(parse_variant(text).options) == options


def test_every_backend_and_mode_of_this_torch_is_listed(capsys):
    assert main(["--list-backends"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert {"compile:backend=inductor", "compile:backend=eager", "compile:backend=aot_eager"} <= set(lines)
    assert {"compile:mode=reduce-overhead", "compile:mode=max-autotune-no-cudagraphs"} <= set(lines)
    for line in lines:
        assert not line.startswith("compile:") or parse_variant(line).compiles


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("train.py:nothing", "no function 'nothing' in it"),
        ("train.py:no_step", "returned int, which is not a step"),
    ],
)
def test_user_code_without_a_step_is_reported(tmp_path, target, message):
    result = collect(tmp_path, target, "-o", "out", "--repeats", "1", *ONCE)
    assert result.returncode == 1
    assert message in result.stdout


def test_a_missing_file_is_an_error_of_one_line(tmp_path):
    result = collect(tmp_path, "missing.py:make_step", "-o", "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "tracediff: error: missing.py:make_step: no such file; give FILE.py:make_step\n"
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_python_is_refused_before_a_run(tmp_path):
    (tmp_path / "notes.txt").write_text("def make_step(): ...")
    result = collect(tmp_path, "notes.txt:make_step", "-o", "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "tracediff: error: notes.txt:make_step: not a Python file; give FILE.py:make_step\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "collect: needs either FILE.py:make_step or --workload NAME; give one of them; --list lists the workloads",
        ),
        (["train.py:make_step"], "-o: was not given; add -o DIR, the folder to write to"),
    ],
)
def test_a_request_without_what_to_run_or_where_to_write_says_so(tmp_path, arguments, message):
    assert collect(tmp_path, *arguments).stderr == f"tracediff: error: {message}\n"


def test_a_missing_cuda_device_is_reported(tmp_path):
    result = collect(tmp_path, "train.py", "-o", "out", "--repeats", "1", "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 1
    assert "no CUDA or ROCm device" in result.stdout


def test_overwrite_replaces_a_collection(collected, tmp_path):
    shutil.copytree(collected[0], tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.gz"))) == 6
    result = collect(tmp_path, "train.py", "-o", "out", "--repeats", "1", "--overwrite", *ONCE)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "out").rglob("*.gz"))) == 1


def flags_and_names(out):
    (traces,) = load_sets([out / "eager"])
    flags = {"record_shapes", "with_stack", "profile_memory"} & set(traces.profiles[0].origin.flags)
    return flags, {name for p in traces.profiles for name in p.names}


def test_modules_have_scopes_and_detail_chooses_the_profiler_options(tmp_path):
    options = ["--repeats", "1", "--annotate", "modules", "--detail", "all", "--overwrite"]  # of nothing
    result = collect(tmp_path, "train.py", "-o", "out", *options, *ONCE)
    assert result.returncode == 0, result.stderr
    flags, names = flags_and_names(tmp_path / "out")
    assert flags == {"record_shapes", "with_stack", "profile_memory"}
    assert {"module:body.0", "module:head"} <= names


def test_fx_nodes_have_scopes_and_variants_on_which_that_has_no_effect_are_refused(tmp_path):
    refused = {
        "script": "runs TorchScript, in which a scope cannot be recorded",
        "compile:backend=eager": "so that compile:backend=eager no longer compiles it",
        "compiled_optimizer": "write update = variant.update(optimizer, device)",
    }
    variants = [word for variant in ("eager", *refused) for word in ("--variant", variant)]
    result = collect(tmp_path, "train.py", *variants, "-o", "out", "--repeats", "1", "--annotate", "fx", *ONCE)
    assert result.returncode == 1
    assert all(message in result.stderr for message in refused.values())
    failed = {v.variant: v.failed for v in read_collection(tmp_path / "out").variants}
    assert failed.pop("eager") is None
    assert all(message in failed[variant] for variant, message in refused.items())
    flags, names = flags_and_names(tmp_path / "out")
    assert flags == {"record_shapes"}
    assert {"fx:body_0", "fx:head", "fx:x"} <= names


def test_the_nodes_of_an_annotated_graph_are_in_the_table_with_what_they_call(tmp_path):
    options = ["--variant", "eager", "--variant", "fx_fused", "--repeats", "1", "--annotate", "fx", *ONCE]
    result = collect(tmp_path, "--workload", "conv-bn", "--size", "tiny", "-o", "out", *options)
    assert result.returncode == 0, result.stderr
    eager, fused = (row.fx_nodes for row in collection_table(tmp_path / "out").rows)
    assert Counter(node.calls for node in eager)["call_module BatchNorm2d"] == 6
    assert not any("BatchNorm2d" in node.calls for node in fused)
    assert sum(node.share for node in eager) == pytest.approx(1)
    assert [node.us for node in eager] == sorted((node.us for node in eager), reverse=True)
    assert "FX nodes of eager, per step" in result.stdout


def test_operators_that_lose_channels_last_are_found():
    images = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert losing_format(lambda: torch.relu(images) + images.relu()) == {}
    assert losing_format(lambda: [torch.relu(images).contiguous() for _ in range(2)]) == {"aten::clone": 2}
    flat = torch.randn(2, 3, 1, 1).to(memory_format=torch.channels_last)  # both formats at once
    assert losing_format(flat.clone) == {}


PINNED = """
import os, subprocess, sys
from train import make_step

FIRST = min(os.sched_getaffinity(0))
BUSY = f"import os\\nos.sched_setaffinity(0, {{{FIRST}}})\\nwhile os.getppid() == {os.getpid()}: pass"

def disturbed(variant, size):
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
    os.sched_setaffinity(0, {FIRST})
    return make_step(variant, size)
"""
"""Others take the processor from its steps, until its process ends, and not from the import of torch."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a process waits for a processor")
def test_a_run_that_another_process_disturbs_is_collected_again_and_marked(tmp_path):
    (tmp_path / "pinned.py").write_text(PINNED)
    long = (*SHORT, "--timed", "60")  # many times as long as the system lets a process run at a time
    options = ["-o", "out", "--repeats", "1", "--attempts", "2", *long, "--", "8192"]
    result = collect(tmp_path, "pinned.py:disturbed", *options)
    assert result.returncode == 0, result.stderr
    (run,) = written(tmp_path / "out" / "eager")["runs"]
    assert (run["attempts"], run["contended"]) == (2, True)
    assert max(run["waiting"], run["profiled_waiting"]) > 0.1
    assert "eager, run 1: repeated, because other processes took" in result.stderr


def test_the_table_tells_what_each_variant_costs(collected):
    table = collection_table(collected[0])
    eager, _, script = table.rows
    manifests = [read_manifest(collected[0] / name) for name in ("eager", "script")]
    assert (eager.variant, eager.runs, eager.speedup, eager.graph_breaks) == ("eager", 2, None, None)
    assert script.speedup == eager.step_us / script.step_us
    runs = [[math.log(median(s.wall_us for s in r.unprofiled_steps)) for r in m.runs] for m in manifests]
    found = estimate(*runs)
    assert (script.speedup_low, script.speedup_high) == (math.exp(-found.interval[1]), math.exp(-found.interval[0]))
    assert json.loads(to_json(table))["rows"][0]["ops"] > 0


def test_onnx_that_was_saved_and_loaded_runs_with_its_own_profile_which_loads(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")
    variants = ["--variant", "eager", "--variant", "onnx+reloaded"]
    result = collect(tmp_path, "--workload", "mlp", "--size", "tiny", *variants, "-o", "out", "--repeats", "1", *ONCE)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "out" / "onnx+reloaded"
    assert different_results(read_manifest(tmp_path / "out" / "eager"), read_manifest(folder)) is None
    (traces,) = load_sets([folder])
    assert len(traces.profiles) == 1
    assert "onnxruntime" in traces.profiles[0].names
    own_profile = folder / "run1" / "rank0.onnxruntime.json"
    (profile,) = load_sets([own_profile], LoadOptions(step_marker="^model_run$"))
    assert any("gemm" in name.lower() or "linear" in name.lower() for p in profile.profiles for name in p.names)


DISTRIBUTED = """
import torch, torch.distributed as dist

def make_step(variant):
    dist.init_process_group("gloo")
    model = variant(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8)))
    x = torch.randn(4, 8)
    return lambda: model(x).sum().backward()
"""


def test_under_torchrun_each_rank_writes_its_own_file_and_their_collectives_meet(tmp_path):
    (tmp_path / "ddp.py").write_text(DISTRIBUTED)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "tracediff.collect",
    ]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"}
    result = subprocess.run(
        [*command, "ddp.py", "-o", "out", "--repeats", "2", *ONCE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    (traces,) = load_sets([tmp_path / "out" / "eager"], LoadOptions(tables=("collectives",)))
    assert [(run.name, sorted(run.ranks)) for run in traces.runs] == [("run 1", [0, 1]), ("run 2", [0, 1])]
    assert any("all_reduce" in name for p in traces.profiles for name in p.names)
    assert read_manifest(tmp_path / "out" / "eager").world_size == 2
    tables, _ = collective_tables(traces)
    ((key, row),) = per_step(tables["collective_waits"]).items()
    assert key == ("all_reduce", "0, 2 ranks", "float32", "≤ 512 B")
    assert row["operations"] == 1
    assert row["time"] == row["wait"] + row["transfer"] + row["unknown"]
    ranks = [("run 1", "0"), ("run 1", "1"), ("run 2", "0"), ("run 2", "1")]
    assert [key[:2] for key in sorted(tables["rank_clocks"].rows)] == ranks
