"""Loads sets in separate processes: with progress, cancellable, and safe if a file exhausts the memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from cachetools import LRUCache

from tracediff import bounds
from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.process.child import end_with_parent
from tracediff.progress import Progress
from tracediff.structs import Pair
from tracediff_dashboards.reading.sets import Sets

AT_ONCE = threading.BoundedSemaphore(2)
"""Limits the loads that run at the same time; each uses all cores."""
CANCELLED = "reading was cancelled"
IDLE = "idle"
"""The table that says what the host does in each idle state, which the overview shows; a snapshot may lack it."""


class Load:
    """The loading of one or two sets, with its progress.

    Attributes:
        names: names of the sets. progress: how far their files have been read, None until the first is opened.
        error: error message, None if there is none.
        finished: set when loading has ended, with or without an error.
    """

    def __init__(self, names: tuple[str, ...], wheres: Sequence[str], options: LoadOptions) -> None:
        self.names = names
        self.progress: Progress | None = None
        self.error: str | None = None
        self.finished = threading.Event()
        self._process = Spawned(_read, wheres, options)

    def read(self) -> list[TraceSet]:
        """Load the sets; returns when they are loaded.

        Raises:
            TracediffError: a file cannot be read, or the load was cancelled.
        """
        sets = " and ".join(self.names)
        with AT_ONCE:
            try:
                return list(self._process.result(self._take))
            except EOFError:
                if self._process.stopped.is_set():
                    raise TracediffError(sets, CANCELLED, "select the set again to restart") from None
                remedy = "free some memory or select fewer ranks: it may have run out"
                raise TracediffError(sets, "the process that read it exited", remedy) from None

    def _take(self, progress: Progress) -> None:
        self.progress = progress

    def cancel(self) -> None:
        """Stop reading."""
        self._process.stop()


def _read(report: Report, wheres: Sequence[str], options: LoadOptions) -> list[TraceSet]:
    """Run in the process."""
    try:
        return load_sets(wheres, options, progress=report)
    except MemoryError:
        raise TracediffError(wheres[0], "not enough memory to read it", "give fewer files") from None


class Loader:
    """Loads sets and caches them; all browser tabs share the cached sets, read-only.

    Attributes:
        sets: which sets exist, and which of their steps and ranks are used.
        options: how all sets are read.
    """

    def __init__(self, sets: Sets, options: LoadOptions | None = None) -> None:
        self.sets = sets
        options = options or LoadOptions()
        self.options = options.replace(tables=tuple(dict.fromkeys((*options.tables, IDLE))))
        self._loaded: LRUCache[str, TraceSet] = LRUCache(bounds.SETS_LOADED)
        self._loads: dict[tuple[str, ...], Load] = {}
        self._lock = threading.Lock()

    def pair(self, control: str, test: str) -> Pair[TraceSet] | Load:
        """Both sets if they are loaded, else the load that reads them.

        Raises:
            TracediffError: a set does not exist, or too many others are being loaded.
        """
        key = tuple(sorted({control, test}))
        with self._lock:
            sets = {name: self._loaded[name] for name in key if name in self._loaded}
        if len(sets) == len(key):
            return Pair(sets[control], sets[test])
        if key in self._loads:
            return self._loads[key]
        missing = tuple(name for name in key if name not in sets)
        wheres = [self.sets.where(name) for name in missing]  # outside the lock: the disk may be slow
        options = tuple(self.sets.options.get(name, self.sets.every) for name in missing)
        with self._lock:
            if key not in self._loads:
                self._make_room()
                load = self._loads[key] = Load(missing, wheres, self.options.replace(sets=options))
                threading.Thread(target=self._run, args=(key, load), daemon=True).start()
            return self._loads[key]

    def _make_room(self) -> None:
        """Forget the oldest failed loads.

        Raises:
            TracediffError: too many loads run or wait.
        """
        finished = [key for key, load in self._loads.items() if load.finished.is_set()]
        if len(self._loads) - len(finished) >= bounds.LOADS:
            raise TracediffError(
                "dashboard", f"{bounds.LOADS} other pairs are being read", "wait, then reload the page"
            )
        for key in finished[: len(self._loads) + 1 - bounds.LOADS]:
            del self._loads[key]

    def find(self, control: str, test: str) -> Load | None:
        """The load of a pair; None if none was started or it has succeeded."""
        return self._loads.get(tuple(sorted({control, test})))

    def forget(self, control: str, test: str) -> None:
        """Forget a failed load, so that the pair can be loaded again."""
        key = tuple(sorted({control, test}))
        with self._lock:
            if key in self._loads and self._loads[key].finished.is_set():
                del self._loads[key]

    def close(self) -> None:
        """Cancel all loads and wait for them: a process that starts while this one exits would print an error."""
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        for load in loads:
            load.finished.wait(bounds.LOAD_CLOSE_S)

    def _run(self, key: tuple[str, ...], load: Load) -> None:
        try:
            sets = load.read()
            with self._lock:
                self._loaded.update(zip(load.names, sets, strict=True))
                self._loads.pop(key, None)
        except TracediffError as error:
            load.error = str(error)
        except Exception as error:  # any error must reach the browser tab that waits
            load.error = f"{' and '.join(load.names)}: reading failed ({type(error).__name__}); report this as a bug"
        finally:
            load.finished.set()


CHECK_SECONDS = 0.5
"""Interval in seconds at which to check whether the process is alive."""
Report = Callable[[Any], None]


class Spawned:
    """A process that runs ``function(report, *arguments)``, whose reports and result come back.

    Attributes: stopped: set if it is to end, or not to start.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks held by other threads
        self._receiver, self._sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(self._sender, function, arguments))
        self.stopped = threading.Event()

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
            if not self.stopped.is_set():
                self._process.start()
            self._sender.close()
            if self.stopped.is_set():
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
        self.stopped.set()
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
