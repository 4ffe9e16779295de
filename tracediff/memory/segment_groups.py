"""Segments grouped by type, size, stream and pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tracediff.memory.segments import SegmentUse


class SegmentGroup(NamedTuple):
    """Segments of one type, size in bytes, stream and pool; size 0 for expandable ones."""

    kind: str
    size: int
    stream: int
    pool: tuple[int, int]


class Use(NamedTuple):
    """Bytes reserved and not allocated, bytes reserved, number of segments and of blocks in them."""

    unused: int
    reserved: int
    segments: int
    blocks: int

    @classmethod
    def total(cls, uses: Iterable[Use]) -> Use:
        """The sum of ``uses``."""
        columns = list(zip(*uses, strict=True))
        return cls(*map(sum, columns)) if columns else NO_USE


NO_USE = Use(0, 0, 0, 0)


def grouped_segments(segments: Sequence[SegmentUse]) -> dict[SegmentGroup, Use]:
    """The use of each group; their bytes add up to those of ``segments``."""
    found: dict[SegmentGroup, Use] = {}
    for segment in segments:
        size = 0 if segment.kind == "expandable" else segment.reserved
        group = SegmentGroup(segment.kind, size, segment.stream, segment.pool)
        use = Use(segment.unused, segment.reserved, 1, segment.blocks)
        found[group] = Use.total((found.get(group, NO_USE), use))
    return found
