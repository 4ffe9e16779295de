"""Runs code in processes of its own, forked from one that has imported torch: each would take seconds to import it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from types import SimpleNamespace

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "torch._inductor.config"])  # a profiler asks for the second
TIMEOUT_S = 120


def run_with_torch(code: str, *arguments: object) -> CompletedProcess[str]:
    """As ``python -c code arguments`` would."""
    return _in_a_fork(_run, code, [*map(str, arguments)])


def collect_with_torch(folder: Path, arguments: list[str], environment: dict[str, str]) -> CompletedProcess[str]:
    """As ``python -m tracediff.collect arguments`` would in ``folder``; its workers are forks, too."""
    return _in_a_fork(_collect, folder, arguments, environment)


def _in_a_fork(target: Callable[..., None], *arguments: object) -> CompletedProcess[str]:
    with TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("stdout", "stderr")]
        process = FORKS.Process(target=_redirected, args=(outputs, target, arguments))
        process.start()
        process.join(TIMEOUT_S)
        process.kill()
        process.join()
        return CompletedProcess(target.__name__, process.exitcode, *(output.read_text() for output in outputs))


def _redirected(outputs: list[Path], target: Callable[..., None], arguments: tuple[object, ...]) -> None:
    for number, output in enumerate(outputs, 1):
        _redirect(number, output)
    target(*arguments)


def _redirect(number: int, output: Path) -> None:
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), number)


def _run(code: str, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})


def _collect(folder: Path, arguments: list[str], environment: dict[str, str]) -> None:
    from tracediff.collect import driver

    driver.subprocess = SimpleNamespace(  # type: ignore[attr-defined]
        Popen=Worker, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired
    )
    os.chdir(folder)
    os.environ.update(environment)
    _run_module("tracediff.collect", arguments)


def _run_module(module: str, arguments: list[str]) -> None:
    sys.argv = [module, *arguments]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


class Worker:
    """What the collector asks of `subprocess.Popen`, of a fork of its process."""

    def __init__(self, command: list[str], env: dict[str, str], **_: object) -> None:
        self._errors = Path(env["TMPDIR"]) / "stderr"
        module, *arguments = command[command.index("tracediff.collect.worker") :]
        self._process = get_context("fork").Process(target=_work, args=(self._errors, env, module, arguments))
        self._process.start()
        self.kill = self._process.kill

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.join()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[None, bytes]:
        self._process.join(timeout)
        errors = self._errors.read_bytes() if self._errors.exists() else b""
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(["worker"], timeout, stderr=errors)
        return None, errors


def _work(errors: Path, env: dict[str, str], module: str, arguments: list[str]) -> None:
    from torch._inductor import config

    _redirect(2, errors)
    os.environ.clear()
    os.environ.update(env)
    config.cpp.enable_kernel_profile = env.get("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE") == "1"  # as its import does
    _run_module(module, arguments)
