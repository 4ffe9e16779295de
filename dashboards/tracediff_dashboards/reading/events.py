"""Reads the events of traces in separate processes into memory-mapped files, whose memory the system can reclaim;
and writes the step of both sides as one trace for Perfetto, in a process of its own.
"""

import gzip
import mmap
import pickle
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

from tracediff import bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.diff.comparison import Comparison
from tracediff.engine import WORTH_A_PROCESS, read_context
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, stored_size
from tracediff.process.temporary import temporary_folder
from tracediff.profile.events.context import Context
from tracediff.profile.kernels.families import Families
from tracediff.report.to_perfetto import to_perfetto
from tracediff_dashboards.reading.loading import Report, Spawned

ALIGNED = 64
"""Alignment of the arrays in a file, in bytes."""


class Events:
    """Reads the events of traces; the mapped files are in a private folder while they are read."""

    def __init__(self) -> None:
        self._folders: dict[Spawned, Path] = {}
        self._turn = threading.BoundedSemaphore(bounds.FILES_READ)

    def read(self, file: TraceFile, step_marker: str | None, families: Families) -> Context:
        """The events of ``file``, with read-only arrays; see `tracediff.engine.read_context`.

        Raises:
            TracediffError: the file can no longer be read, or there is no space for its events.
        """
        with self._turn:
            if stored_size(file) < WORTH_A_PROCESS:
                return read_context(file, step_marker, families)
            try:
                with temporary_folder() as folder:  # the mapping stays valid after the file is removed
                    return self._read(folder, file, step_marker, families)
            except OSError as error:
                raise _no_space(file, error) from None

    def _read(self, folder: Path, file: TraceFile, step_marker: str | None, families: Families) -> Context:
        arrays = folder / "arrays"
        process = Spawned(_write_events, str(arrays), file, step_marker, families)
        self._folders[process] = folder
        try:
            rest, places = process.result()
        except EOFError:
            remedy = "free some memory, or use shorter traces: it may have run out"
            raise TracediffError(file, "the process that read its events exited", remedy) from None
        finally:
            del self._folders[process]
        return _mapped(arrays, rest, places)

    def close(self) -> None:
        """Stop the reading processes and remove their files."""
        for process, folder in list(self._folders.items()):
            process.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _no_space(file: TraceFile, error: BaseException) -> TracediffError:
    return TracediffError(
        file,
        f"its events cannot be stored ({str(error) or 'not enough memory'})",
        "free some disk space or memory, or use shorter traces",
    )


def _write_events(
    _report: Report, arrays: str, file: TraceFile, step_marker: str | None, families: Families
) -> tuple[bytes, list[tuple[int, int]]]:
    """Run in the process: write the arrays to a file; returns the pickled rest and the position of each array."""
    try:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(read_context(file, step_marker, families), protocol=5, buffer_callback=buffers.append)
        places = []
        with open(arrays, "wb") as out:
            for buffer in buffers:
                out.write(bytes(-out.tell() % ALIGNED))
                places.append((out.tell(), buffer.raw().nbytes))
                out.write(buffer.raw())
            out.write(bytes(ALIGNED))  # an empty file cannot be mapped
        return rest, places
    except (MemoryError, OSError) as error:
        raise _no_space(file, error) from None


def _mapped(arrays: Path, rest: bytes, places: list[tuple[int, int]]) -> Context:
    with open(arrays, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    context: Context = pickle.loads(
        rest, buffers=[whole[start : start + length] for start, length in places]
    )  # our own process wrote it
    return context


FASTEST = 1
"""Level of gzip."""
_one_at_a_time = threading.Lock()


def merged_step(whole: Comparison, steps: Sequence[TypicalStep | None]) -> bytes:
    """The gzip of `to_perfetto` with ``steps``, those of control and test, instead of the typical ones.

    Raises:
        TracediffError: a side is a snapshot, its file cannot be read any more, or a step has too many events.
    """
    comparison = with_steps(whole, steps)
    with _one_at_a_time:
        try:
            compressed: bytes = Spawned(_written, comparison).result()
        except EOFError:
            raise TracediffError("merged step", "the process that wrote it exited", "free some memory") from None
    return compressed


def with_steps(whole: Comparison, steps: Sequence[TypicalStep | None]) -> Comparison:
    """``whole`` with ``steps`` of control and test instead of the typical ones."""
    control, test = (side.replace(typical=step) for side, step in zip(whole.sides, steps, strict=True))
    return whole.replace(control=control, test=test)


def _written(_report: Report, comparison: Comparison) -> bytes:
    return gzip.compress(to_perfetto(comparison).text.encode(), FASTEST, mtime=0)
