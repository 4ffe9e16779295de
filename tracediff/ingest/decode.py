"""One chunk of JSON events → one part of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import msgspec
import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.arguments import ABSENT, ArgumentDecoder, int_column, text_of
from tracediff.ingest.health import Notes
from tracediff.ingest.times import MISSING, Inexact, Int64, from_numbers, from_text


class Event(msgspec.Struct, gc=False):
    """What is read of every event; its arguments stay raw until its category is known."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    id: int | str | None = None
    bp: str | None = None
    args: msgspec.Raw = ABSENT


class TextEvent(Event, gc=False):
    """The same with its start as text: for clocks that a float64 cannot hold to the nanosecond."""

    ts: msgspec.Raw = ABSENT  # type: ignore[assignment]  # narrows what JSON is accepted, on purpose


class Codes(dict[Any, int]):
    """Value → small code, given in order of first appearance."""

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self)
        return code

    def of(self, values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int32]]:
        """int32 codes of ``values``."""
        return np.array(list(map(self.__getitem__, values)), np.int32)


@dataclass
class Part:
    """Columns of one chunk: base columns by name, and per category code (rows in the part, argument columns by name)."""

    base: dict[str, np.ndarray[Any, Any]]
    arguments: dict[int, tuple[Int64, dict[str, np.ndarray[Any, Any]]]]


@dataclass
class EventDecoder:
    """Decodes chunks and keeps the dictionaries that their codes refer to."""

    notes: Notes
    names: Codes = field(default_factory=Codes)
    categories: Codes = field(default_factory=lambda: Codes((c, i) for i, c in enumerate(cat.KNOWN)))
    ids: Codes = field(default_factory=Codes)
    phases: Codes = field(default_factory=Codes)
    texts: Codes = field(default_factory=lambda: Codes({b"": 0}))
    argument_decoders: dict[int, ArgumentDecoder] = field(default_factory=dict)
    _stated: Codes = field(default_factory=Codes)
    _canonical: list[int] = field(default_factory=list)
    _annotation_names: list[int] = field(default_factory=list)
    _names_seen: int = 0
    _times_as_text: bool = False

    def __post_init__(self) -> None:
        self._events = msgspec.json.Decoder(list[Event])
        self._text_events = msgspec.json.Decoder(list[TextEvent])

    def events(self, text: bytes) -> tuple[bytes, list[Event]]:
        """``text`` (a JSON list of objects) and its events; those that fit no event are left out and counted by `part`.

        Raises:
            msgspec.DecodeError: ``text`` is no JSON list of objects.
        """
        decoder = self._text_events if self._times_as_text else self._events
        try:
            return text, cast(list[Event], decoder.decode(text))
        except msgspec.ValidationError:
            objects = msgspec.json.decode(text, type=list[msgspec.Raw])
            return text, [self._lenient(bytes(o)) for o in objects]

    def _lenient(self, text: bytes) -> Event:
        try:
            event = msgspec.json.decode(text, type=TextEvent if self._times_as_text else Event)
        except msgspec.ValidationError:
            try:
                found = msgspec.json.decode(text)
                event = _repaired(found) if isinstance(found, dict) else Event(ph="?")
            except (msgspec.DecodeError, RecursionError):
                event = Event(ph="?")
            if self._times_as_text and event.ph != "?":
                event.ts = cast(Any, msgspec.Raw(msgspec.json.encode(event.ts)))
        return event

    def part(self, decoded: tuple[bytes, list[Event]]) -> Part:
        """The columns of one batch from `events`; unusable events are counted in the notes and left out."""
        text, events = decoded
        unusable = [e for e in events if e.ph == "?"]
        if unusable:
            self.notes.add("damaged", "events that are no valid JSON were left out", len(unusable))
            events = [e for e in events if e.ph != "?"]
        try:
            ts = self._starts(events)
        except Inexact:
            self._times_as_text = True
            return self.part(self.events(text))
        base = {
            "ts": ts,
            "dur": self._durations(events),
            "name": self.names.of([e.name for e in events]),
            "pid": self.ids.of([e.pid for e in events]),
            "tid": self.ids.of([e.tid for e in events]),
            "phase": self.phases.of([e.ph for e in events]),
        }
        base["category"] = self._categories(events, base)
        keep = self._timed(base)
        if not keep.all():
            base = {k: v[keep] for k, v in base.items()}
            events = [e for e, k in zip(events, keep.tolist(), strict=True) if k]
        return Part(base, self._argument_parts(events, base["category"]))

    def _starts(self, events: list[Event]) -> Int64:
        values = [e.ts for e in events]
        if self._times_as_text:
            return from_text(values)
        try:
            return from_numbers(cast(Any, values))
        except Inexact:
            if None not in values:
                raise
            there = iter(from_numbers([v for v in values if v is not None]).tolist())
            return np.array([MISSING if v is None else next(there) for v in values], np.int64)

    def _durations(self, events: list[Event]) -> Int64:
        values = [e.dur for e in events]
        there = np.array([v is not None for v in values])
        out = np.full(len(events), MISSING, np.int64)
        given = [v for v in values if v is not None]
        try:
            out[there] = from_numbers(given)
        except Inexact:
            out[there] = from_text([repr(v).encode() for v in given])
        return out

    def _categories(self, events: list[Event], base: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.int32]]:
        stated = self._stated.of([e.cat for e in events])
        for new in islice(self._stated, len(self._canonical), None):
            self._canonical.append(-1 if not new else self.categories[cat.RENAMED.get(new, new)])
        out = np.array(self._canonical, np.int32)[stated]
        for row in np.flatnonzero(out < 0).tolist():
            out[row] = self.categories[_unstated(events[row])]
        for new in islice(self.names, self._names_seen, None):
            if new.startswith(cat.OLD_ANNOTATIONS):
                self._annotation_names.append(self.names[new])
        self._names_seen = len(self.names)
        if self._annotation_names:
            out[(out == cat.CPU_OP) & np.isin(base["name"], self._annotation_names)] = cat.ANNOTATION
        return out

    def _timed(self, base: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which events of a part can be placed in time; metadata events need not be."""
        complete = base["phase"] == self.phases["X"]
        untimed = (base["ts"] == MISSING) & (base["category"] != cat.METADATA)
        unended = complete & (base["dur"] == MISSING) & ~untimed
        negative = complete & (base["dur"] < 0) & ~unended & ~untimed
        self.notes.add("no-time", "events without a start were left out", int(untimed.sum()))
        self.notes.add("no-duration", "complete events without a duration were taken as 0 ns long", int(unended.sum()))
        self.notes.add("negative-duration", "events with a negative duration were taken as 0 ns long", int(negative.sum()))
        base["dur"][unended | negative] = 0
        base["dur"][~complete] = MISSING
        return ~untimed

    def _argument_parts(self, events: list[Event], category: np.ndarray[Any, np.dtype[np.int32]]) -> dict[int, tuple[Int64, dict[str, np.ndarray[Any, Any]]]]:
        out = {}
        raw = [e.args for e in events]
        has = np.fromiter(map(len, raw), np.int64, len(raw)) > 0  # type: ignore[arg-type]  # Raw has a length
        for code in np.unique(category).tolist():
            rows = np.flatnonzero((category == code) & has)
            if len(rows):
                out[code] = rows, self._columns(code, [raw[i] for i in rows.tolist()])
            elif code >= cat.INSTANT:
                rows = np.flatnonzero(category == code)
                ids = [events[i].id for i in rows.tolist()]
                out[code] = rows, {"id": np.array([i if isinstance(i, int) else MISSING for i in ids], np.int64)}
        return out

    def _columns(self, category: int, objects: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
        decoder = self.argument_decoders.get(category)
        if decoder is None:
            decoder = self.argument_decoders[category] = ArgumentDecoder(category)
        out: dict[str, np.ndarray[Any, Any]] = {}
        for name, column in decoder.columns(objects, self.notes).items():
            kind = decoder.kind(name)
            if kind is int:
                out[name] = int_column(column, self.notes)
            elif kind is float:
                out[name] = np.array(column, np.float64)
            else:
                out[name] = self.texts.of(list(map(bytes, column))) - np.int32(1)
        return out


def _unstated(event: Event) -> str:
    if event.name == "[memory]":
        return "cpu_instant_event"
    return cat.BY_PHASE.get(event.ph, "instant" if event.ph != "X" else "unknown")


def _repaired(found: dict[str, Any]) -> Event:
    """An event whose fields have unexpected types, as far as they can be told."""

    def number(value: Any) -> int | float | None:
        try:
            return cast(float, msgspec.convert(value, int | float, strict=False))
        except (msgspec.ValidationError, OverflowError):
            return None

    def identity(value: Any) -> int | str | None:
        return value if value is None or isinstance(value, int | str) else str(value)

    def text(value: Any) -> str:
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return Event(
        ph=text(found.get("ph", "")),
        cat=None if found.get("cat") is None else text(found["cat"]),
        name=text(found.get("name", "")),
        pid=identity(found.get("pid")),
        tid=identity(found.get("tid")),
        ts=number(found.get("ts")),
        dur=number(found.get("dur")),
        args=msgspec.Raw(msgspec.json.encode(found["args"])) if "args" in found else ABSENT,
    )


def decoded_texts(raw: Codes) -> list[str]:
    """The strings behind the codes of raw JSON values: code 0 stood for an absent value, and codes are stored less one."""
    return [text_of(text) for text in islice(raw, 1, None)]
