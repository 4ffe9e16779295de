"""Where files are read: in processes of this machine, or by the workers of an executor. A worker that is killed loses
nothing: what it read is read again.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import socket
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from tracediff import bounds
from tracediff.errors import TracediffError, quoted
from tracediff.formatting import plural
from tracediff.process.child import end_with_parent, leave_interrupts_to_parent, signals_held
from tracediff.progress import INTERVAL_S, Meter, OnProgress

Item = TypeVar("Item")
Result = TypeVar("Result")
Attempt = Callable[[Item, Callable[[int], None] | None], Result]
"""What is done with an item; it passes the number of bytes that it has read so far to the function."""

OPTION = "--executor"
ADDRESS = re.compile(r"dask(?:://([\w.-]+):(\d{1,5}))?")
KILLED_BY = ("BrokenExecutor", "KilledWorker")
"""What an executor of the standard library, and Dask, raise where a worker did not survive."""
KILLED = "each process that read it was killed"
OF_EXECUTOR = "it may have run out of memory; where processes are spawned, guard the script: if __name__ == '__main__'"
KILLED_REMEDY = "it may have run out of memory: try --jobs 1, or --rank"


class Processes(Generic[Item, Result]):
    """Processes of this machine that each have a pipe of their own, which ends when they do."""

    def __init__(
        self,
        items: Sequence[Item],
        sizes: Sequence[int],
        attempt: Attempt[Item, Result],
        progress: OnProgress | None = None,
    ) -> None:
        """Of ``items``, each of so many bytes, with each of which ``attempt`` is made; its errors are results."""
        self.items, self.attempt = items, attempt
        self._workers: dict[Connection, BaseProcess] = {}
        self._doing: dict[Connection, int] = {}
        self._context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._bytes_read = self._context.RawArray("q", len(items))  # each entry has one writer: it needs no lock
        self._meter = Meter(sizes, self._bytes_read, progress)
        self._left = sorted(range(len(items)), key=lambda k: sizes[k])  # the largest first, from the end
        self._tries = [0] * len(items)

    def run(self, jobs: int) -> Iterator[tuple[int, Result | TracediffError]]:
        """(position, result) of each item as they come, from ``jobs`` processes at a time.

        Raises:
            Exception: any that ``attempt`` raised.
        """
        try:
            for _ in range(jobs):
                self._begin()
            while self._doing:
                ready = wait(list(self._doing), INTERVAL_S)
                for pipe in [pipe for pipe in self._doing if pipe in ready]:
                    yield from self._take(pipe)
                if not ready:
                    self._meter.report()
        finally:
            for pipe in list(self._workers):
                self._end(pipe)

    def _begin(self) -> None:
        """Start a process, and give it the next item."""
        with signals_held():
            ours, theirs = self._context.Pipe()
            arguments = theirs, self.attempt, self.items, self._bytes_read
            worker = self._context.Process(target=_work, args=arguments, daemon=True)
            worker.start()
            theirs.close()
            self._workers[ours] = worker
        self._give(ours)

    def _give(self, pipe: Connection) -> None:
        if self._left:
            self._doing[pipe] = k = self._left.pop()
            with suppress(OSError):  # it was killed, which the end of the pipe shows
                pipe.send(k)

    def _take(self, pipe: Connection) -> Iterator[tuple[int, Result | TracediffError]]:
        """The result of the item that the worker at ``pipe`` was doing; nothing if it is tried again."""
        k = self._doing.pop(pipe)
        try:
            result = pipe.recv()
        except (EOFError, OSError):
            self._end(pipe)
            self._tries[k] += 1
            if self._tries[k] < bounds.TRIES:
                self._left.append(k)
                self._bytes_read[k] = 0
                self._begin()
                return
            result = killed(self.items[k])
            self._begin()
        else:
            if isinstance(result, Exception) and not isinstance(result, TracediffError):
                raise result
            self._give(pipe)
        self._meter.finish(k)
        yield k, result

    def _end(self, pipe: Connection) -> None:
        worker = self._workers.pop(pipe)
        worker.kill()  # it has nothing to clean up, and Ctrl-C must not wait for gigabytes
        worker.join()
        pipe.close()


def killed(item: object, remedy: str = KILLED_REMEDY) -> TracediffError:
    """The error of an item that no worker survived."""
    return TracediffError(item[0] if isinstance(item, tuple) else item, KILLED, remedy)


def _work(
    pipe: Connection, attempt: Attempt[Item, Result], items: Sequence[Item], bytes_read: MutableSequence[int]
) -> None:
    """Run in a process: do the items whose positions come through ``pipe``, and send back their results."""
    end_with_parent()
    leave_interrupts_to_parent()
    while True:
        try:
            k = pipe.recv()
        except EOFError:  # the process that started it has ended
            return

        def read(size: int, position: int = k) -> None:
            bytes_read[position] = size

        try:
            pipe.send(attempt(items[k], read))
        except Exception as error:
            error.add_note(traceback.format_exc())  # which does not pass the pipe
            pipe.send(error)


def in_executor(
    items: Sequence[Item],
    sizes: Sequence[int],
    attempt: Attempt[Item, Result],
    executor: Any,
    progress: OnProgress | None = None,
) -> Iterator[tuple[int, Result | TracediffError]]:
    """(position, result) of each item as they come, from a `concurrent.futures.Executor` or a Dask ``Client`` whose
    workers see the same files. Results are compressed for the way.

    Dask gives the items of a worker that was lost to others, as often as its ``allowed-failures`` says.

    Raises:
        TracediffError: it is not an executor. Exception: any that ``attempt`` raised.
    """
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        remedy = "pass an executor of concurrent.futures, or a Dask Client"
        raise TracediffError("executor", f"{quoted(str(executor))} has no submit", remedy)
    meter = Meter(sizes, [0] * len(items), progress)
    finished: SimpleQueue[int] = SimpleQueue()
    unkept = {"pure": False} if type(executor).__module__.startswith("distributed") else {}
    futures = {k: executor.submit(compressed, attempt, item, **unkept) for k, item in enumerate(items)}
    for k, future in futures.items():
        future.add_done_callback(lambda _, k=k: finished.put(k))
    try:
        while futures:
            try:
                k = finished.get(timeout=INTERVAL_S)
            except Empty:
                meter.report()
                continue
            result = _result(futures.pop(k), items[k])
            meter.finish(k)
            yield k, result
    finally:
        for future in futures.values():
            future.cancel()


def compressed(attempt: Attempt[Item, Result], item: Item) -> bytes:
    """Run by a worker: the result of ``item``, a fifth of its size or less."""
    return zlib.compress(pickle.dumps(attempt(item, None), pickle.HIGHEST_PROTOCOL), zlib.Z_BEST_SPEED)


def _result(future: Any, item: object) -> Any:
    try:
        return pickle.loads(zlib.decompress(future.result()))
    except Exception as error:
        if any(kind.__name__ in KILLED_BY for kind in type(error).__mro__):
            return killed(item, OF_EXECUTOR)
        raise


@contextmanager
def executor_of(name: str) -> Iterator[Any]:
    """The executor that ``--executor`` names: ``dask://HOST:PORT`` for a scheduler, ``dask`` for the one that Dask is
    configured for (an address or a scheduler file), or else for processes of this machine.

    Raises:
        TracediffError: no such executor, Dask is not installed, or the scheduler does not answer.
    """
    if not (address_match := ADDRESS.fullmatch(name)):
        raise TracediffError(OPTION, f"unknown executor {quoted(name)}", "give dask, or dask://HOST:PORT")
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise TracediffError(OPTION, "Dask is not installed", "pip install 'torch-tracediff[scale]'") from None
    host, port = address_match.groups()
    file = None if host else dask.config.get("scheduler-file", None)
    address = f"tcp://{host}:{port}" if host else dask.config.get("scheduler-address", None)
    if host:
        try:
            socket.create_connection((host, int(port)), bounds.SCHEDULER_S).close()
        except (OSError, OverflowError) as error:
            raise _no_answer(f"{host}:{port}", error) from None
    if file and not os.path.isfile(file):
        raise TracediffError(OPTION, f"no scheduler file {quoted(file)}", "start the scheduler first, or unset it")
    own = {} if address or file else {"dashboard_address": None, "threads_per_worker": 1}
    try:
        client = Client(address, timeout=bounds.SCHEDULER_S, set_as_default=False, scheduler_file=file, **own)
    except (OSError, ValueError) as error:
        raise _no_answer(address or file or "", error) from None
    with client:
        yield client


def _no_answer(address: str, error: Exception) -> TracediffError:
    reason = f"no Dask scheduler answers at {address} ({error})"
    return TracediffError(OPTION, reason, "start one, or give its HOST:PORT")


def described(client: Any) -> str:
    """Where a Dask client has its work done, and by how many."""
    workers = len(client.scheduler_info(n_workers=-1)["workers"])
    waiting = "" if workers else ": waiting for one"
    return f"Dask at {client.scheduler.address}, {plural(workers, 'worker')}{waiting}"
