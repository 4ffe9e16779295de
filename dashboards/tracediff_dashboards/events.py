"""The events of one file, to look at closer: read in a process of its own into a file that is mapped, so that the system can take their memory back."""

from __future__ import annotations

import mmap
import multiprocessing
import pickle
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tracediff.engine import WORTH_A_PROCESS, see_file, size_of
from tracediff.errors import TracediffError
from tracediff.ingest.source import TraceFile
from tracediff.profile.families import Families
from tracediff.profile.measures.measure import Seen

ALIGNED = 64
"""Bytes: where an array may begin in the file."""


def read_events(file: TraceFile, step_marker: str | None, families: Families) -> Seen:
    """The events of ``file``; its arrays are not to be written to. See `tracediff.engine.see_file`.

    Raises:
        TracediffError: the file can no longer be read.
    """
    if size_of(file) < WORTH_A_PROCESS:
        return see_file(file, step_marker, families)
    with tempfile.TemporaryDirectory(prefix="tracediff-events-", ignore_cleanup_errors=True) as folder:
        arrays = Path(folder) / "arrays"
        context = multiprocessing.get_context("spawn")  # a copy of this process would hold locks of its other threads
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_read, args=(sender, str(arrays), file, step_marker, families), daemon=True)
        process.start()
        sender.close()
        try:
            found: Any = receiver.recv()
        except EOFError:
            raise TracediffError(str(file), "the process that read its events has died", "it may need more memory than there is") from None
        finally:
            receiver.close()
            process.join()
        if isinstance(found, Exception):
            raise found
        return _mapped(arrays, *found)


def _read(sender: Connection, arrays: str, file: TraceFile, step_marker: str | None, families: Families) -> None:
    """What the process does: write the arrays, send the rest, and where each array ends."""
    try:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(see_file(file, step_marker, families), protocol=5, buffer_callback=buffers.append)
        places = []
        with open(arrays, "wb") as out:
            for buffer in buffers:
                out.write(bytes(-out.tell() % ALIGNED))
                places.append((out.tell(), buffer.raw().nbytes))
                out.write(buffer.raw())
        sender.send((rest, places))
    except TracediffError as error:
        sender.send(error)
    except (MemoryError, OSError) as error:
        sender.send(TracediffError(str(file), f"its events cannot be kept ({error or 'not enough memory'})", "make room, or look at shorter traces"))


def _mapped(arrays: Path, rest: bytes, places: list[tuple[int, int]]) -> Seen:
    with open(arrays, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    seen: Seen = pickle.loads(rest, buffers=[whole[start : start + length] for start, length in places])  # our own process wrote it
    return seen
