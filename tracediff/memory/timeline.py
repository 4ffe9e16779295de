"""The allocated memory of one device over the recording, stacked by call site."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from tracediff.memory.account import Account
from tracediff.memory.lifetimes import RECORDED, Lifetime

MOST_POINTS, MOST_SITES = 600, 8
BEFORE_RECORDING, OTHER_SITES = "allocated before the recording", "other call sites"


@dataclass(frozen=True)
class MemoryTimeline:
    """Memory by call site at up to about `MOST_POINTS` levels; at each, the layers add up to what is allocated.

    Attributes:
        levels: ascending, with the first, the last and that of the peak.
        layers: name → bytes at each of ``levels``; memory from before the recording first, the largest call site next,
            other call sites last.
    """

    levels: list[int]
    layers: dict[str, list[int]]


def timeline(account: Account, sites: list[str] | None = None) -> MemoryTimeline:
    """The timeline of a device. Of each stretch of levels the one with most memory is kept, so no peak is lost.

    Args:
        sites: call sites that get a layer of their own, else those that hold most at any of the kept levels.
    """
    kept = _kept(account)
    shown = set(largest_sites(account) if sites is None else sites)
    changes: dict[str, list[int]] = {BEFORE_RECORDING: [0] * (len(account.levels) + 1)}
    changes |= {name: [0] * (len(account.levels) + 1) for name in (*sorted(shown), OTHER_SITES)}
    changes[BEFORE_RECORDING][0] = account.rounding
    for block in account.lifetimes:
        name = layer_of(block)
        change = changes[name if name in shown or name == BEFORE_RECORDING else OTHER_SITES]
        change[block.first] += block.size
        change[block.last + 1] -= block.size
    totals = {name: list(accumulate(change)) for name, change in changes.items()}
    layers = {name: [total[level] for level in kept] for name, total in totals.items()}
    order = [BEFORE_RECORDING, *sorted(shown, key=lambda name: (-max(layers[name]), name)), OTHER_SITES]
    return MemoryTimeline(kept, {name: layers[name] for name in order if name == BEFORE_RECORDING or any(layers[name])})


def largest_sites(account: Account) -> list[str]:
    """The call sites that hold most at any one time of the recording, the largest first, at most `MOST_SITES`."""
    changes: dict[str, list[tuple[int, int]]] = {}
    for block in account.lifetimes:
        name = layer_of(block)
        if name != BEFORE_RECORDING:
            changes.setdefault(name, []).extend(((block.first, block.size), (block.last + 1, -block.size)))
    most: Counter[str] = Counter()
    for name, found in changes.items():
        most[name] = max(accumulate(change for _, change in sorted(found)))
    return [name for name, _ in sorted(most.items(), key=lambda item: (-item[1], item[0]))[:MOST_SITES]]


def layer_of(block: Lifetime) -> str:
    """The name of the layer of ``block``, if its call site has one of its own."""
    return str(block.site) if block.origin == RECORDED else BEFORE_RECORDING


def _kept(account: Account) -> list[int]:
    levels = account.levels
    stretch = max(len(levels) // MOST_POINTS, 1)
    kept = {0, len(levels) - 1, account.peak_level}
    kept |= {
        max(range(k, min(k + stretch, len(levels))), key=levels.__getitem__) for k in range(0, len(levels), stretch)
    }
    return sorted(kept)
