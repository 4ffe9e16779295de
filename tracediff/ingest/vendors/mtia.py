"""Meta's MTIA: all device events have one category, whatever they do."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Notes
from tracediff.ingest.refile import category_code, integers, refile, rename, set_integers, texts
from tracediff.ingest.times import MISSING
from tracediff.ingest.trace import Trace
from tracediff.ingest.vendors.marks import note_marks
from tracediff.runtimes import ARGUMENT, MTIA

EVENTS, MARKS = MTIA.device_events, f"{MTIA.prefix}marks"
COPY, WAIT, RECORD = "dma_request", "event_wait", "event_record"


def translate_mtia(trace: Trace, notes: Notes) -> None:
    """Copies (with their direction in the name), waits and records apart from kernels; bytes and device of copies."""
    if EVENTS not in trace.categories:
        return
    rows = np.flatnonzero((trace.category == trace.categories.index(EVENTS)) & (trace.dur >= 0))
    directions = texts(trace, "direction", rows)
    is_copy, is_mark = (trace.named_among(rows, names.__contains__) for names in ((COPY,), (WAIT, RECORD)))
    category = trace.category.copy()
    category[rows] = np.where(is_copy, cat.MEMCPY, np.where(is_mark, category_code(trace, MARKS), cat.KERNEL))
    size, device = integers(trace, "size"), _devices(trace)
    refile(trace, category)
    copies = rows[is_copy]
    set_integers(trace, ARGUMENT.size, copies, size[copies])
    set_integers(trace, ARGUMENT.device, rows[~is_mark], device[rows[~is_mark]])
    of_copies = [d for d, is_one in zip(directions, is_copy.tolist(), strict=True) if is_one]
    rename(trace, copies, [f"{COPY} ({direction})" if direction else COPY for direction in of_copies])
    note_marks(notes, MTIA.name, int(is_mark.sum()))


def _devices(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64[n] number of each event's process, which is that of the device for its events."""
    numbers = [pid if isinstance(pid, int) and 0 <= pid < 2**31 else MISSING for pid in trace.ids]
    return np.array([*numbers, MISSING], np.int64)[trace.pid]
