"""Health notes on events that are kept in a `Trace` and that no analysis reads: those on devices that are not supported
yet, whatever shape they have, the profiler's own work, and begin and end events.
"""

from collections.abc import Iterable

import numpy as np

from tracediff import bounds
from tracediff.arrays import Bools, Int64, tuples
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Note, Notes
from tracediff.ingest.model.names import process_labels
from tracediff.ingest.model.trace import Arguments, Trace, is_present
from tracediff.runtimes import PLACES, READ_CATEGORIES, device_of_process

CODE = "unread-device"


PREFIX, SUFFIX = "events of ", " are not read: the device is not supported yet"
"""What the message of such a note holds around the name of the device, process or category."""


def unread_devices(notes: Iterable[Note]) -> list[str]:
    """The names of what is not read."""
    devices = (n.message.removeprefix(PREFIX).partition(" are not ")[0] for n in notes if n.code == CODE)
    return list(dict.fromkeys(devices))


def shortened(names: list[str]) -> str:
    """The first names, in a line."""
    return ", ".join(names[: bounds.CATEGORIES_NAMED]) + (", …" if len(names) > bounds.CATEGORIES_NAMED else "")


def note_unread(notes: Notes, trace: Trace) -> None:
    """Count the events that no analysis reads: of those in categories of their own, the ones below the process of a
    device, and those that name a device or a stream below a process of which nothing is known.
    """
    processes = list(map(device_of_process, process_labels(trace)))
    is_device = np.array([bool(process) for process in processes], bool)
    is_unknown = np.array([process is None for process in processes], bool)
    is_complete = trace.is_in_phase("X")
    for code, category in enumerate(trace.categories[len(cat.KNOWN) :], len(cat.KNOWN)):
        members = trace.category == code
        if category == cat.OVERHEAD:
            note_overhead(notes, trace.dur[members])
        if not category.startswith(READ_CATEGORIES):
            rows = np.flatnonzero(members & is_complete)
            process = trace.pid[rows]
            is_placed = is_unknown[process] & _placed(rows, trace.arguments.get(code))
            for pid, count in tuples(*np.unique(process[is_device[process] | is_placed], return_counts=True)):
                what = category if category != "unknown" else processes[pid] or "an unknown device"
                notes.add(CODE, f"{PREFIX}{what[: bounds.CATEGORY]}{SUFFIX}", count)
    for phase in ("B", "E"):
        message = "begin/end events (ph B and E) are not paired, so they have no duration"
        notes.add("unread-phase", message, trace.is_in_phase(phase).sum())


def note_overhead(notes: Notes, durations: Int64) -> None:
    """Add up the profiler's own work, whose events last int64[n] ns."""
    message = "µs of the profiler's own work are in the recording: calls that waited for it took longer"
    notes.add("profiler-overhead", message, int(durations[durations > 0].sum(dtype=np.float64) / 1000))


def _placed(rows: Int64, arguments: Arguments | None) -> Bools:
    """bool[n]: which of the events of one category name a device or a stream."""
    if arguments is None:
        return np.zeros(len(rows), bool)
    placed = [is_present(column) for name, column in arguments.columns.items() if name in PLACES]
    return np.isin(rows, arguments.rows[np.any(placed, axis=0)] if placed else ())
