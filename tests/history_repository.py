"""A git repository whose commits take a known time per step, and a script in it that records a set of traces."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from build_trace import call, document, kernel, op, step, write

TESTS = Path(__file__).resolve().parent
STEPS = 4
RECORD = """
import random, sys, zlib
from pathlib import Path
from history_repository import write_set
from model import GEMM_US

write_set(Path(sys.argv[1]), GEMM_US, seed=zlib.crc32(Path("model.py").read_bytes()), sd=0.005)
"""
MACHINE = ("--machine", "test machine", "--configuration", "gemm")


def write_set(folder: Path, gemm_us: float, *, runs: int = 5, seed: int = 0, sd: float = 0.005) -> Path:
    """A set of ``runs`` whose steps take 1,000 µs and those of a gemm; runs vary by ``sd``."""
    noise = random.Random(seed)
    for run in range(1, runs + 1):
        scale = 1 + noise.gauss(0, sd)
        events = []
        for k in range(1, STEPS + 1):
            period = (1000 + gemm_us) * scale
            start = k * period
            events += [step(k, start, period), op("aten::mm", start + 1, 20), op("aten::add", start + 30, 20)]
            events += [
                call("cudaLaunchKernel", start + 5, 3, 2 * k),
                call("cudaLaunchKernel", start + 35, 3, 2 * k + 1),
            ]
            events.append(kernel("gemm_kernel", start + 60, gemm_us * scale, 2 * k))
            events.append(kernel("add_kernel", start + 60 + gemm_us * scale, 900 * scale, 2 * k + 1))
        write(folder / f"run{run}" / "rank0.pt.trace.json", document(events))
    return folder


class RepositoryOfModels:
    """A repository in ``folder``; each of its commits sets the time of the gemm.

    Attributes:
        commits: hashes in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / "record.py").write_text(RECORD)

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

    def commit(self, gemm_us: float, message: str) -> str:
        """Commit this time of the gemm."""
        (self.folder / "model.py").write_text(f"GEMM_US = {gemm_us}  # {message}\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", message)
        self.commits.append(self.git("rev-parse", "HEAD").strip())
        return self.commits[-1]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``tracediff`` in it as a shell would."""
        root = TESTS.parent
        path = os.pathsep.join(map(str, (root, root / "cli", TESTS)))
        env = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-P", "-m", "tracediff_cli", *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def record(self) -> list[str]:
        """The command of a bisection that records a set."""
        return ["env", f"PYTHONPATH={TESTS}{os.pathsep}{TESTS.parent}", sys.executable, "-B", "record.py", "{out}"]
