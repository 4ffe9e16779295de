"""Events of one device → when each block and each segment existed.

Level k is the state after the first k events: a recording of m events has the levels 0 … m.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tracediff.memory.call_site import CallSite
from tracediff.memory.snapshot import MemoryEvent

RECORDED, BEFORE, FREED = "recorded", "before", "freed"
"""Origin: allocated in the recording; before it, and still allocated at the dump; before it, and freed in it."""


class Lifetime(NamedTuple):
    """A block or segment that exists at the levels from ``first`` to ``last``.

    Attributes:
        size: in bytes, as requested. site: of its allocation; of its free if the origin is FREED.
    """

    first: int
    last: int
    address: int
    size: int
    origin: str
    site: CallSite


def lifetimes(
    events: Sequence[MemoryEvent],
    opening: Collection[str],
    closing: Collection[str],
    at_dump: Mapping[int, tuple[int, CallSite]],
) -> tuple[list[Lifetime], int]:
    """The lifetimes of all blocks or segments, and how many events contradict each other.

    An event that closes an address of which nothing is known closes what was opened before the recording. An address
    that is opened twice was closed without an event; one that is closed twice counts once.

    Args:
        opening, closing: the actions that begin and end a lifetime.
        at_dump: address → (bytes, call site) of what exists at the dump.
    """
    found: list[Lifetime] = []
    opened: dict[int, tuple[int, MemoryEvent]] = {}
    known: set[int] = set()
    contradictions = 0
    for level, event in enumerate(events, start=1):
        address = event.address
        if event.action in opening:
            if address in opened:
                contradictions += 1
                found.append(_recorded(*opened[address], level - 1))
            opened[address] = (level, event)
            known.add(address)
        elif event.action in closing:
            if address in opened:
                found.append(_recorded(*opened.pop(address), level - 1))
            elif address in known:
                contradictions += 1
            else:
                found.append(Lifetime(0, level - 1, address, event.size, FREED, event.site))
            known.add(address)
    found += [_recorded(first, event, len(events)) for first, event in opened.values()]
    found += [
        Lifetime(0, len(events), address, size, BEFORE, site)
        for address, (size, site) in at_dump.items()
        if address not in opened
    ]
    return found, contradictions + sum(address not in at_dump for address in opened)


def _recorded(first: int, event: MemoryEvent, last: int) -> Lifetime:
    return Lifetime(first, last, event.address, event.size, RECORDED, event.site)
