"""A history is a folder of snapshots, one file for each set that was added, here or in any place of fsspec.

The name of a file is the digest of its contents, so that no two writers have the same one, and what is added twice is
there once. There is no other file that writers could contend for.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tracediff.aggregate.averages import used_steps
from tracediff.aggregate.recorded import Recorded
from tracediff.aggregate.snapshot import read_snapshot, to_bytes
from tracediff.aggregate.snapshot_file import SUFFIX
from tracediff.aggregate.traceset import TraceSet
from tracediff.errors import TracediffError
from tracediff.ingest.source import TraceFile, shown, unreadable, url_errors
from tracediff.write import make_folder, write_bytes

DIGITS = 24
"""Hexadecimal digits of the digest in a name."""
COMMIT = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Entry:
    """One set of a history."""

    file: str
    recorded: Recorded
    traces: TraceSet


@dataclass(frozen=True)
class Entries:
    """All entries that can be read, and one line for each that cannot."""

    entries: tuple[Entry, ...]
    unread: tuple[str, ...]


def add(traces: TraceSet, recorded: Recorded, where: str) -> tuple[str, int]:
    """Add ``traces`` to the history at ``where``, a folder or URL; (path of the entry, its size in bytes).

    Raises:
        TracediffError: as for `tracediff.aggregate.snapshot.to_bytes`, or it cannot be written.
    """
    traces.recorded = recorded
    data = to_bytes(traces)
    commit = COMMIT.match(recorded.commit)
    name = f"{commit[0] if commit else 'commit'}-{hashlib.sha256(data).hexdigest()[:DIGITS]}{SUFFIX}"
    if "://" not in where:
        path = make_folder(where) / name
        write_bytes(path, data)
        return str(path), len(data)
    with url_errors(where):
        import fsspec

        system, folder = fsspec.core.url_to_fs(where)
        system.makedirs(folder, exist_ok=True)
        system.pipe_file(f"{folder.rstrip('/')}/{name}", data)
    return f"{where.rstrip('/')}/{name}", len(data)


def medians_us(traces: TraceSet) -> tuple[float, ...]:
    """The median step of each run, in µs."""
    return tuple(median(step.period_ns for step in used_steps(traces, run)) / 1000 for run in traces.runs)


def read(where: str) -> Entries:
    """The entries at ``where``, a folder or URL.

    Raises:
        TracediffError: it cannot be read, or has no entries.
    """
    entries, unread = [], []
    for path in _files(where):
        file = TraceFile(path)
        try:
            traces = read_snapshot(file)
            if traces.recorded is None:
                raise TracediffError(str(file), "a snapshot without a commit", "add it with `tracediff history add`")
            if not all(medians_us(traces)):
                raise TracediffError(str(file), "a run whose steps take no time", "record it again")
            entries.append(Entry(file.name, traces.recorded, traces))
        except TracediffError as error:
            unread.append(str(error))
    if not entries:
        reason = f"no entry can be read ({unread[0]})" if unread else "has no entries"
        raise TracediffError(shown(where), reason, "add sets with `tracediff history add SET --to HIST`")
    return Entries(tuple(entries), tuple(unread))


def _files(where: str) -> list[str]:
    """The paths or URLs of all entries, in order."""
    if "://" in where:
        with url_errors(where):
            import fsspec

            system, folder = fsspec.core.url_to_fs(where)
            names = [path.rstrip("/").rpartition("/")[2] for path in system.ls(folder, detail=False)]
        return [f"{where.rstrip('/')}/{name}" for name in sorted(names) if name.endswith(SUFFIX)]
    try:
        names = os.listdir(where)
    except OSError as error:
        raise unreadable(shown(where), error) from None
    return [str(Path(where, name)) for name in sorted(names) if name.endswith(SUFFIX) and not name.startswith(".")]
