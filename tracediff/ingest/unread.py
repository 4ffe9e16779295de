"""Health notes on events that are kept in a `Trace` and that no analysis reads: those on devices that are not supported
yet, whatever shape they have, and begin and end events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Note, Notes
from tracediff.ingest.times import MISSING, Int64
from tracediff.ingest.trace import Arguments
from tracediff.runtimes import PLACES, READ_CATEGORIES, UNREAD_CATEGORIES, device_of_process

CODE = "unread-device"
PREFIX, SUFFIX = "events of ", " are not read: the device is not supported yet"
"""What the message of such a note holds around the name of the device, process or category."""
MOST = 4
"""Names in a line."""
LONGEST = 64
"""Characters of a category's name in a note."""
PROCESS_LABELS = {"name": "process_name", "labels": "process_labels"}
"""Argument that names a process → the metadata event that has it."""
Bools = np.ndarray[Any, np.dtype[np.bool_]]


def unread_devices(notes: Iterable[Note]) -> list[str]:
    """The names of what is not read."""
    found = (n.message.removeprefix(PREFIX).partition(" are not ")[0] for n in notes if n.code == CODE)
    return list(dict.fromkeys(found))


def shortened(names: list[str]) -> str:
    """The first names, in a line."""
    return ", ".join(names[:MOST]) + (", …" if len(names) > MOST else "")


def note_unread(
    notes: Notes,
    columns: dict[str, Any],
    names: list[str],
    categories: list[str],
    phases: list[str],
    arguments: dict[int, Arguments],
    texts: list[str],
) -> None:
    """Count the events that no analysis reads."""
    processes: list[str | None] = []
    for code, category in enumerate(categories[len(cat.KNOWN) :], len(cat.KNOWN)):
        members = np.flatnonzero(columns["category"] == code)
        if category.startswith(UNREAD_CATEGORIES):
            _add(notes, category, len(members))
        elif "X" in phases and not category.startswith(READ_CATEGORIES):
            rows = members[columns["phase"][members] == phases.index("X")]
            processes = processes or (_processes(columns, names, arguments, texts) if len(rows) else [])
            for pid, count in _on_devices(rows, columns["pid"], processes, arguments.get(code)):
                _add(notes, category if category != "unknown" else processes[pid] or "an unknown device", count)
    for phase in ("B", "E"):
        if phase in phases:
            count = int((columns["phase"] == phases.index(phase)).sum())
            notes.add("unread-phase", "begin/end events (ph B and E) are not paired, so they have no duration", count)


def _add(notes: Notes, what: str, count: int) -> None:
    notes.add(CODE, f"{PREFIX}{what[:LONGEST]}{SUFFIX}", count)


def _on_devices(
    rows: Int64, pid: Any, processes: list[str | None], arguments: Arguments | None
) -> list[tuple[int, int]]:
    """(process, number) of the events at ``rows`` below the process of a device, or that name a device or a stream
    below a process of which nothing is known.
    """
    is_device = np.array([bool(p) for p in processes], bool)
    is_unknown = np.array([p is None for p in processes], bool)
    process = pid[rows]
    found, counts = np.unique(
        process[is_device[process] | (is_unknown[process] & _placed(rows, arguments))], return_counts=True
    )
    return list(zip(found.tolist(), counts.tolist(), strict=True))


def _placed(rows: Int64, arguments: Arguments | None) -> Bools:
    """bool[n]: which of the events of one category name a device or a stream."""
    if arguments is None:
        return np.zeros(len(rows), bool)
    placed = [values != MISSING for name, values in arguments.ints.items() if name in PLACES]
    placed += [codes >= 0 for name, codes in arguments.texts.items() if name in PLACES]
    return np.isin(rows, arguments.rows[np.any(placed, axis=0)] if placed else ())


def _processes(
    columns: dict[str, Any], names: list[str], arguments: dict[int, Arguments], texts: list[str]
) -> list[str | None]:
    """Code of each process → what `device_of_process` says of it."""
    labels: list[list[str]] = [[] for _ in range(int(columns["pid"].max()) + 1)]
    metadata = arguments.get(cat.METADATA, Arguments(np.empty(0, np.int64)))
    for argument, event in PROCESS_LABELS.items():
        if argument in metadata.texts and event in names:
            ours = (columns["name"][metadata.rows] == names.index(event)) & (metadata.texts[argument] >= 0)
            pids, values = columns["pid"][metadata.rows[ours]], metadata.texts[argument][ours]
            for pid, value in zip(pids.tolist(), values.tolist(), strict=True):
                labels[pid].append(texts[value])
    return [device_of_process(found) for found in labels]
