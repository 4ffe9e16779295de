"""The target of memory snapshots: pickles with odd values, damaged, or both."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random

from build_memory_snapshot import alloc, block, event, frames, free, segment, snapshot

from fuzz import mutate
from fuzz.invariants import require
from tracediff.memory.account import account_of
from tracediff.present.memory import memory_text
from tracediff.report.memory import to_json


def _whole() -> dict[str, object]:
    """Two devices with every kind of event, block and segment."""
    moves = [event("segment_alloc", 77, 5), event("segment_free", 78, 6), event("segment_map", 1 << 33, 4)]
    trace = [*alloc(600, 9, frames(), 5), *alloc(1600, 9, (), 6), *free(600, 9, frames(), 7), *moves]
    held = [
        segment(0, 4096, block(0, 512, stack=frames()), block(1600, 12, requested=9), block(512, 80, "inactive")),
        segment(1 << 33, 9, block(1 << 33, 4), device=1, is_expandable=True),
    ]
    return snapshot(held, trace, [{"action": "oom", "size": 9, "device_free": 1, "frames": []}])


def make_memory(random: Random) -> bytes:
    """A memory snapshot, spoiled or damaged or both."""
    way = random.random()
    content = pickle.dumps(mutate.spoil(random, _whole()) if way < 0.6 else _whole(), random.choice((2, 4, 5)))
    if way > 0.5:
        content = mutate.damage(random, content)
    return mutate.packed(random, content) if random.random() < 0.03 else content


def use_memory(content: bytes, folder: Path, _random: Random) -> None:
    """Account for it, compare it with a whole one, and write both; all parts add up."""
    spoilt, whole = folder / "spoilt.pickle", folder / "whole.pickle"
    spoilt.write_bytes(content)
    whole.write_bytes(pickle.dumps(_whole()))
    sides = [account_of(str(path)) for path in (whole, spoilt)]
    for account in sides[1].devices:
        require(sum(amount.size for amount in account.holders.values()) == account.peak, "the parts of the peak add up")
        require(sum(part.reserved_bytes for part in account.segments) == account.reserved, "the segments add up")
    memory_text(sides, 3)
    to_json(sides)
