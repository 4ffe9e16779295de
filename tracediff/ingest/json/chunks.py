"""A stream of bytes → batches of whole events.

The stream is cut between events. A candidate is ``}`` white space ``,`` white space ``{``; it is right exactly if
``[`` + chunk + ``]`` decodes, whatever the layout. If the last few candidates are wrong (events that contain lists of
objects), the events are read one by one. So is text that is damaged, whose lost events are counted.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from tracediff import bounds
from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.files.documents import (
    NOT_JSON,
    brackets,
    is_malformed,
    is_object,
    raw_fields,
    repaired,
)
from tracediff.ingest.files.source import TraceFile, Unpacked
from tracediff.ingest.json.irregular import PHASE_KEY, Salvage, events_in
from tracediff.ingest.model.health import REPAIRED, UNREADABLE, Notes
from tracediff.patterns import late

CHUNK = 1 << 18
LARGEST_EVENT = 64 << 20
LARGEST_HEAD = 64 << 20
"""Bytes of metadata read before the events, and after them."""
MOST_DAMAGE = 32 << 20
"""Skipped bytes, after which reading the file fails."""

BLANK = b"\xef\xbb\xbf \t\r\n"
NOT_BLANK = late(rb"[^\xef\xbb\xbf \t\r\n]")
LISTS = {key: late(rb'"(?<!\\.)%s"\s*+:\s*+\[' % key) for key in (b"traceEvents", b"nodes")}
"""Where the list of events of a trace, and of an execution trace, may begin."""
END_IN_OBJECT = late(rb'\]\s*+(?:\}\s*+(?![,}\]])|,\s*"|,?\s*\Z)')
END_OF_ROOT = late(rb"\]\s*+(?![,}\]])")
"""The end of the list of events if it is a value of the root object, and if it is the root. A stray ``]`` between
events is neither.
"""

ReadPlain = Callable[[bytes], tuple[Any, int]]
"""A text that begins with an event → the decoded events as far as they are plain, and where the next one begins; none
where the first is not.
"""
Decode = Callable[[bytes], Any]
"""A JSON list of events as text → the decoded events; raises one of NOT_JSON if the text is not a JSON list."""


DecodedPiece = tuple[Any, int, bool]
"""Decoded events, the bytes they took, and whether the list of events ended."""


class EventStream(Struct):
    """The events of one file, and the metadata around them.

    Attributes:
        head: JSON object text of the metadata before the events (``{}`` if the root is a list).
        key: of the list of events in the root object, one of `LISTS`.
        tail: JSON object text of the metadata after them; known once `batches` is exhausted.
    """

    file: TraceFile
    stream: Unpacked
    decode: Decode
    notes: Notes
    chunk: int = CHUNK
    read_plain: ReadPlain = lambda _: ((), 0)
    key: bytes = b"traceEvents"
    head: bytes = b"{}"
    tail: bytes = b"{}"
    list_end: re.Pattern[bytes] = END_IN_OBJECT
    _passed_over: int = 0
    _position: int = 0
    _in_vain: int = 0

    def batches(self) -> Iterator[Any]:
        """Decoded events, a batch for about each `chunk` bytes.

        Raises:
            NotATrace: the file has no ``traceEvents``.
            TracediffError: an event of more than LARGEST_EVENT bytes, and every error of the stream.
        """
        buffer = self._to_first_event()
        size = self.chunk
        while True:
            more = self.stream.read(size)
            buffer += more
            piece = self._take(buffer, final=not more)
            if piece is None and not more:
                self._cut_off(buffer)
                return
            if piece is None:
                if len(buffer) > LARGEST_EVENT:
                    raise TracediffError(
                        self.file,
                        f"an event is longer than {LARGEST_EVENT >> 20} MB",
                        "the file is damaged; copy or record it again",
                    )
                size = max(size, len(buffer))  # doubling bounds the work on an event longer than a chunk
                continue
            events, used, closed = piece
            yield events
            self._position += used
            if closed:
                self._read_tail(buffer[used:])
                return
            buffer, size = buffer[used:], self.chunk

    def _to_first_event(self) -> bytes:
        """What was read so far from the first event on."""
        buffer, root = self._to_root()
        if buffer[root] == ord("["):
            self.list_end = END_OF_ROOT
            return buffer[root + 1 :]
        if buffer[root] != ord("{"):
            raise _without_events(self.file, buffer[root:][: 1 << 16])
        while True:
            start = self._events_start(buffer, root)
            if start is not None:
                head = buffer[root:start] + b"]}"
                self.head = head if is_object(head) else repaired(head) or b"{}"
                if self.head == b"{}":
                    self.notes.add("head-damaged", "the text before the events is damaged: its metadata is unknown")
                return buffer[start:]
            more = self.stream.read(max(self.chunk, len(buffer)))
            if not more and not is_object(buffer[root:]) and not is_malformed(buffer[root:]):
                raise NotATrace(self.file, "the file is cut off before its events", "copy or record it again")
            if not more or len(buffer) > LARGEST_HEAD:
                raise _without_events(self.file, buffer[root:][: 1 << 16])
            buffer += more

    def _to_root(self) -> tuple[bytes, int]:
        """(what was read last, where the root begins in it)."""
        while more := self.stream.read(self.chunk):
            if first := NOT_BLANK.search(more):
                return more, first.start()
        raise TracediffError(self.file, "the file is empty", "record it again")

    def _events_start(self, buffer: bytes, root: int) -> int | None:
        """Position of the first event: after the ``[`` of a ``traceEvents`` that is a key of the root."""
        list_starts = _list_starts(buffer, self.key)
        first = next(list_starts, None)
        if first is None:
            return None
        if (first, 2) in brackets(buffer, root, first):
            return first
        lists = [first, *list_starts]
        ends = set(lists)
        of_root = next(
            (end for end, depth in brackets(buffer, root, lists[-1]) if depth == 2 and end in ends), len(buffer) + 1
        )
        damaged = bisect_left(lists, True, key=lambda end: is_malformed(buffer[root:end]))
        start = min(of_root, *lists[damaged : damaged + 1], len(buffer) + 1)  # whichever comes first
        return start if start <= len(buffer) else None

    def _take(self, buffer: bytes, final: bool) -> DecodedPiece | None:
        """Events from the start of ``buffer``; None if more of the file is needed."""
        events, end = self.read_plain(buffer)
        if events:
            return events, end, False
        quick = None if final else self._quickly_cut(buffer)
        return self._read_singly(buffer, final) if quick is None else quick

    def _quickly_cut(self, buffer: bytes) -> DecodedPiece | None:
        """Events up to the last of a few likely cuts."""
        start, tries = len(buffer), 0
        for _ in range(bounds.CUTS_TRIED):
            start = buffer.rfind(b"{", 0, start)
            if start < 0 or tries == bounds.QUICK_CUTS:
                return None
            before = buffer[max(0, start - 256) : start].rstrip()
            if not before.endswith(b",") or not before[:-1].rstrip().endswith(b"}"):
                continue
            tries += 1
            with suppress(*NOT_JSON):
                return self.decode(b"[" + buffer[: buffer.rindex(b"}", 0, start)] + b"}]"), start, False
        return None

    def _read_singly(self, buffer: bytes, final: bool) -> DecodedPiece | None:
        salvage = Salvage(buffer, self.list_end, final, self._position, self._in_vain)
        if not salvage.used:
            return None
        self._in_vain = salvage.in_vain
        self.notes.add("repaired", REPAIRED, salvage.repaired)
        self.notes.add("damaged", UNREADABLE, salvage.lost)
        self._pass_over(salvage.given_up + max(0, bounds.SHORT_EVENT * len(salvage.events) - salvage.used))
        return self.decode(b"[" + b",".join(salvage.events) + b"]"), salvage.used, salvage.closed

    def _pass_over(self, size: int) -> None:
        self._passed_over += size
        if self._passed_over > MOST_DAMAGE:
            raise TracediffError(
                self.file,
                f"more than {MOST_DAMAGE >> 20} MB cannot be read",
                "the file is damaged; copy or record it again",
            )

    def _cut_off(self, rest: bytes) -> None:
        if len(PHASE_KEY.findall(rest)) > 1:
            self.notes.add("damaged", UNREADABLE, events_in(rest))
        else:
            self.notes.add("truncated", "the file is cut off; later events are missing")

    def _read_tail(self, rest: bytes) -> None:
        parts, size = [rest], len(rest)
        while size <= LARGEST_HEAD and (more := self.stream.read(self.chunk)):
            parts.append(more)
            size += len(more)
        if size > LARGEST_HEAD:
            self.notes.add(
                "tail-damaged",
                f"the text after the events is longer than {LARGEST_HEAD >> 20} MB: its metadata was dropped",
            )
            return
        body = b"".join(parts).strip(BLANK)
        if self.list_end is END_OF_ROOT:
            if body:
                self._tail_damaged(body)
            return
        tail = b"{" + body.removeprefix(b",")
        if is_object(tail):
            self.tail = tail
        elif is_object(tail.rstrip(b",") + b"}"):
            self.tail = tail.rstrip(b",") + b"}"
            self.notes.add("truncated", "the file is cut off after its events; the metadata there is missing")
        elif fixed := repaired(tail):
            self.tail = fixed
            self.notes.add("repaired", "metadata with a few invalid characters was repaired")
        elif is_malformed(tail):
            self._tail_damaged(body)
        else:
            self.notes.add("truncated", "the file is cut off after its events; the metadata there is missing")
        if self.key.decode() in raw_fields(self.tail):
            self.notes.add("second-events", "the file has a second list of events, which was dropped")

    def _tail_damaged(self, tail: bytes) -> None:
        self.notes.add("tail-damaged", "the text after the events is damaged: its metadata is unknown")
        self.notes.add(
            "damaged", "events after the end of the list of events were dropped", len(PHASE_KEY.findall(tail))
        )


def _list_starts(buffer: bytes, key: bytes) -> Iterator[int]:
    """Positions behind each ``[`` where a list called ``key`` may begin; the key is found before a pattern is tried,
    since a pattern would be tried at every quote of a file.
    """
    quoted, place = b'"%s"' % key, -1
    while (place := buffer.find(quoted, place + 1)) >= 0:
        if match := LISTS[key].match(buffer, place):
            yield match.end()


def _without_events(file: TraceFile, first: bytes) -> NotATrace:
    """The error for a file that begins with these bytes and has no ``traceEvents``."""
    if b'"nodes"' in first and (b'"ctrl_deps"' in first or b'"schema"' in first):
        return NotATrace(
            file,
            "an execution trace (ExecutionTraceObserver), which contains no times",
            "give the profiler's Chrome trace of the same run",
        )
    return NotATrace(
        file,
        "JSON without traceEvents",
        "give a trace from torch.profiler (export_chrome_trace or tensorboard_trace_handler)",
    )
