"""A stream of bytes → batches of whole events.

The stream is cut between events: a candidate is ``}`` white space ``,`` white space ``{``, and a cut is right exactly when ``[`` + chunk + ``]``
decodes, whatever the layout. Where the last few candidates are wrong (events that hold lists of objects) the nesting is followed instead, and what
does not decode even so is damaged: it is salvaged event by event, and what is lost is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tracediff.errors import TracediffError
from tracediff.ingest.health import Notes
from tracediff.ingest.nesting import brackets, top_level
from tracediff.ingest.salvage import Salvage
from tracediff.ingest.source import TraceFile, Unpacked, not_a_trace
from tracediff.ingest.syntax import NOT_JSON, is_malformed, is_object, repaired

CHUNK = 1 << 20
LARGEST_EVENT = 64 << 20
LARGEST_HEAD = 64 << 20
"""Bytes of metadata read before the events, and behind them."""
CANDIDATES = 40
"""Opening braces looked at from the end of a chunk, for a cut."""
QUICK_TRIES = 2
"""Cuts tried before the nesting is followed."""

BLANK = b"\xef\xbb\xbf \t\r\n"
EVENTS_KEY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
NEXT_ITEM = re.compile(rb"\s*,\s*(?=\S)")
END_IN_OBJECT = re.compile(rb'\]\s*(?:\}|,\s*"|,?\s*\Z)')
END_OF_ROOT = re.compile(rb"\]\s*(?!,)")
"""The end of the list of events where it is a value of the root object, and where it is the root: a stray ``]`` between events is neither."""

Decode = Callable[[bytes], Any]
"""A JSON list of events as text → the decoded events; raises one of NOT_JSON where the text is no JSON list."""


class Taken(NamedTuple):
    """Decoded events, the bytes they took, and whether the list of events ended."""

    events: Any
    used: int
    closed: bool


@dataclass
class EventStream:
    """The events of one file, and the metadata around them.

    Attributes:
        head: JSON object text made of what stands before the events (``{}`` where the root is a list).
        tail: JSON object text made of what stands behind them; known once `batches` is exhausted.
    """

    file: TraceFile
    stream: Unpacked
    decode: Decode
    notes: Notes
    chunk: int = CHUNK
    head: bytes = b"{}"
    tail: bytes = b"{}"
    list_end: re.Pattern[bytes] = END_IN_OBJECT

    def batches(self) -> Iterator[Any]:
        """Decoded events, a batch for about each `chunk` bytes.

        Raises:
            NotATrace: the file holds no ``traceEvents``.
            TracediffError: an event of more than LARGEST_EVENT bytes; whatever the stream raises.
        """
        buffer = self._to_first_event()
        size = self.chunk
        while True:
            more = self.stream.read(size)
            buffer += more
            taken = self._take(buffer, final=not more)
            if taken is None and not more:
                self.notes.add("truncated", "the file ends in the middle of its events; later events are missing")
                return
            if taken is None:
                if len(buffer) > LARGEST_EVENT:
                    raise TracediffError(str(self.file), f"no event ends within {LARGEST_EVENT >> 20} MB", "the file is damaged; record it again")
                size = max(size, len(buffer))  # doubling bounds the work on an event longer than a chunk
                continue
            yield taken.events
            if taken.closed:
                self._read_tail(buffer[taken.used :])
                return
            buffer, size = buffer[taken.used :], self.chunk

    def _to_first_event(self) -> bytes:
        buffer = self._to_root()
        if buffer[:1] == b"[":
            self.list_end = END_OF_ROOT
            return buffer[1:]
        if buffer[:1] != b"{":
            raise not_a_trace(self.file, buffer[: 1 << 16])
        while True:
            start = self._events_start(buffer)
            if start is not None:
                head = buffer[:start] + b"]}"
                self.head = head if is_object(head) else repaired(head) or b"{}"
                if self.head == b"{}":
                    self.notes.add("head-damaged", "what stands before the events is damaged: metadata there is unknown")
                return buffer[start:]
            more = self.stream.read(max(self.chunk, len(buffer)))
            if not more or len(buffer) > LARGEST_HEAD:
                raise not_a_trace(self.file, buffer[: 1 << 16])
            buffer += more

    def _to_root(self) -> bytes:
        while more := self.stream.read(self.chunk):
            buffer = more.lstrip(BLANK)
            if buffer:
                return buffer
        raise TracediffError(str(self.file), "the file is empty", "record it again")

    def _events_start(self, buffer: bytes) -> int | None:
        """Position of the first event: behind the ``[`` of a ``traceEvents`` that is a key of the root."""
        lists = [match.end() for match in EVENTS_KEY.finditer(buffer)]
        if not lists:
            return None
        wanted = set(lists)
        for at, depth in brackets(buffer, 0, lists[-1]):
            if depth == 2 and at + 1 in wanted:
                return at + 1
        return lists[0] if is_malformed(buffer[: lists[0]]) else None

    def _take(self, buffer: bytes, final: bool) -> Taken | None:
        """Events from the start of ``buffer``; None where more of the file is needed."""
        quick = None if final else self._quickly_cut(buffer)
        if quick is not None:
            return quick
        ends, close = top_level(buffer)
        if close >= 0:
            if not final and not buffer[close + 1 :].lstrip(BLANK + b","):
                return None  # what follows decides whether this is the end
            events = self._decoded(buffer[:close]) if self.list_end.match(buffer, close) else None
            return self._salvaged(buffer) if events is None else Taken(events, close + 1, True)
        for end in ends[: -3 : -1]:
            after = NEXT_ITEM.match(buffer, end)
            if after:
                events = self._decoded(buffer[:end])
                return self._salvaged(buffer) if events is None else Taken(events, after.end(), False)
        return self._salvaged(buffer) if final or is_malformed(b"[" + buffer) else None

    def _quickly_cut(self, buffer: bytes) -> Taken | None:
        """Events up to the last of a few likely cuts."""
        start, tries = len(buffer), 0
        for _ in range(CANDIDATES):
            start = buffer.rfind(b"{", 0, start)
            if start < 0 or tries == QUICK_TRIES:
                return None
            before = buffer[max(0, start - 256) : start].rstrip()
            if not before.endswith(b",") or not before[:-1].rstrip().endswith(b"}"):
                continue
            tries += 1
            events = self._decoded(buffer[: buffer.rindex(b"}", 0, start) + 1])
            if events is not None:
                return Taken(events, start, False)
        return None

    def _decoded(self, text: bytes) -> Any:
        try:
            return self.decode(b"[" + text + b"]")
        except NOT_JSON:
            return None

    def _salvaged(self, buffer: bytes) -> Taken | None:
        found = Salvage(buffer, self.list_end)
        if not found.used:
            return None
        self.notes.add("damaged", "events that are no valid JSON were left out", found.lost)
        self.notes.add("repaired", "events that were JSON but for some characters (NaN, single backslashes, …) were repaired", found.repaired)
        return Taken(self.decode(b"[" + b",".join(found.events) + b"]"), found.used, found.closed)

    def _read_tail(self, rest: bytes) -> None:
        parts, size = [rest], len(rest)
        while size <= LARGEST_HEAD and (more := self.stream.read(self.chunk)):
            parts.append(more)
            size += len(more)
        body = b"".join(parts).strip(BLANK)
        if self.list_end is END_OF_ROOT:
            self.notes.add("tail-damaged", "what follows the events is damaged: metadata there is unknown", bool(body))
            return
        tail = b"{" + body.removeprefix(b",")
        for text in (tail, tail + b"}", repaired(tail)):
            if text is not None and is_object(text):
                self.tail = text
                break
        if not body or not is_malformed(tail) and self.tail is not tail:
            self.notes.add("truncated", "the file ends behind its events; metadata there is missing")
        elif self.tail == b"{}" and tail != b"{}":
            self.notes.add("tail-damaged", "what follows the events is damaged: metadata there is unknown")
        if "traceEvents" in msgspec.json.decode(self.tail, type=dict[str, msgspec.Raw]):
            self.notes.add("second-events", "the file holds a second list of events, which was left out")
