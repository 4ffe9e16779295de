"""The log of torch.compile that is recorded beside a trace, and found there when sets are compared."""

import gzip
import os
import subprocess
import sys
import textwrap

import pytest
from with_torch import run_with_torch

from tracediff.diff.views import UNKNOWN, summed
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

torch = pytest.importorskip("torch")

LOGGED = """
import json, logging, os, sys, torch
from pathlib import Path
from tracediff.collect.compiler import compile_trace
out = Path(sys.argv[1])
path = out / "run1" / "torch_trace" / "rank0.log.gz"
config = torch._inductor.config.trace
logger = logging.getLogger("torch.__trace")

def compiles(text, **metadata):
    logger.debug("", extra={"metadata": metadata or {"artifact": {}}, "payload": text})
"""
COMPILED = """
import sys, torch, tracediff

def scaled(x, weight):
    y = torch.tanh(x)
    y = y @ weight
    return torch.relu(y)

torch.set_num_threads(1)
compiled = torch.compile(scaled)
x = torch.ones(4, 4)
for name in sys.argv[1:]:
    with tracediff.record_steps(name, wait=1, warmup=1, active=2, with_stack=name == "stacks") as p:
        for _ in range(4):
            compiled(x, x)
            p.step()
    torch._dynamo.reset()
"""


def in_a_process(folder, code):
    result = run_with_torch(LOGGED + textwrap.dedent(code), folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def lines(traces):
    return {line.name: line.count.control for line in summed(compare_sets(traces, traces).work, "line")}


def test_what_is_compiled_while_it_is_open_is_logged_once_it_is_kept(tmp_path):
    code = """
    compiles("before")
    before = dict(os.environ)
    with compile_trace(path) as log:
        print(config.provenance_tracking_level)
        compiles("one")
        compiles("a span of time", chromium_event={})
        if not os.fork():
            compiles("in a child")
            os._exit(0)
        os.wait()
        compiles("two")
        log.keep()
        compiles("after it was kept")
    compiles("after")
    print(config.provenance_tracking_level, dict(os.environ) == before, log in logger.handlers)
    """
    assert in_a_process(tmp_path, code).split() == ["1", "0", "True", "False"]
    assert files(tmp_path) == ["run1/torch_trace/rank0.log.gz"]
    text = gzip.decompress((tmp_path / "run1" / "torch_trace" / "rank0.log.gz").read_bytes()).decode()
    assert [line.strip() for line in text.splitlines() if line.startswith("\t")] == ["one", "two"]


def test_a_log_that_is_not_kept_or_empty_is_no_file(tmp_path):
    code = """
    with compile_trace(path) as log:
        log.keep()
    with compile_trace(path):
        compiles("lost")
    try:
        with compile_trace(path):
            compiles("lost")
            raise KeyError
    except KeyError:
        print(config.provenance_tracking_level, len(logger.handlers))
    """
    assert in_a_process(tmp_path, code).split()[0] == "0"
    assert files(tmp_path) == []


def test_the_level_of_the_user_stays(tmp_path):
    code = """
    for level in ("0", "2"):
        os.environ["INDUCTOR_PROVENANCE"], config.provenance_tracking_level = level, int(level)
        with compile_trace(path):
            print(config.provenance_tracking_level)
        print(config.provenance_tracking_level, os.environ["INDUCTOR_PROVENANCE"])
    """
    assert in_a_process(tmp_path, code).split() == ["0", "0", "0", "2", "2", "2"]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "run1").write_text("")
    code = """
    with compile_trace(path) as log:
        compiles("one")
        compiles("two")
        print(log in logger.handlers)
        log.keep()
    """
    assert in_a_process(tmp_path, code).split() == ["False"]


def test_record_steps_keeps_the_log_with_its_trace(tmp_path):
    code = """
    import tracediff
    compiles("what torch's own handler, which then removes itself, hides from the one after it")
    def record(name, steps=3, **options):
        with tracediff.record_steps(out / name, wait=0, warmup=1, active=2, **options) as p:
            for number in range(steps):
                torch.ones(2).sum()
                if name != "eager":
                    compiles(f"step {number}")
                p.step()
    record("with", steps=5)
    record("rank", rank=3)
    record("without", provenance=False)
    record("eager")
    try:
        record("short", steps=2)
    except tracediff.TracediffError:
        pass
    """
    in_a_process(tmp_path, code)
    assert files(tmp_path) == [
        *("eager/manifest.json", "eager/run1/rank0.pt.trace.json.gz"),
        *("rank/run1/rank3.pt.trace.json.gz", "rank/run1/torch_trace/rank3.log.gz"),
        *("with/manifest.json", "with/run1/rank0.pt.trace.json.gz", "with/run1/torch_trace/rank0.log.gz"),
        *("without/manifest.json", "without/run1/rank0.pt.trace.json.gz"),
    ]
    text = gzip.decompress((tmp_path / "with" / "run1" / "torch_trace" / "rank0.log.gz").read_bytes()).decode()
    assert [line.strip() for line in text.splitlines() if line.startswith("\t")] == ["step 0", "step 1", "step 2"]


@pytest.mark.torch
@pytest.mark.slow
def test_a_comparison_of_recorded_sets_names_lines_unasked(tmp_path):
    (tmp_path / "scaled.py").write_text(COMPILED)
    own = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "scaled.py", "set", "again", "stacks"]
    subprocess.run(command, cwd=tmp_path, env=own, check=True, timeout=300, capture_output=True)
    assert files(tmp_path / "set") == [
        "manifest.json", "run1/rank0.pt.trace.json.gz", "run1/torch_trace/rank0.log.gz"]  # fmt: skip
    traces, again, stacks = load_sets([str(tmp_path / name) for name in ("set", "again", "stacks")])
    assert {line for line in lines(traces) if line.startswith("scaled.py")} == {
        *(f"scaled.py({line}): scaled" for line in (5, 6, 7))
    }
    assert lines(traces) == lines(again)  # whose kernels were in the cache
    in_graph = {line: count for line, count in lines(traces).items() if line != UNKNOWN}
    assert in_graph == {line: count for line, count in lines(stacks).items() if line in in_graph}
    joined = [note.message for note in traces.notes if note.code == "torch-log"]
    assert joined[0].startswith("1 of 1 calls of operators by compiled graphs")
    assert joined[1].startswith("2 of 2 compiled kernels")
