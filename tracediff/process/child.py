"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where a process is started
    import subprocess

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int | None = None) -> None:
    """Have this process killed once ``parent`` has ended: the process that started it, by default the one that
    multiprocessing knows; more exactly, its thread that did. Only Linux can; elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return
    import ctypes
    import multiprocessing

    if parent is None and (started_by := multiprocessing.parent_process()):
        parent = started_by.pid

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before that call
        os.kill(os.getpid(), signal.SIGKILL)


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module`` as ``python -m`` does, in a process that ends with this one."""
    return [sys.executable, "-m", __name__, str(os.getpid()), module, *arguments]


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold interrupts back until the end, in this thread and in the processes that it starts meanwhile: until
    `heed_signals` there.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_process(process: subprocess.Popen[Any], parent: int) -> None:
    """End a process that ``parent`` started, if that is this process and not a fork of it."""
    if os.getpid() == parent:
        process.kill()
        process.communicate()


def leave_interrupts_to_parent() -> None:
    """In a process started by this one: ignore Ctrl-C, which the parent gets as well; end when the parent says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
