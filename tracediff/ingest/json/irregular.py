"""What is irregular: a JSON list → its events, whatever types their fields have; damaged text → its readable events,
the others counted.

What is kept of damaged text and what is lost depends on the file alone, not on how it is cut into chunks: each decision
needs a fixed number of bytes behind the place where it is made (`LOOK`), and is put off until the text holds that many.
"""

import re
import sys
from typing import Any, cast

import msgspec
from msgspec import Struct

from tracediff import bounds
from tracediff.arrays import MISSING
from tracediff.ingest.files.documents import (
    NOT_JSON,
    STRING,
    begins_with_value,
    is_malformed,
    is_object,
    raw_fields,
    repaired,
    value_end,
)
from tracediff.ingest.json.arguments import ABSENT
from tracediff.ingest.model.health import REPAIRED, UNREADABLE, Notes
from tracediff.ingest.model.times import number
from tracediff.patterns import late


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


class Batch(Struct):
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
        msgspec.json.decode(text, type=TextEvent)  # a start is a usual field, however it is written
    except NOT_JSON:
        notes.add("odd-fields", "events with fields of unexpected types were read as far as they go")
    return event


def _converted(text: bytes, kind: type[Event]) -> Event:
    """The event of a JSON object, with each field as far as it can be read.

    Raises:
        one of NOT_JSON: it is not an object, or a text in it is not valid.
    """
    fields = {name: bytes(raw) for name, raw in raw_fields(text).items()}

    def value(name: str) -> Any:
        raw = fields.get(name, b"null")
        try:
            return msgspec.json.decode(raw)
        except NOT_JSON:
            if raw.startswith(b'"'):
                raise
            return raw.decode(errors="replace")  # a number beyond float64, or nested too deep

    def text_of(name: str) -> str:
        text = value(name)
        return text if isinstance(text, str) else "" if text is None else fields[name].decode()

    def identity(name: str) -> int | str | None:
        number = value(name)
        return number if number is None or isinstance(number, int | str) else text_of(name)

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


BETWEEN_EVENTS = late(rb"[\s,]*")
OBJECT_START = late(rb'\{\s*"')
PHASE_KEY = late(rb'"ph"\s*:')
SIMPLE = late(STRING + rb'|[^\s,\[\]{}"]++', re.DOTALL)
"""A value that is neither an object nor a list."""

LOOK = 1 << 20
"""Bytes in which a damaged event has to end, and in which the next one is looked for."""
SHORT = 2 << 10


class _TooShort(Exception):
    """The decision needs more of the file."""


class Salvage(Struct, dict=True):
    """The readable events of ``text``, which begins with an item of the list of events.

    Attributes:
        list_end: matches the end of the list, where it is given a position.
        final: the file ends with ``text``.
        before: bytes of the file before ``text``.
        in_vain: bytes of the file searched so far without finding an event.
        events: JSON values.
        used: how far ``text`` was read; what follows needs more of the file, or is damage without a later event.
        closed: the list of events ends at ``used``.
        lost, repaired: how many events.
        given_up: bytes in which no event was found.
    """

    text: bytes
    list_end: re.Pattern[bytes]
    final: bool
    before: int
    in_vain: int
    events: list[bytes] = []
    used: int = 0
    closed: bool = False
    lost: int = 0
    repaired: int = 0
    given_up: int = 0

    def __post_init__(self) -> None:
        try:
            while not self.closed and self._next():
                pass
        except _TooShort:
            pass

    def _next(self) -> bool:
        """Read one item or skip damage; False if nothing more can be read."""
        start = self.used = cast(re.Match[bytes], BETWEEN_EVENTS.match(self.text, self.used)).end()
        if start == len(self.text):
            return False
        closing = self.list_end.match(self.text, start)
        if closing:
            self._need(closing.end() + 1)
            self.used, self.closed = start + 1, True
            return False
        end = self._read(start)
        if end < 0:
            end = self._resynchronised(start + 1)
            if end < 0:
                return False
            self.lost += events_in(self.text, start, end)
        self.used = end
        return True

    def _need(self, stop: int) -> None:
        """Raise _TooShort if the text ends before ``stop``, and the file does not."""
        if len(self.text) < stop and not self.final:
            raise _TooShort

    def _read(self, start: int) -> int:
        """Position behind the item that begins at ``start``, -1 where none can be read there."""
        is_value = begins_with_value(memoryview(self.text)[start:])
        if is_value:
            end = self._value_end(start)
            self._need(end + 1)  # a number may go on
            if end >= 0:
                self.events.append(self.text[start:end])
                return end
        self._need(sys.maxsize if is_value is None else start + LOOK + 2)
        end = self._searched(start, start + LOOK)
        fixed = repaired(self.text[start:end]) if end >= 0 else None
        if fixed is None:
            return -1
        self.repaired += 1
        self.events.append(fixed)
        return end

    def _resynchronised(self, start: int) -> int:
        """Position of the next event that can be read: an object that has a phase and a time, as no argument has. Half
        of the bytes looked at are passed over where there is none; -1 at the end of the file.
        """
        stop = start + LOOK
        for match in OBJECT_START.finditer(self.text, start, stop):
            end = self._searched(match.start(), stop)
            if end > 0:
                if _is_event(self.text[match.start() : end]):
                    return match.start()
                self.in_vain += end - match.start()
            if self.in_vain > bounds.LAST_SALVAGE * (self.before + stop):
                break
        else:
            if self.final and stop >= len(self.text):
                return -1
        end = min(start + LOOK // 2, len(self.text))
        self.given_up += end - start
        return end

    def _value_end(self, start: int) -> int:
        """Position behind the JSON value that begins at ``start``; -1 where what follows belongs to it (``5a``)."""
        if self.text[start : start + 1] in (b"{", b"["):
            return value_end(self.text, start)
        simple = cast(re.Match[bytes], SIMPLE.match(self.text, start))
        return -1 if is_malformed(simple[0]) else simple.end()

    def _searched(self, start: int, stop: int) -> int:
        """Position behind the object that begins at ``start``, -1 where it does not end before ``stop``, or within
        SHORT bytes where too many were searched in vain.
        """
        if self.text[start : start + 1] != b"{":
            return -1
        reach = LOOK if self.in_vain < bounds.SALVAGE * (self.before + start + LOOK) else SHORT
        stop = min(start + reach, stop, len(self.text))
        end = value_end(self.text, start, stop)
        if end < 0:
            self.in_vain += stop - start
        return end


def events_in(text: bytes, start: int = 0, stop: int = sys.maxsize) -> int:
    """About how many events a damaged text holds: at least one."""
    return max(1, len(PHASE_KEY.findall(text, start, stop)))


def _is_event(text: bytes) -> bool:
    try:
        keys = raw_fields(text if is_object(text) else repaired(text) or b"{}")
    except NOT_JSON:
        return False
    return "ph" in keys and ("ts" in keys or bytes(keys["ph"]) == b'"M"')
