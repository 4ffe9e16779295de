"""A git repository whose commits take a known time per step, and a script in it in place of recording a set."""

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
RECORDED = 16
RECORD = """
number=$(cat "$2/number")
echo $(((number + 1) % 16)) > "$2/number"
[ -d "$2/$(cat model.txt)" ] || { echo "no such model" >&2; exit 1; }
cp -r "$2/$(cat model.txt)/$number" "$1"
"""
"""Copies one of so many sets that were made before, since starting Python takes longer."""
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
            ready, done = start + (80 + added) * scale, start + 60 + (gemm_us + 900) * scale
            events.append(call("cudaDeviceSynchronize", ready, done - ready + 1))
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
        commits: hashes in order. models: the gemm's time and the number of added operators of each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []
        self.models: list[tuple[float, int]] = []
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / "record.sh").write_text(RECORD)

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
        (self.folder / "model.txt").write_text(f"{gemm_us}-{added}\n")
        (self.folder / "notes.txt").write_text(message)
        self.git("add", ".")
        self.git("commit", "-q", "-m", message)
        self.models.append((gemm_us, added))
        self.commits.append(self.git("rev-parse", "HEAD").strip())
        return self.commits[-1]

    def command(self, *arguments: str) -> list[str]:
        """The command ``tracediff``."""
        return [sys.executable, "-P", "-m", "tracediff", *map(str, arguments)]

    def environment(self) -> dict[str, str]:
        """The environment of that command."""
        root = TESTS.parent
        path = os.pathsep.join(map(str, (root, root / "cli", TESTS)))
        return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``tracediff`` in it as a shell would."""
        command, env = self.command(*arguments), self.environment()
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def record(self, loads: Sequence[float] = (1.0,), contended: bool = False) -> list[str]:
        """The command of a bisection that records a set, on a machine where one after the other takes ``loads`` times
        as long, in turn, and is marked as disturbed. It fails in commits whose gemm takes negative time.
        """
        sets = self.folder.parent / "sets"
        for gemm_us, added in set(self.models):
            for number in range(RECORDED) if gemm_us >= 0 else ():
                write_set(
                    sets / f"{gemm_us}-{added}" / str(number),
                    gemm_us,
                    runs=2,
                    seed=round(1000 * gemm_us) + number,
                    added=added,
                    load=loads[number % len(loads)],
                    contended=contended,
                )
        (sets / "number").write_text("0")
        return ["sh", "record.sh", "{out}", str(sets)]
