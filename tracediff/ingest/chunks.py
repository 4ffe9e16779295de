"""A stream of bytes → batches of whole events.

The stream is cut between events: a candidate is ``}`` white space ``,`` white space ``{``, and a cut is right when ``[`` + chunk + ``]`` decodes,
whatever the layout. Chunks that decode nowhere are salvaged event by event; what is lost is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tracediff.errors import TracediffError
from tracediff.ingest.health import Notes
from tracediff.ingest.source import TraceFile, Unpacked, not_a_trace

CHUNK = 1 << 20
LARGEST_EVENT = 64 << 20
LARGEST_HEAD = 256 << 20
UNCUT = 8 << 20
"""Bytes without a cut that decodes, after which they count as damaged."""
TRIES = 40
"""Candidates tried for one cut before the chunk counts as damaged."""

EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
CLOSE = re.compile(rb"\}\s*\]")
BETWEEN = re.compile(rb"\}\s*,\s*\{")

Decode = Callable[[bytes], Any]
"""A JSON list of events as text → the decoded events; raises msgspec.DecodeError where the text is no JSON list of objects."""


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
    _rest: bytes = field(default=b"", repr=False)

    def batches(self) -> Iterator[Any]:
        """Decoded events, a batch for about each `chunk` bytes.

        Raises:
            NotATrace: the file holds no ``traceEvents``.
            TracediffError: an event of more than LARGEST_EVENT bytes; whatever the stream raises.
        """
        buffer = self._to_first_event()
        while True:
            more = self.stream.read(self.chunk)
            buffer += more
            taken = self._closed(buffer) if not more else self._cut(buffer) or self._closed(buffer)
            if taken is None and (not more or len(buffer) > UNCUT):
                taken = self._salvaged(buffer, final=not more)
            if taken is None:
                continue
            events, used, closed = taken
            yield events
            if closed:
                self._read_tail(buffer[used:])
                return
            buffer = buffer[used:]
            if not more:
                self._cut_off(buffer)
                return

    def _to_first_event(self) -> bytes:
        buffer = self.stream.read(self.chunk)
        if buffer.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
            return buffer[buffer.index(b"[") + 1 :]
        searched = 0
        while True:
            for match in EVENTS_KEY.finditer(buffer, searched):
                head = buffer[: match.end()].lstrip(b"\xef\xbb\xbf") + b"]}"
                if _is_json(head):
                    self.head = head
                    return buffer[match.end() :]
            searched = max(0, len(buffer) - 64)
            more = self.stream.read(len(buffer))
            if not more or len(buffer) > LARGEST_HEAD:
                raise not_a_trace(self.file, buffer[: 1 << 16])
            buffer += more

    def _cut(self, buffer: bytes) -> tuple[Any, int, bool] | None:
        """Events up to the last cut that decodes."""
        start = len(buffer)
        for _ in range(TRIES):
            start = buffer.rfind(b"{", 0, start)
            if start < 0:
                return None
            before = buffer[max(0, start - 256) : start].rstrip()
            if not before.endswith(b",") or not before[:-1].rstrip().endswith(b"}"):
                continue
            end = buffer.rindex(b"}", 0, start) + 1
            events = self._decoded(buffer[:end])
            if events is not None:
                return events, start, False
        return None

    def _closed(self, buffer: bytes) -> tuple[Any, int, bool] | None:
        """Events up to the end of the list, where it lies in ``buffer``."""
        empty = re.match(rb"\s*\]", buffer)
        if empty:
            return self.decode(b"[]"), empty.end(), True
        ends = [m for m in CLOSE.finditer(buffer)]
        for match in ends[: -TRIES - 1 : -1]:
            after = buffer[match.end() :].lstrip()[:1]
            if after in (b"", b",", b"}"):
                events = self._decoded(buffer[: match.start() + 1])
                if events is not None:
                    return events, match.end(), True
        return None

    def _decoded(self, text: bytes) -> Any:
        try:
            return self.decode(b"[" + text + b"]")
        except (msgspec.DecodeError, RecursionError):
            return None

    def _salvaged(self, buffer: bytes, final: bool) -> tuple[Any, int, bool] | None:
        """What can be read of a damaged chunk, event by event, resynchronising at the next event that decodes."""
        cuts = [0] + [m.end() - 1 for m in BETWEEN.finditer(buffer)]
        whole: list[bytes] = []
        lost, i = 0, 0
        while i < len(cuts) - 1:
            for j in range(i + 1, min(i + TRIES, len(cuts))):
                piece = buffer[cuts[i] : cuts[j]].rstrip().rstrip(b",")
                if _is_json(piece):
                    whole.append(piece)
                    i = j
                    break
            else:
                lost, i = lost + 1, i + 1
        if not whole and not final:
            if len(buffer) > LARGEST_EVENT:
                raise TracediffError(str(self.file), f"no event ends within {LARGEST_EVENT >> 20} MB", "the file is damaged; record it again")
            return None
        self.notes.add("damaged", "events that are no valid JSON were left out", lost)
        used, closed = cuts[-1], False
        if final:
            last = self._last_event(buffer[used:])
            if last is not None:
                whole.append(buffer[used : used + last])
                used, closed = used + last, bool(re.match(rb"\s*\]", buffer[used + last :]))
                if closed:
                    used = buffer.index(b"]", used) + 1
        return self.decode(b"[" + b",".join(whole) + b"]"), used, closed

    def _last_event(self, rest: bytes) -> int | None:
        """Length of the event that ``rest`` begins with."""
        end = -1
        for _ in range(TRIES):
            end = rest.find(b"}", end + 1)
            if end < 0:
                return None
            if _is_json(rest[: end + 1].strip()):
                return end + 1
        return None

    def _read_tail(self, rest: bytes) -> None:
        while len(rest) < LARGEST_HEAD and (more := self.stream.read(self.chunk)):
            rest += more
        body = rest.strip().lstrip(b",").rstrip()
        if self.head == b"{}" and not body:
            return
        tail = b"{" + (body if body.endswith(b"}") else body + b"}")
        if _is_json(tail):
            self.tail = tail
        else:
            self.notes.add("tail-damaged", "what follows the events is damaged: metadata there is unknown")

    def _cut_off(self, rest: bytes) -> None:
        lost = int(bool(rest.strip(b" \t\r\n,")))
        self.notes.add("truncated", "the file ends in the middle of its events; later events are missing", max(lost, 1))


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
