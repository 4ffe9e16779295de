"""A JSON list → its events, whatever types their fields have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from tracediff.ingest.arguments import ABSENT
from tracediff.ingest.health import REPAIRED, UNREADABLE, Notes
from tracediff.ingest.syntax import NOT_JSON, repaired
from tracediff.ingest.times import MISSING, number


class Event(msgspec.Struct, gc=False):
    """The fields read from every event; its arguments stay raw until its category is known."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: int | float | None = None
    dur: int | float | None = MISSING
    id: int | str | None = None
    args: msgspec.Raw = ABSENT


class TextEvent(Event, gc=False):
    """An event with its start as text: for clocks that a float64 cannot represent to the nanosecond."""

    ts: msgspec.Raw = ABSENT  # type: ignore[assignment]  # narrows what JSON is accepted, on purpose


@dataclass
class Batch:
    """Decoded events, the JSON list they came from, notes on what was repaired, and whether starts are text."""

    text: bytes
    events: list[Event]
    notes: Notes
    times_as_text: bool


EVENTS, TEXT_EVENTS = msgspec.json.Decoder(list[Event]), msgspec.json.Decoder(list[TextEvent])


def read_events(text: bytes, times_as_text: bool) -> Batch:
    """The events of ``text``, a JSON list.

    Raises:
        msgspec.DecodeError, RecursionError: ``text`` is not a JSON list.
    """
    notes, decoder = Notes(), TEXT_EVENTS if times_as_text else EVENTS
    try:
        return Batch(text, cast(list[Event], decoder.decode(text)), notes, times_as_text)
    except (msgspec.ValidationError, UnicodeDecodeError):
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
        read = [_carefully(bytes(item), TextEvent if times_as_text else Event, notes) for item in items]
        return Batch(text, [event for event in read if event is not None], notes, times_as_text)


def _carefully(text: bytes, kind: type[Event], notes: Notes) -> Event | None:
    """One event whose fields may have any type."""
    if not text.startswith(b"{"):
        notes.add("damaged", "entries of the list of events that are not objects were dropped")
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except NOT_JSON:
        pass
    try:
        event = _converted(text, kind)
    except NOT_JSON:
        fixed = repaired(text)
        if fixed is None:
            notes.add("damaged", UNREADABLE)
            return None
        notes.add("repaired", REPAIRED)
        return _converted(fixed, kind)
    try:
        msgspec.json.decode(text, type=TextEvent)  # a start is no odd field, however it is written
    except NOT_JSON:
        notes.add("odd-fields", "events with fields of unexpected types were read as far as they go")
    return event


def _converted(text: bytes, kind: type[Event]) -> Event:
    """The event of a JSON object, with each field as far as it can be read.

    Raises:
        one of NOT_JSON: it is not an object, or a text in it is not valid.
    """
    fields = {name: bytes(raw) for name, raw in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items()}

    def value(name: str) -> Any:
        raw = fields.get(name, b"null")
        try:
            return msgspec.json.decode(raw)
        except NOT_JSON:
            if raw.startswith(b'"'):
                raise
            return raw.decode(errors="replace")  # a number beyond float64, or nested too deep

    def text_of(name: str) -> str:
        found = value(name)
        return found if isinstance(found, str) else "" if found is None else fields[name].decode()

    def identity(name: str) -> int | str | None:
        found = value(name)
        return found if found is None or isinstance(found, int | str) else text_of(name)

    start = fields.get("ts", b"")
    return kind(
        ph=text_of("ph"),
        cat=text_of("cat") or None,
        name=text_of("name"),
        pid=identity("pid"),
        tid=identity("tid"),
        ts=cast(Any, msgspec.Raw(start) if kind is TextEvent else number(start)),
        dur=number(fields.get("dur", b"")),
        id=identity("id"),
        args=msgspec.Raw(fields["args"]) if "args" in fields else ABSENT,
    )
