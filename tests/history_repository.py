"""A git repository whose commits take a known time per step, and a script in it that records a set of traces."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from build_trace import call, document, kernel, op, step, write

TESTS = Path(__file__).resolve().parent
STEPS = 4
RECORD = """
import json, sys
from pathlib import Path
from history_repository import write_set
from model import ADDED, GEMM_US

out, machine = map(Path, sys.argv[1:])
if GEMM_US < 0:
    sys.exit("no such model")
with machine.with_suffix(".recordings").open("a") as recordings:
    recordings.write("x")
    seed = recordings.tell()
state = json.loads(machine.read_text())
load = state["loads"][seed % len(state["loads"])]
write_set(out, GEMM_US, runs=2, seed=seed, added=ADDED, load=load, contended=state["contended"])
"""
MACHINE = ("--machine", "test machine", "--configuration", "gemm")


def write_set(
    folder: Path,
    gemm_us: float,
    *,
    runs: int = 5,
    seed: int = 0,
    sd: float = 0.005,
    added: int = 0,
    load: float = 1.0,
    contended: bool | None = None,
) -> Path:
    """A set of ``runs`` whose steps take 1,000 µs and those of a gemm; runs vary by ``sd``.

    Args:
        added: operators of 1 µs that each step has besides. load: times that everything takes as long.
        contended: whether its manifest says that each run was disturbed; None for a set without one.
    """
    noise = random.Random(seed)
    for run in range(1, runs + 1):
        scale = load * (1 + noise.gauss(0, sd))
        events = []
        for k in range(1, STEPS + 1):
            period = (1000 + gemm_us + added) * scale
            start = k * period
            events += [step(k, start, period), op("aten::mm", start + 1, 20), op("aten::add", start + 30, 20)]
            events += [op("aten::mul", start + (60 + i) * scale, scale) for i in range(added)]
            events += [
                call("cudaLaunchKernel", start + 5, 3, 2 * k),
                call("cudaLaunchKernel", start + 35, 3, 2 * k + 1),
            ]
            events.append(kernel("gemm_kernel", start + 60, gemm_us * scale, 2 * k))
            events.append(kernel("add_kernel", start + 60 + gemm_us * scale, 900 * scale, 2 * k + 1))
        write(folder / f"run{run}" / "rank0.pt.trace.json", document(events))
    if contended is not None:
        facts = [{"run": run, "contended": contended, "peak_memory_bytes": {}} for run in range(1, runs + 1)]
        settings = {"device": "cuda", "threads": 1, "detail": "full"}
        manifest = {"schema": "tracediff.manifest/1", "variant": "eager", "settings": settings, "environment": {}}
        (folder / "manifest.json").write_text(json.dumps({**manifest, "runs": facts}))
    return folder


class RepositoryOfModels:
    """A repository in ``folder``; each of its commits sets the time of the gemm and the number of added operators.

    Attributes:
        commits: hashes in order. machine: how loaded the machine is that records them (`set_machine`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / "record.py").write_text(RECORD)
        self.machine = folder.parent / "machine.json"
        self.set_machine()

    def set_machine(self, loads: Sequence[float] = (1.0,), contended: bool = False) -> None:
        """Have one recording after the other take ``loads`` times as long, in turn, and be marked as disturbed."""
        self.machine.write_text(json.dumps({"loads": loads, "contended": contended}))

    def git(self, *arguments: str) -> str:
        """The output of a git command in it."""
        day = f"2026-01-{len(self.commits) + 1:02}T00:00:00Z"
        names = {
            f"GIT_{who}_{what}": "tester@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        env = {
            **os.environ,
            **names,
            "GIT_AUTHOR_DATE": day,
            "GIT_COMMITTER_DATE": day,
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=env, check=True, capture_output=True, text=True)
        return done.stdout

    def commit(self, gemm_us: float, message: str, added: int = 0) -> str:
        """Commit this time of the gemm, and number of added operators."""
        (self.folder / "model.py").write_text(f"GEMM_US, ADDED = {gemm_us}, {added}\n")
        (self.folder / "notes.txt").write_text(message)
        self.git("add", ".")
        self.git("commit", "-q", "-m", message)
        self.commits.append(self.git("rev-parse", "HEAD").strip())
        return self.commits[-1]

    def command(self, *arguments: str) -> list[str]:
        """The command ``tracediff``."""
        return [sys.executable, "-P", "-m", "tracediff_cli", *map(str, arguments)]

    def environment(self) -> dict[str, str]:
        """The environment of that command."""
        root = TESTS.parent
        path = os.pathsep.join(map(str, (root, root / "cli", TESTS)))
        return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``tracediff`` in it as a shell would."""
        command, env = self.command(*arguments), self.environment()
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def record(self) -> list[str]:
        """The command of a bisection that records a set."""
        path = f"PYTHONPATH={TESTS}{os.pathsep}{TESTS.parent}"
        return ["env", path, sys.executable, "-B", "record.py", "{out}", str(self.machine)]
