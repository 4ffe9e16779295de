"""Reading sets in a process of their own: its progress is told, it can be cancelled, and a file that exhausts memory
does not end the dashboard.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from cachetools import LRUCache

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.load_options import LoadOptions
from tracediff_dashboards.sets import Sets

MOST_SETS = 8
"""Kept loaded: tables of some MB each."""
AT_ONCE = threading.BoundedSemaphore(2)
"""Loads that read at the same time; each takes all cores."""
LOOK = 0.5
"""Seconds after which it is seen whether the process still lives."""
LONGEST_END = 5.0
"""Seconds that the end of the dashboard waits for a load to stop."""
CANCELLED = "reading was cancelled"


class Load:
    """Some sets on their way.

    Attributes:
        names: of the sets. done, files: how many files are read, of how many; 0 of 0 before that is known.
        error: one line on what went wrong, None where nothing did.
        finished: set at the end, good or bad.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.done = 0
        self.files = 0
        self.error: str | None = None
        self.finished = threading.Event()
        self._cancelled = threading.Event()
        self._process: Any = None

    def read(self, wheres: Sequence[str], options: LoadOptions) -> list[TraceSet]:
        """The sets, once they are read.

        Raises:
            TracediffError: a file cannot be read, or the load was cancelled.
        """
        with AT_ONCE:
            context = multiprocessing.get_context(
                "spawn"
            )  # a copy of this process would hold locks of its other threads
            receiver, sender = context.Pipe(duplex=False)
            self._process = context.Process(target=_read, args=(sender, list(wheres), options))
            if not self._cancelled.is_set():
                self._process.start()
            if self._cancelled.is_set():
                self.cancel()
            sender.close()
            try:
                return self._received(receiver)
            finally:
                receiver.close()
                self._end()

    def _received(self, receiver: Connection) -> list[TraceSet]:
        while True:
            try:
                while not receiver.poll(
                    LOOK
                ):  # the pipe alone does not tell that it is gone: its own processes hold it open
                    if self._process.pid is None or (not self._process.is_alive() and not receiver.poll()):
                        raise EOFError
                kind, value = receiver.recv()
            except (EOFError, OSError):
                if self._cancelled.is_set():
                    raise TracediffError(" and ".join(self.names), CANCELLED, "choose it again to start over") from None
                raise TracediffError(
                    " and ".join(self.names),
                    "the process that read it has died",
                    "it may need more memory than there is",
                ) from None
            if kind == "progress":
                self.done, self.files = value
            elif kind == "error":
                raise value
            else:
                return list(value)

    def cancel(self) -> None:
        """Stop reading."""
        self._cancelled.set()
        if self._process is not None and self._process.pid is not None:
            self._kill()

    def _end(self) -> None:
        """See that nothing is left of the process, however it ended."""
        if self._process.pid is not None:
            self._kill()
            self._process.join()

    def _kill(self) -> None:
        """End the process and those that it has started. It holds nothing that needs an orderly end."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (
            AttributeError,
            ProcessLookupError,
            PermissionError,
        ):  # no groups on this system, or it has not come to lead one
            self._process.kill()


def _read(sender: Connection, wheres: list[str], options: LoadOptions) -> None:
    """What the process does: tell its progress, then the sets or the error."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # with the processes that it starts, so that all can be ended at once
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sets = load_sets(wheres, options, progress=lambda done, files: sender.send(("progress", (done, files))))
        sender.send(("sets", sets))
    except TracediffError as error:
        sender.send(("error", error))
    except MemoryError:
        sender.send(("error", TracediffError(wheres[0], "there is not enough memory to read it", "give fewer files")))


class Loader:
    """Loaded sets, and those on their way; shared by all tabs, which only read them.

    Attributes:
        options: how all of them are read; what is used of each is said by ``sets``.
    """

    def __init__(self, sets: Sets, options: LoadOptions | None = None) -> None:
        self.sets = sets
        self.options = options or LoadOptions()
        self._loaded: LRUCache[str, TraceSet] = LRUCache(MOST_SETS)
        self._loads: dict[tuple[str, ...], Load] = {}
        self._lock = threading.Lock()

    def pair(self, control: str, test: str) -> tuple[TraceSet, TraceSet] | Load:
        """Both sets, or the load that was started to get them.

        Raises:
            TracediffError: there is no such set.
        """
        key = tuple(sorted({control, test}))
        with self._lock:
            known = {name: self._loaded[name] for name in key if name in self._loaded}
        if len(known) == len(key):
            return known[control], known[test]
        if key in self._loads:
            return self._loads[key]
        missing = tuple(name for name in key if name not in known)
        wheres = [
            self.sets.where(name) for name in missing
        ]  # before others wait: a slow disk is none of their business
        with self._lock:
            if key not in self._loads:
                load = self._loads[key] = Load(missing)
                threading.Thread(target=self._run, args=(key, load, wheres), daemon=True).start()
            return self._loads[key]

    def find(self, control: str, test: str) -> Load | None:
        """The load of a pair, None where none was started or it has ended well."""
        return self._loads.get(tuple(sorted({control, test})))

    def forget(self, control: str, test: str) -> None:
        """Let a load that failed be tried again."""
        with self._lock:
            load = self._loads.get(tuple(sorted({control, test})))
            if load is not None and load.finished.is_set():
                del self._loads[tuple(sorted({control, test}))]

    def close(self) -> None:
        """Stop all that is being read, and wait until it has: a process that starts while this one ends would
        complain.
        """
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        for load in loads:
            load.finished.wait(LONGEST_END)

    def _run(self, key: tuple[str, ...], load: Load, wheres: Sequence[str]) -> None:
        try:
            used = tuple(self.sets.options.get(name, self.sets.every) for name in load.names)
            sets = load.read(wheres, replace(self.options, sets=used))
            with self._lock:
                self._loaded.update(zip(load.names, sets, strict=True))
                self._loads.pop(key, None)
        except TracediffError as error:
            load.error = str(error)
        except Exception as error:  # whatever it is, a tab waits for it
            load.error = f"{' and '.join(load.names)}: reading it failed ({type(error).__name__}); report this"
        finally:
            load.finished.set()
