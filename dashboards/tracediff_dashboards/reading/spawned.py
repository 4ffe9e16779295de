"""A function in a process of its own, which can be stopped and cannot take the dashboard down."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tracediff.process.child import end_with_parent

CHECK_SECONDS = 0.5
"""Interval in seconds at which to check whether the process is alive."""
Report = Callable[[Any], None]


class Spawned:
    """A process that runs ``function(report, *arguments)``, whose reports and result come back."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks held by other threads
        self._receiver, self._sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(self._sender, function, arguments))
        self._stopped = threading.Event()

    @property
    def pid(self) -> int | None:
        """Of the process; None until it is started."""
        return self._process.pid

    def result(self, on_report: Report | None = None) -> Any:
        """Start the process, and wait for what the function returns; ``on_report`` gets what it reports meanwhile.

        Raises:
            EOFError: the process was stopped, or killed. Exception: any that the function raised.
        """
        try:
            if not self._stopped.is_set():
                self._process.start()
            self._sender.close()
            if self._stopped.is_set():
                self._kill()
            while True:
                kind, value = self._received()
                if kind == "result":
                    return value
                if kind == "error":
                    raise value
                if on_report is not None:
                    on_report(value)
        finally:
            self._receiver.close()
            self._kill()
            if self.pid is not None:
                self._process.join()

    def _received(self) -> tuple[str, Any]:
        """What the process sends next; the pipe stays open after it exits, because its children have it open."""
        try:
            while not self._receiver.poll(CHECK_SECONDS):
                if self.pid is None or (not self._process.is_alive() and not self._receiver.poll()):
                    raise EOFError
            kind, value = self._receiver.recv()
        except OSError:
            raise EOFError from None
        return kind, value

    def stop(self) -> None:
        """End the process, or do not start it."""
        self._stopped.set()
        self._kill()

    def _kill(self) -> None:
        """Kill the process and its children, if it was started; they have nothing to clean up."""
        if self.pid is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # no process groups, or not yet in its own
            self._process.kill()


def _run(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Run in the process."""
    end_with_parent()
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # a group with its children, so that all can be killed at once
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send(("result", function(lambda report: sender.send(("report", report)), *arguments)))
    except Exception as error:
        sender.send(("error", error))
