"""A rank that is late into collectives which the host carries out (gloo)."""

from __future__ import annotations

import pytest
from build_trace import annotation, document, op, step, write

import tracediff
from tracediff.analysis.analyze import analyze_set


def rank(late, wait):
    """Three steps of 1 ms: a product, then Python for ``late``, then a collective that lasts ``wait`` µs."""
    for n in range(3):
        start = 1000 * n
        yield step(n, start, 1000)
        yield op("aten::mm", start + 10, 200)
        yield op("c10d::allreduce_", start + 220 + late, 5)
        yield annotation("gloo:all_reduce", start + 230 + late, wait, tid=999)


def side(folder, late):
    """Two ranks, of which rank 1 comes ``late`` µs later than rank 0, which waits for it."""
    folder.mkdir()
    write(folder / "rank0.json", document(rank(0, 100 + late), distributedInfo={"rank": 0, "world_size": 2}))
    write(folder / "rank1.json", document(rank(late, 100), distributedInfo={"rank": 1, "world_size": 2}))
    return str(folder)


def test_a_late_rank_is_a_finding(tmp_path):
    before, after = side(tmp_path / "before", 0), side(tmp_path / "after", 300)
    diff = tracediff.compare(before, after)
    (found,) = [f for f in diff.findings if f.code == "straggler"]
    assert found.title.startswith("rank 1 is late in after")
    assert found.delta_us == pytest.approx(150)  # the median of 300 and 0
    analysis = analyze_set(tracediff.load(after))
    (found,) = [f for f in analysis.findings if f.code == "straggler"]
    assert found.title == "rank 1 of after is a straggler: other ranks wait up to 300.0 µs per step"


def test_ranks_that_come_together_are_none(tmp_path):
    same = side(tmp_path / "before", 0)
    assert not [f for f in analyze_set(tracediff.load(same)).findings if f.code == "straggler"]
