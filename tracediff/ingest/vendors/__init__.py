"""Devices whose events in Kineto's JSON do not have Kineto's categories: what gives them those, in a module for each
but Meta's MTIA, all of whose device events have one category.

A translator changes a `Trace` in place: categories, correlations, streams and names as events of CUDA have them. Names
of categories and calls are in the vendor's record of `tracediff.runtimes`.
"""

from typing import SupportsInt

import numpy as np

from tracediff.arrays import MISSING, Int64, int64_of
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import process_labels
from tracediff.ingest.model.trace import Codes, Trace
from tracediff.runtimes import ARGUMENT, ASCEND, MTIA, TPU, device_of_process


def translate(trace: Trace, notes: Notes) -> None:
    """Have the events of each device translated that the names of processes or the categories say is there; the
    translators, which look closer, are imported for such traces only.
    """
    labels = process_labels(trace)
    if any(not set(ASCEND.processes).isdisjoint(names) for names in labels):
        from tracediff.ingest.vendors.ascend import translate_ascend

        translate_ascend(trace, notes)
    if MTIA.device_events in trace.categories:
        translate_mtia(trace, notes)
    if any(device_of_process(names) == TPU.device for names in labels):
        from tracediff.ingest.vendors.xla import translate_xla

        translate_xla(trace, notes)


CODE = "device-marks"
MARKS = "events that wait, mark, or are a part of a collective"


def note_marks(notes: Notes, device: str, count: SupportsInt, what: str = MARKS) -> None:
    """Say how many events of ``device`` are kept and are not work, and ``what`` they are."""
    notes.add(CODE, f"{device} {what} are kept, and are not work", count)


EVENTS, MTIA_MARKS = MTIA.device_events, f"{MTIA.prefix}marks"
COPY, WAIT, RECORD = "dma_request", "event_wait", "event_record"


def translate_mtia(trace: Trace, notes: Notes) -> None:
    """Copies (with their direction in the name), waits and records apart from kernels; bytes and device of copies."""
    rows = trace.complete((trace.categories.index(EVENTS),))
    directions = trace.texts_of("direction", rows)
    is_copy, is_mark = (trace.name_matches(names.__contains__, rows) for names in ((COPY,), (WAIT, RECORD)))
    category = trace.category.copy()
    category[rows] = np.where(is_copy, cat.MEMCPY, np.where(is_mark, trace.category_code(MTIA_MARKS), cat.KERNEL))
    size, device = trace.integers("size"), id_numbers(trace, trace.pid)
    trace.refile(category)
    copies = rows[is_copy]
    trace.set_integers(ARGUMENT.size, copies, size[copies])
    trace.set_integers(ARGUMENT.device, rows[~is_mark], device[rows[~is_mark]])
    of_copies = [d for d, is_one in zip(directions, is_copy.tolist(), strict=True) if is_one]
    trace.rename(copies, [f"{COPY} ({direction})" if direction else COPY for direction in of_copies])
    note_marks(notes, MTIA.name, is_mark.sum())


def rows_apart(trace: Trace) -> Int64:
    """Rows of the complete events in categories that are not Kineto's."""
    return np.flatnonzero((trace.dur >= 0) & (trace.category >= len(cat.KNOWN)))


def id_numbers(trace: Trace, ids: Codes) -> Int64:
    """int64[n] numbers of processes or threads (codes of them), which of events on a device are those of the device or
    its stream; MISSING for others.
    """
    numbers = [number if isinstance(number, int) and number >= 0 else MISSING for number in trace.ids]
    return int64_of([*numbers, MISSING])[ids]
