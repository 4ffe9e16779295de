"""Salvages the readable events of damaged text, and counts the others."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import cast

import msgspec

from tracediff.ingest.brackets import value_end
from tracediff.ingest.syntax import NOT_JSON, is_object, repaired

BETWEEN_EVENTS = re.compile(rb"[\s,]*")
OBJECT_START = re.compile(rb'\{\s*"')
PHASE_KEY = re.compile(rb'"ph"\s*:')

PATIENCE = 4
"""Times the text's length that may be searched in vain; after that no event longer than SHORT is looked for."""
SHORT = 2 << 10
LAST_PATIENCE = 20
"""The same for short events; after that the rest of the text is given up."""


@dataclass
class Salvage:
    """The readable events of ``text``, which begins with an item of the list of events.

    Attributes:
        list_end: matches the end of the list, where it is given a position.
        events: JSON objects.
        used: how far ``text`` was read; then follows an event that does not end, or damage without a later event.
        closed: the list of events ends at ``used``.
        lost, repaired: how many events.
        given_up: bytes left unsearched at the end, because searching them would take too long.
    """

    text: bytes
    list_end: re.Pattern[bytes]
    events: list[bytes] = field(default_factory=list)
    used: int = 0
    closed: bool = False
    lost: int = 0
    repaired: int = 0
    given_up: int = 0
    _in_vain: int = 0

    def __post_init__(self) -> None:
        while not self.closed and self._next():
            pass

    def _next(self) -> bool:
        """Read one event or skip damage; False if nothing more can be read."""
        start = self.used = cast(re.Match[bytes], BETWEEN_EVENTS.match(self.text, self.used)).end()
        if self.list_end.match(self.text, start):
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

    def _read(self, start: int) -> int:
        """Position behind the event that begins at ``start``, -1 where none can be read there."""
        end = self._end(start)
        if end < 0:
            return -1
        event = self.text[start:end]
        if not is_object(event):
            fixed = repaired(event)
            if fixed is None:
                return -1
            self.repaired += 1
            event = fixed
        self.events.append(event)
        return end

    def _resynchronised(self, start: int) -> int:
        """Position of the next event that can be read: an object that has a phase and a time, as no argument has. The
        end where that takes too long.
        """
        for match in OBJECT_START.finditer(self.text, start):
            end = self._end(match.start())
            if end > 0:
                if _is_event(self.text[match.start() : end]):
                    return match.start()
                self._in_vain += end - match.start()
            if self._in_vain > LAST_PATIENCE * len(self.text):
                self.given_up = len(self.text) - match.start()
                return len(self.text)
        return -1

    def _end(self, start: int) -> int:
        if self.text[start : start + 1] != b"{":
            return -1
        stop = len(self.text) if self._in_vain < PATIENCE * len(self.text) else min(start + SHORT, len(self.text))
        end = value_end(self.text, start, stop)
        if end < 0:
            self._in_vain += stop - start
        return end


def events_in(text: bytes, start: int = 0, stop: int = sys.maxsize) -> int:
    """About how many events a damaged text holds: at least one."""
    return max(1, len(PHASE_KEY.findall(text, start, stop)))


def _is_event(text: bytes) -> bool:
    try:
        keys = msgspec.json.decode(text if is_object(text) else repaired(text) or b"{}", type=dict[str, msgspec.Raw])
    except NOT_JSON:
        return False
    return "ph" in keys and ("ts" in keys or bytes(keys["ph"]) == b'"M"')
