"""Health notes: reports of what was dropped, repaired or guessed while a trace was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import SupportsInt

from msgspec import Struct, field

from tracediff import bounds
from tracediff.structs import FrozenStruct

UNREADABLE = "events that are not valid JSON were dropped"
REPAIRED = "events with a few invalid characters (NaN, single backslashes, …) were repaired"
"""Messages used in more than one place."""


class Note(FrozenStruct):
    """What was dropped, repaired or guessed while the traces were read."""

    code: str
    """stable code (docs/health.md)"""
    message: str
    count: int = 1
    """events or files concerned"""


class Notes(Struct):
    """Collects notes; the counts of equal (code, message) add up."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, notes: Iterable[Note]) -> Notes:
        """Those that there are already."""
        all_notes = cls()
        all_notes.update(notes)
        return all_notes

    def add(self, code: str, message: str, count: SupportsInt = 1) -> None:
        """Add ``count`` to the note, whose message is cut where it is long; a count of 0 adds no note."""
        if count:
            key = (
                code,
                message if len(message) <= bounds.HEALTH_MESSAGE else f"{message[: bounds.HEALTH_MESSAGE - 1]}…",
            )
            self.counts[key] += int(count)

    def update(self, notes: Iterable[Note]) -> None:
        """Add ``notes``."""
        for note in notes:
            self.add(note.code, note.message, note.count)

    def list(self) -> list[Note]:
        """The notes in order of code."""
        return [Note(code, message, n) for (code, message), n in sorted(self.counts.items())]


def less(notes: Iterable[Note], excluded: Iterable[Note]) -> list[Note]:
    """``notes`` less the counts of ``excluded``, in order of code."""
    return Notes(Notes.of(notes).counts - Notes.of(excluded).counts).list()


def counted(notes: Iterable[Note], code: str) -> int:
    """How many events or files the notes of ``code`` concern."""
    return sum(note.count for note in notes if note.code == code)
