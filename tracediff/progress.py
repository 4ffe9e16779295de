"""`Progress` of reading files, by bytes on disk; several processes may read."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableSequence, Sequence

from tracediff.formatting import byte_unit, clock, plural, size
from tracediff.structs import FrozenStruct

READING = 0.65
"""Share of the time per file that its bytes take to read; building its profile takes the rest."""
INTERVAL_S = 0.1
"""Minimum time between two reports while a file is read, in seconds."""


class Progress(FrozenStruct, kw_only=True):
    """How far the files have been read.

    Attributes:
        bytes_read: of the files as they are stored (compressed files: compressed bytes).
        bytes_total: of all files, None if the size of one is unknown (a URL).
        files_done, files: number of files whose profile is built, and in total.
        fraction: of all work, 0 to 1, including the profiles built from what was read.
        elapsed_s: time since reading began. left_s: estimated time left, None while unknown.
    """

    bytes_read: int
    bytes_total: int | None
    files_done: int
    files: int
    fraction: float
    elapsed_s: float
    left_s: float | None

    @property
    def stage(self) -> str:
        """What the files wait for."""
        return "Building profiles" if self.bytes_read == self.bytes_total else "Reading traces"

    def __str__(self) -> str:
        """``10.4 of 16.1 MB · 2.51 MB/s · 0:02 left``."""
        if self.bytes_total is None:
            parts = [size(self.bytes_read), f"{self.files_done:,} of {plural(self.files, 'file')}"]
        else:
            unit = byte_unit([self.bytes_total])
            parts = [f"{unit.plain(self.bytes_read)} of {unit.text(self.bytes_total)}"]
        if self.bytes_read and self.elapsed_s:
            parts.append(f"{size(self.bytes_read / self.elapsed_s)}/s")
        if self.left_s is not None:
            parts.append(f"{clock(self.left_s)} left")
        return " · ".join(parts)


OnProgress = Callable[[Progress], None]


class Meter:
    """Adds up the bytes of all files, and reports them.

    Attributes:
        bytes_read: of each file; only the process that reads a file writes its entry.
    """

    def __init__(self, sizes: Sequence[int], bytes_read: MutableSequence[int], report: OnProgress | None) -> None:
        """Report at once.

        Args:
            sizes: of each file in bytes, 0 if unknown. bytes_read: zeros, one for each file.
        """
        self.bytes_read = bytes_read
        self._sizes = sizes
        self._report = report
        self._done: set[int] = set()
        self._started = time.monotonic()
        self._fraction = 0.0
        self._moved_s = self._reported_s = 0.0
        self.report()

    def read(self, file: int, position: int) -> None:
        """Report that ``position`` bytes of a file have been read in this process."""
        self.bytes_read[file] = position
        if time.monotonic() - self._started - self._reported_s >= INTERVAL_S:
            self.report()

    def finish(self, file: int) -> None:
        """Report that the profile of a file is built."""
        self.bytes_read[file] = self._sizes[file] or self.bytes_read[file]
        self._done.add(file)
        self.report()

    def report(self) -> None:
        """Report the sum over all files, if anyone wants to know."""
        if self._report is None:
            return
        read, total = sum(self.bytes_read), sum(self._sizes) if all(self._sizes) else None
        elapsed = self._reported_s = time.monotonic() - self._started
        fraction = len(self._done) / len(self._sizes) if self._sizes else 1.0
        if total:
            fraction = (READING * read + (1 - READING) * sum(self._sizes[k] for k in self._done)) / total
        if fraction > self._fraction:
            self._fraction, self._moved_s = fraction, elapsed
        self._report(
            Progress(
                bytes_read=read,
                bytes_total=total,
                files_done=len(self._done),
                files=len(self._sizes),
                fraction=fraction,
                elapsed_s=elapsed,
                left_s=max(self._moved_s / self._fraction - elapsed, 0.0) if self._fraction else None,
            )
        )
