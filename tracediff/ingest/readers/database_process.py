"""Databases are read by a process of their own, which the kernel kills: no other limit holds inside SQLite for certain,
whatever the file makes it do. It is started anew, not forked, and so can be had in any thread, worker or notebook, and
reads one database after another.
"""

import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.readers.database import REMEDY
from tracediff.process.child import child_command, end_process, leave_interrupts_to_parent

MEMORY, MEMORY_PER_BYTE = 192 << 20, 24
"""Memory that it may take beyond that of the process, in bytes."""

_idle = threading.local()
"""The process that this thread uses again: Linux ends it with the thread."""


def read_in_process(file: TraceFile, path: Path) -> Iterator[Trace]:
    """The events of each rank in the database of ``file``, whose bytes lie at ``path``; see `nsys_tables.traces_of`.

    Raises:
        TracediffError: it cannot be read, or not within the limits.
    """
    reader = _idle.__dict__.pop("reader", None)
    if reader is None or not reader.is_ready():
        reader = _ReadingProcess()
    is_last = False
    try:
        reader.ask(file, path)
        while not is_last:
            answer, is_last = reader.answer(file)
            if is_last:
                _idle.reader = reader
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        if not is_last:
            reader.end()


class _ReadingProcess:
    """A process that runs `main`."""

    def __init__(self) -> None:
        modules = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        try:
            self._process = subprocess.Popen(
                child_command(__name__),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": modules, "PYTHONSAFEPATH": "1"},
            )
        except OSError as error:
            reason = f"the process that reads it cannot be started ({(error.strerror or str(error)).lower()})"
            raise TracediffError("database", reason, "end other processes, or read fewer files at a time") from None
        self._questions: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._parent = os.getpid()
        self.end = weakref.finalize(self, end_process, self._process, self._parent)

    def is_ready(self) -> bool:
        """Whether it runs, and for this process, not for the one that this was forked of."""
        return self._parent == os.getpid() and self._process.poll() is None

    def ask(self, file: TraceFile, path: Path) -> None:
        """Have it read; `answer` says what it found."""
        with suppress(OSError):  # it is gone, which the end of its answers shows
            pickle.dump((file, path), self._questions)
            self._questions.flush()

    def answer(self, file: TraceFile) -> tuple[Trace | Exception, bool]:
        """(the next trace or what went wrong, whether it is the last)."""
        try:
            return pickle.load(self._answers)  # type: ignore[no-any-return]
        except (EOFError, pickle.UnpicklingError):
            self._process.wait()
            return _killed(file, self._process.returncode), False


def _killed(file: TraceFile, code: int) -> TracediffError:
    if code == -getattr(signal, "SIGXCPU", math.inf):
        return TracediffError(file, "the database takes longer to read than one of its size may", REMEDY)
    reason = f"the process that read the database ended ({code})"
    return TracediffError(file, reason, "it may have run out of memory: read fewer files at a time")


def main() -> None:
    """Read the databases that standard input names, and write what is in them to standard output."""
    from tracediff.ingest.readers.nsys_tables import traces_of

    leave_interrupts_to_parent()
    while True:
        try:
            file, path = pickle.load(sys.stdin.buffer)
        except EOFError:  # the process that started this one has ended
            return
        try:
            _limit(path)
            for trace, is_last in traces_of(file, path):
                _send(trace, is_last)
        except MemoryError:
            reason = "the database takes more memory than one of its size may"
            _send(TracediffError(file, reason, REMEDY), True)
        except Exception as error:
            error.add_note(traceback.format_exc())  # which does not pass the pipe
            _send(error, True)


def _send(answer: Trace | Exception, is_last: bool) -> None:
    try:
        pickle.dump((answer, is_last), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
    except (MemoryError, OSError):  # half an answer, or nobody to read it
        os._exit(1)


def _limit(path: Path) -> None:
    """Let this process take as much as reading the file at ``path`` may; and write to no file."""
    with suppress(ImportError):  # there is no such limit on Windows
        import resource

        size = os.path.getsize(path)
        seconds = time.process_time() + bounds.DATABASE_SECONDS + size / bounds.DATABASE_BYTES_PER_SECOND
        _set(resource.RLIMIT_CPU, math.ceil(seconds))
        _set(resource.RLIMIT_CORE, 0)
        _set(resource.RLIMIT_FSIZE, 0)
        with suppress(OSError), open("/proc/self/statm", encoding="ascii") as pages:
            occupied = int(pages.read().split()[0]) * resource.getpagesize()
            _set(resource.RLIMIT_AS, occupied + MEMORY + MEMORY_PER_BYTE * size)


def _set(kind: int, most: int) -> None:
    import resource

    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
