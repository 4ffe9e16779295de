"""Runs code in processes of its own, forked from one that has imported torch: each would take seconds to import it."""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "torch._inductor"])  # a profiler imports the second
TIMEOUT_S = 120


def run_with_torch(code: str, *arguments: object) -> CompletedProcess[str]:
    """As ``python -c code arguments`` would."""
    with TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("stdout", "stderr")]
        process = FORKS.Process(target=_run, args=(code, [*map(str, arguments)], outputs))
        process.start()
        process.join(TIMEOUT_S)
        process.kill()
        return CompletedProcess(code, process.exitcode, *(output.read_text() for output in outputs))


def _run(code: str, arguments: list[str], outputs: list[Path]) -> None:
    for number, output in enumerate(outputs, 1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})
