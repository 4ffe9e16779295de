"""Spoils inputs: values of other types and sizes, events missing, doubled and out of order, clocks that jump, ids that
collide, and bytes that are damaged anywhere.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from odd_values import NAMES, VALUES, placed

Document = dict[str, Any]


SYNTAX = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\x00", b"\xff", b"\n")


def odd(random: Random) -> Any:
    """A value that does not belong where it is put; sometimes deep inside others."""
    value = placed(random.choice(NAMES if random.random() < 0.2 else VALUES))
    if random.random() < 0.05:
        for _ in range(random.choice((3, 30, 300))):
            value = [value] if random.random() < 0.5 else {"a": value}
    return value


def spoil(random: Random, document: Document) -> Any:
    """``document`` with one to four faults; it is changed."""
    out: Any = document
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        out = random.choice(FAULTS)(random, out)
    return out


def shifted(random: Random, document: Document) -> Document:
    """``document``, still valid, with events at other times and in another order; it is changed."""
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            start, length = event["ts"] + random.choice((0, random.randint(-60, 60))), event["dur"]
            event["ts"] = round(max(0, start + random.choice((0, 0, random.random()))), 3)
            event["dur"] = max(0, length + random.choice((0, 0, random.randint(-80, 80))))
    random.shuffle(document["traceEvents"])
    return document


def damage(random: Random, content: bytes) -> bytes:
    """``content`` with some bytes changed, lost, doubled or added, or cut off."""
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(content) + 1)
        to = min(len(content), at + random.choice((1, 1, 2, 8, 64, 500)))
        content = random.choice(
            (
                content[:at] + content[to:],
                content[:at] + bytes(random.randrange(256) for _ in range(to - at)) + content[to:],
                content[:to] + content[at:],
                content[:at]
                + random.choice((b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\x00", b"\xff", b"\n"))
                + content[at:],
                content[:at],
                content[:at] + str(odd(random)).encode("utf-8", "replace") + content[at:],
            )
        )
    return content


def packed(random: Random, content: bytes) -> bytes:
    """``content`` compressed, which may itself be damaged."""
    small = gzip.compress(content, 1)
    return damage(random, small) if random.random() < 0.5 else small + random.choice((b"", b"\x00" * 9, small))


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything in ``value``."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        found += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys if isinstance(inner[key], dict | list)]
    return found


def _place(random: Random, document: Any) -> tuple[Any, Any] | None:
    found = places(document)
    return random.choice(found) if found else None


def set_odd(random: Random, document: Any) -> Any:
    """Any value anywhere becomes an odd one."""
    place = _place(random, document)
    if place:
        place[0][place[1]] = odd(random)
    return document


def drop(random: Random, document: Any) -> Any:
    """Anything is gone."""
    place = _place(random, document)
    if place:
        del place[0][place[1]]
    return document


def swap(random: Random, document: Any) -> Any:
    """Two values take each other's places: ids collide, names become times."""
    one, other = _place(random, document), _place(random, document)
    if one and other:
        a, b = one[0][one[1]], other[0][other[1]]
        nested = any(isinstance(x, dict | list) for x in (a, b))
        if not nested:
            one[0][one[1]], other[0][other[1]] = b, a
    return document


def add_key(random: Random, document: Any) -> Any:
    """A key that is known elsewhere, or that is odd."""
    found = places(document)
    objects = [c for c, _ in found if isinstance(c, dict)]
    keys = [k for _, k in found if isinstance(k, str)]
    if objects:
        random.choice(objects)[random.choice([*keys, "", "a" * 500, "\x00"])] = odd(random)
    return document


def _of_events(change: Callable[[Random, list[Any]], None]) -> Callable[[Random, Any], Any]:
    def changed(random: Random, document: Any) -> Any:
        events = document.get("traceEvents") if isinstance(document, dict) else document
        if isinstance(events, list) and events:
            change(random, events)
        return document

    return changed


def _shuffle(random: Random, events: list[Any]) -> None:
    random.shuffle(events)


def _double(random: Random, events: list[Any]) -> None:
    event = random.choice(events)
    events += [dict(event) if isinstance(event, dict) else event] * random.choice((1, 2, 30))


def _retime(random: Random, events: list[Any]) -> None:
    """A clock that jumps, durations of zero, less and forever, for some of the events."""
    timed = [e for e in events if isinstance(e, dict)]
    key = random.choice(("ts", "ts", "dur"))
    value = random.choice((0, -5000, 0.001, 10**6, 10**12, 4.32e12, 9e15, -(10**18), 0.5))
    for event in random.sample(timed, random.randint(0, len(timed))):
        if random.random() < 0.5 and isinstance(event.get(key), int | float):
            event[key] += value
        else:
            event[key] = value


def _collide(random: Random, events: list[Any]) -> None:
    """One value of an argument, or of a field, for all events that have it."""
    found = [(c, k) for c, k in places(events) if isinstance(k, str)]
    if found:
        container, key = random.choice(found)
        for other, name in found:
            if name == key and random.random() < 0.8:
                other[name] = deepcopy(container[key])


def _steps(random: Random, events: list[Any]) -> None:
    """Steps that overlap, are empty, share a number or lie inside each other."""
    names = [f"ProfilerStep#{n}" for n in (0, 1, 2, 2, 3, 10**9)]
    for _ in range(random.randint(1, 4)):
        ts, dur = random.randrange(0, 5000, 50), random.choice((0, 1, 100, 1000, 10**5))
        category = random.choice(("user_annotation", "gpu_user_annotation", "cpu_op"))
        events.append(
            {"ph": "X", "cat": category, "name": random.choice(names), "pid": 1, "tid": 1, "ts": ts, "dur": dur}
        )


def as_list(_random: Random, document: Any) -> Any:
    """The root is the list of events."""
    return document.get("traceEvents", []) if isinstance(document, dict) else {"traceEvents": document}


OF_EVENTS = tuple(_of_events(change) for change in (_shuffle, _double, _retime, _retime, _collide, _steps))
FAULTS: tuple[Callable[[Random, Any], Any], ...] = (set_odd,) * 5 + (drop, swap, add_key, as_list) + OF_EVENTS
