"""What holds for every input, however odd."""

from __future__ import annotations

import msgspec
from build_trace import noted, rows

from tracediff.errors import TracediffError, printable
from tracediff.ingest.files.documents import NOT_JSON
from tracediff.ingest.model.trace import Trace

DROPPED = ("no-time", "damaged")
"""Health notes of events that were left out."""


class Fault(AssertionError):
    """An invariant that does not hold."""


def require(holds: object, what: str) -> None:
    """Check one of them.

    Raises:
        Fault: it does not hold.
    """
    if not holds:
        raise Fault(what)


def one_line(error: TracediffError) -> None:
    """An error is one line that says where, what and what to do."""
    text = str(error)
    require(text == printable(text) and "\n" not in text and len(text) < 2000, f"no line: {text[:200]!r}")
    require(error.subject and error.reason and error.remedy, f"no remedy: {text[:200]!r}")


def counted(trace: Trace, content: bytes) -> None:
    """Events kept and dropped are the events there are, in a file that is JSON."""
    try:
        document = msgspec.json.decode(content)  # as strict as the standard: half a character is damage
    except NOT_JSON:
        return
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list) or content.count(b'"traceEvents"') > 1:
        return
    if any(note.code == "truncated" for note in trace.notes):  # says that events are missing, not how many
        return
    dropped = sum(note.count for note in trace.notes if note.code in DROPPED)
    require(len(trace) + dropped == len(events), f"{len(trace)} kept + {dropped} dropped of {len(events)} events")


def same_reading(whole: Trace, pieces: Trace) -> None:
    """What is read does not depend on where chunks end."""
    require(len(whole) == len(pieces), f"chunks: {len(whole)} and {len(pieces)} events")
    require(noted(whole) == noted(pieces), f"chunks: {noted(whole)} and {noted(pieces)}")
    require(rows(whole) == rows(pieces), "chunks: other events")
