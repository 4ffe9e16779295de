"""Events on a device that are no work: waits, marks, and the tasks that a collective consists of."""

from __future__ import annotations

from tracediff.ingest.health import Notes

CODE = "device-marks"


def note_marks(notes: Notes, device: str, count: int) -> None:
    """Say how many events of ``device`` are kept and are no work."""
    notes.add(CODE, f"{device} events that wait, mark, or are a part of a collective are kept, and are no work", count)
