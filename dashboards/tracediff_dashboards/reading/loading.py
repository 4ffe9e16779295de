"""Loads sets in separate processes: with progress, cancellable, and safe if a file exhausts the memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from cachetools import LRUCache

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.load_options import LoadOptions
from tracediff.progress import Progress
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.reading.spawned import Report, Spawned

MOST_SETS = 8
"""Maximum number of loaded sets; each takes some MB."""
MOST_LOADS = 16
"""Maximum number of loads that run or wait, and of failed ones whose errors are kept."""
AT_ONCE = threading.BoundedSemaphore(2)
"""Limits the loads that run at the same time; each uses all cores."""
CLOSE_SECONDS = 5.0
"""Maximum time in seconds to wait for a load when the dashboard stops."""
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

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.progress: Progress | None = None
        self.error: str | None = None
        self.finished = threading.Event()
        self._cancelled = threading.Event()
        self._process: Spawned | None = None

    def read(self, wheres: Sequence[str], options: LoadOptions) -> list[TraceSet]:
        """Load the sets at the paths ``wheres``; returns when they are loaded.

        Raises:
            TracediffError: a file cannot be read, or the load was cancelled.
        """
        sets = " and ".join(self.names)
        with AT_ONCE:
            self._process = Spawned(_read, list(wheres), options)
            if self._cancelled.is_set():
                self._process.stop()
            try:
                return list(self._process.result(self._take))
            except EOFError:
                if self._cancelled.is_set():
                    raise TracediffError(sets, CANCELLED, "select the set again to restart") from None
                remedy = "free some memory or select fewer ranks: it may have run out"
                raise TracediffError(sets, "the process that read it exited", remedy) from None

    def _take(self, progress: Progress) -> None:
        self.progress = progress

    def cancel(self) -> None:
        """Stop reading."""
        self._cancelled.set()
        if self._process is not None:
            self._process.stop()


def _read(report: Report, wheres: list[str], options: LoadOptions) -> list[TraceSet]:
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
        self.options = replace(options, tables=tuple(dict.fromkeys((*options.tables, IDLE))))
        self._loaded: LRUCache[str, TraceSet] = LRUCache(MOST_SETS)
        self._loads: dict[tuple[str, ...], Load] = {}
        self._lock = threading.Lock()

    def pair(self, control: str, test: str) -> tuple[TraceSet, TraceSet] | Load:
        """Both sets if they are loaded, else the load that reads them.

        Raises:
            TracediffError: a set does not exist, or too many others are being loaded.
        """
        key = tuple(sorted({control, test}))
        with self._lock:
            known = {name: self._loaded[name] for name in key if name in self._loaded}
        if len(known) == len(key):
            return known[control], known[test]
        if key in self._loads:
            return self._loads[key]
        missing = tuple(name for name in key if name not in known)
        wheres = [self.sets.where(name) for name in missing]  # outside the lock: the disk may be slow
        with self._lock:
            if key not in self._loads:
                self._make_room()
                load = self._loads[key] = Load(missing)
                threading.Thread(target=self._run, args=(key, load, wheres), daemon=True).start()
            return self._loads[key]

    def _make_room(self) -> None:
        """Forget the oldest failed loads.

        Raises:
            TracediffError: too many loads run or wait.
        """
        ended = [key for key, load in self._loads.items() if load.finished.is_set()]
        if len(self._loads) - len(ended) >= MOST_LOADS:
            raise TracediffError("dashboard", f"{MOST_LOADS} other pairs are being read", "wait, then reload the page")
        for key in ended[: len(self._loads) + 1 - MOST_LOADS]:
            del self._loads[key]

    def find(self, control: str, test: str) -> Load | None:
        """The load of a pair; None if none was started or it has succeeded."""
        return self._loads.get(tuple(sorted({control, test})))

    def forget(self, control: str, test: str) -> None:
        """Forget a failed load, so that the pair can be loaded again."""
        with self._lock:
            load = self._loads.get(tuple(sorted({control, test})))
            if load is not None and load.finished.is_set():
                del self._loads[tuple(sorted({control, test}))]

    def close(self) -> None:
        """Cancel all loads and wait for them: a process that starts while this one exits would print an error."""
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        for load in loads:
            load.finished.wait(CLOSE_SECONDS)

    def _run(self, key: tuple[str, ...], load: Load, wheres: Sequence[str]) -> None:
        try:
            used = tuple(self.sets.options.get(name, self.sets.every) for name in load.names)
            sets = load.read(wheres, replace(self.options, sets=used))
            with self._lock:
                self._loaded.update(zip(load.names, sets, strict=True))
                self._loads.pop(key, None)
        except TracediffError as error:
            load.error = str(error)
        except Exception as error:  # any error must reach the browser tab that waits
            load.error = f"{' and '.join(load.names)}: reading failed ({type(error).__name__}); report this as a bug"
        finally:
            load.finished.set()
