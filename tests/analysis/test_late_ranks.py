"""A rank that is late into collectives which the host carries out (gloo), and those of a real set."""

from __future__ import annotations

import traces
from build_trace import annotation, document, op, step, write

import tracediff
from tracediff.analysis import analyze_set
from tracediff.engine import load_sets


def rank(late, wait):
    """Three steps of 1 ms: a product, then Python for ``late``, then a collective that lasts ``wait`` µs."""
    for n in range(3):
        start = 1000 * n
        yield step(n, start, 1000)
        yield op("aten::mm", start + 10, 200)
        yield op("c10d::allreduce_", start + 220 + late, 5)
        yield annotation("gloo:all_reduce", start + 230 + late, wait, tid=999)


def stragglers(folder, late):
    """Findings on two ranks, of which rank 1 comes ``late`` µs later than rank 0, which waits for it."""
    folder.mkdir()
    write(folder / "rank0.json", document(rank(0, 100 + late), distributedInfo={"rank": 0, "world_size": 2}))
    write(folder / "rank1.json", document(rank(late, 100), distributedInfo={"rank": 1, "world_size": 2}))
    return [f for f in analyze_set(tracediff.load(str(folder))).findings if f.code == "straggler"]


def test_a_late_rank_is_a_finding(tmp_path):
    (found,) = stragglers(tmp_path / "after", 300)
    assert found.title == "rank 1 of after is a straggler: other ranks wait up to 300.0 µs per step"


def test_no_rank_waits_longer_than_the_step(tmp_path):
    (found,) = stragglers(tmp_path / "after", 1500)
    assert found.title.endswith("other ranks wait up to 1,000 µs per step")
    assert "1,600 µs (collectives that overlap are added up)" in found.detail


def test_ranks_that_come_together_are_none(tmp_path):
    assert not stragglers(tmp_path / "before", 0)


@traces.needs_traces
def test_the_rank_that_waits_least_comes_last():
    (traceset,) = load_sets([str(traces.FOLDER / "dlrm_8ranks")])
    (found,) = [f for f in analyze_set(traceset).findings if f.code == "straggler"]
    assert found.title == "ranks 2, 6, 7 of dlrm_8ranks are stragglers: other ranks wait up to 9,590 µs per step"
    assert found.evidence[-1].startswith("rank 1: 11.3")
