"""Events on a device that are no work: waits, marks, and those whose time other events have."""

from __future__ import annotations

from tracediff.ingest.health import Notes

CODE = "device-marks"
MARKS = "events that wait, mark, or are a part of a collective"


def note_marks(notes: Notes, device: str, count: int, what: str = MARKS) -> None:
    """Say how many events of ``device`` are kept and are no work, and ``what`` they are."""
    notes.add(CODE, f"{device} {what} are kept, and are no work", count)
