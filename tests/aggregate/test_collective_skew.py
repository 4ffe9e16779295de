"""Collectives over ranks: on generated runs of known clocks, lateness and transfer; on real ranks; on ranks that lack
some.
"""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from build_trace import call, document, kernel, op, step, write
from hypothesis import given, strategies as st
from properties import examples
from table_rows import per_step
from traces import FOLDER, needs_traces

from tracediff.aggregate.clock_sync import rank_clocks
from tracediff.aggregate.collective_skew import UNCLEAR, collective_tables
from tracediff.engine import LoadOptions, load_sets

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def write_rank(
    folder, rank, arrivals, ends, *, per_step=4, clock=0, world=None, args=None, steps=None, run=None, length=None
):
    """A rank whose collectives run from ``arrivals`` to ``ends`` (µs), ``per_step`` a step; its clock is ahead by
    ``clock`` µs.
    """
    events, length = [], length or 10_000
    for k in range(0, len(arrivals), per_step):
        number = 1 + k // per_step
        if steps and number not in steps:
            continue
        start = (number - 1) * length
        events += [step(number, start, length), op("aten::mm", start + 1, 2)]
        for j in range(k, min(k + per_step, len(arrivals))):
            events.append(call("cudaLaunchKernel", start + 5 + j - k, 1, j + 1))
            events.append(kernel(KERNEL, arrivals[j], ends[j] - arrivals[j], j + 1, **(args(j) if args else {})))
    for event in events:
        event["ts"] += clock
    name = f"rank{rank}.json" if run is None else f"run{run}/rank{rank}.json"
    return write(
        folder / name,
        document(events, distributedInfo={"rank": rank, "world_size": world}) if world else document(events),
    )


def recorded(j, elements=1000, group="0", **more):
    return {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 3,
        "Process Group Name": group,
        "Process Group Ranks": "[0, 1, 2]",
        "dtype": "Float",
        "Seq": j + 7,
        **more,
    }


def waits_of(folder):
    (traces,) = load_sets([folder], LoadOptions(tables=("collectives",), jobs=1))
    tables, notes = collective_tables(traces)
    waits, stragglers, steps, clocks = tables.values()
    return SimpleNamespace(waits=waits, stragglers=stragglers, steps=steps, clocks=clocks, notes=notes)


# two steps of four collectives over three ranks; steps are 10 ms, collectives begin in the middle of them
ARRIVE = [[5000, 5200, 5400, 5600, 15000, 15200, 15400, 15600], [5050, 5210, 5400, 5630, 15010, 15205, 15490, 15600],
          [5010, 5290, 5420, 5610, 15020, 15250, 15410, 15690]]  # fmt: skip
LAST = [max(a) for a in zip(*ARRIVE, strict=True)]
ENDS = [[last + 20 for last in LAST]] * 3


def test_waits_end_when_the_last_rank_has_come_whatever_the_clocks(tmp_path):
    for rank, clock in enumerate((0, 700, -300)):
        write_rank(tmp_path, rank, ARRIVE[rank], ENDS[rank], clock=clock + 1000, args=recorded)
    found = waits_of(tmp_path)
    ((key, row),) = per_step(found.waits).items()
    assert key == ("all_reduce", "0, 3 ranks", "float32", "≤ 4 KiB")
    waited = sum(LAST[j] - ARRIVE[r][j] for r in range(3) for j in range(8)) * 1000 / 3 / 2  # per step of the mean rank
    assert row["wait"] == pytest.approx(waited)
    assert row["transfer"] == pytest.approx(4 * 20_000)
    assert (row["unknown"], row["operations"], row["partial"]) == (0, 4, 0)
    assert row["bus"] / row["bus_time"] == pytest.approx((8000 - 2666) / 20_000, rel=1e-3)
    assert {k[1]: v["offset"] for k, v in per_step(found.clocks).items()} == {
        "0": 0,
        "1": 700_000,
        "2": -1_000_000 + 700_000,
    }
    assert found.notes == []


def test_who_comes_last_is_found_and_ties_are_unclear(tmp_path):
    for rank in range(3):
        write_rank(tmp_path, rank, ARRIVE[rank], ENDS[rank], args=recorded)
    found = waits_of(tmp_path)
    rows = per_step(found.stragglers)
    # last by collective: 1, 2, 2, 1 (by 20) | 2 (by 10), 2, 1, 2 ; per step of two
    assert {k[0]: v["last"] for k, v in rows.items() if v["last"]} == {"1": 1.5, "2": 2.5}
    assert rows["1",]["late"] == (40 + 20 + 80) * 1000 / 2
    assert sum(v["held_up"] for v in rows.values()) == pytest.approx(sum(v["wait"] for v in rows.values()))
    assert {k: v["last"] for k, v in per_step(found.steps).items()} == {
        ("1", "1"): 2,
        ("1", "2"): 2,
        ("2", "1"): 1,
        ("2", "2"): 3,
    }


def test_waits_of_collectives_that_overlap_are_added_up(tmp_path):
    arrivals = [[1000, 1500], [3000, 3000]]
    for rank in range(2):
        write_rank(
            tmp_path,
            rank,
            arrivals[rank],
            [3020, 3040],
            per_step=2,
            length=2_500,
            args=lambda j: recorded(j, group=str(j), stream=(7, 20)[j], **{"Group size": 2}),
        )
    found = waits_of(tmp_path)
    rows = per_step(found.stragglers)
    assert rows["0",]["wait"] == (2000 + 1500) * 1000  # of a step of 3,040 µs
    assert sum(row["held_up"] for row in rows.values()) == (2000 + 1500) * 1000
    assert "sums over collectives" in found.stragglers.schema.about


def test_where_two_come_last_within_their_uncertainty_it_is_unclear(tmp_path):
    jitter = [[0] * 8, [3, -3, 2, -2, 4, -4, 1, -1]]
    arrive = [[5000 + 1000 * (j >= 4) * 10 + 100 * (j % 4) for j in range(8)]] * 2
    arrive = [arrive[0], [a + 2 for a in arrive[1]]]
    for rank in range(2):
        write_rank(tmp_path, rank, arrive[rank], [a + 50 + jitter[rank][j] for j, a in enumerate(arrive[0])])
    rows = per_step(waits_of(tmp_path).stragglers)
    assert rows[UNCLEAR,]["last"] == 4
    assert all(not v["last"] for k, v in rows.items() if k != (UNCLEAR,))


@examples(25)
@given(st.integers(0, 1 << 30), st.lists(st.integers(-4000, 4000), min_size=3, max_size=3), st.booleans())
def test_a_constant_offset_of_a_clock_changes_nothing(tmp_path_factory, seed, offsets, numbered):
    draw = random.Random(seed)
    arrive = [[10_000 * (j // 4) + 3000 + 1500 * (j % 4) + draw.randrange(600) for j in range(8)] for _ in range(3)]
    ends = [[max(a[j] for a in arrive) + 30 + draw.randrange(8) for j in range(8)] for _ in range(3)]
    folder = tmp_path_factory.mktemp("t")
    for rank in range(3):
        write_rank(folder / "a", rank, arrive[rank], ends[rank], args=recorded if numbered else None)
        write_rank(
            folder / "b",
            rank,
            arrive[rank],
            ends[rank],
            clock=5000 + offsets[rank],
            args=recorded if numbered else None,
        )
    a, b = waits_of(folder / "a"), waits_of(folder / "b")
    assert a.waits == b.waits
    assert a.stragglers == b.stragglers
    assert a.steps == b.steps
    for row, (_, values) in zip(a.clocks.rows.items(), b.clocks.rows.items(), strict=True):
        rank = int(row[0][1])
        assert values == [row[1][0] + 1000 * (offsets[rank] - offsets[0]), *row[1][1:]]


@pytest.mark.parametrize("seed", range(8))
def test_clocks_and_lateness_are_right_within_the_uncertainty(seed):
    draw = np.random.default_rng(seed)
    ranks, count = 4, 60
    clock = draw.integers(-(10**9), 10**9, ranks)
    clock[0] = 0
    arrival = np.sort(draw.integers(0, 10**9, count))[:, None] + draw.integers(0, 200_000, (count, ranks))
    late = draw.integers(0, ranks, count)
    arrival[np.arange(count), late] += 300_000
    end = arrival.max(axis=1)[:, None] + 50_000 + draw.integers(-5000, 5000, (count, ranks))
    collective, rank = (c.ravel() for c in np.indices((count, ranks)))
    order = draw.permutation(count * ranks)
    found = rank_clocks(
        collective[order], rank[order], (arrival + clock).ravel()[order], (end + clock).ravel()[order], ranks
    )
    assert (np.abs(found.offset - clock) <= found.uncertainty).all()
    assert found.uncertainty.max() <= 10_000
    aligned = arrival + clock - found.offset
    assert (aligned.argmax(axis=1) == late).all()


def test_ranks_without_a_common_collective_are_led_to_each_other():
    # groups {0, 1}, {1, 2}, {3, 4}; clocks ahead by 0, 10, 30, 0, 7 µs
    ahead = np.array([0, 10, 30, 0, 7]) * 1000
    rows = [
        (g, r, 100_000 * j) for j in range(6) for g, members in enumerate(((0, 1), (1, 2), (3, 4))) for r in members
    ]
    collective = np.array([3 * (t // 100_000) + g for g, _, t in rows])
    rank, start = np.array([r for _, r, _ in rows]), np.array([t for *_, t in rows])
    found = rank_clocks(collective, rank, start + ahead[rank], start + ahead[rank] + 500, 5)
    assert found.offset.tolist() == [0, 10_000, 30_000, 0, 7000]
    assert found.reference.tolist() == [0, 0, 0, 3, 3]


def test_operations_that_cannot_be_one_collective_are_left_out(tmp_path):
    # in step 2 rank 1 misses the first and has another of its own at the end: places among equals pair the wrong ones
    arrive = [list(a) for a in ARRIVE[:2]]
    ends = [list(e) for e in ENDS[:2]]
    arrive[1][4:], ends[1][4:] = [15205, 15490, 15600, 19000], [15300, 15500, 15700, 19500]
    arrive[0][4:], ends[0][4:] = [15000, 15250, 15400, 15600], [15050, 15300, 15500, 15700]
    for rank in range(2):
        write_rank(tmp_path, rank, arrive[rank], ends[rank])
    found = waits_of(tmp_path)
    ((_, row),) = per_step(found.waits).items()
    assert row["time"] == row["wait"] + row["transfer"] + row["unknown"]
    assert row["unknown"] > 0
    assert "unmatched-collectives" in {n.code for n in found.notes}


def test_unequal_numbers_in_a_step_are_not_matched_but_sequence_numbers_are(tmp_path):
    for rank in range(2):
        some = slice(rank, 8)
        write_rank(tmp_path / "plain", rank, ARRIVE[rank][some], ENDS[rank][some])
        write_rank(
            tmp_path / "seq",
            rank,
            ARRIVE[rank][some],
            ENDS[rank][some],
            per_step=8,
            args=lambda j, r=rank: recorded(j + r),
        )
    plain, numbered = waits_of(tmp_path / "plain"), waits_of(tmp_path / "seq")
    assert sum(v["last"] for v in per_step(numbered.stragglers).values()) == 7
    assert {n.code: n.count for n in numbered.notes} == {
        "unmatched-collectives": 1,
        "partial-collectives": 14,
    }  # the group has a third rank
    assert "unmatched-collectives" in {n.code for n in plain.notes}


def test_missing_ranks_and_steps_are_analysed_as_far_as_they_go(tmp_path):
    write_rank(tmp_path, 0, ARRIVE[0], ENDS[0], world=3)
    write_rank(tmp_path, 2, ARRIVE[2], ENDS[2], world=3, steps={1})
    found = waits_of(tmp_path)
    ((_, row),) = per_step(found.waits).items()
    assert row["unknown"] > 0  # step 2 of rank 0
    assert row["wait"] > 0
    assert {n.code for n in found.notes} == {"unmatched-collectives", "partial-collectives"}


def test_runs_have_clocks_of_their_own_and_are_averaged(tmp_path):
    for run, clock in ((1, 0), (2, 900)):
        for rank in range(3):
            write_rank(tmp_path, rank, ARRIVE[rank], ENDS[rank], run=run, clock=clock * rank, args=recorded)
    found = waits_of(tmp_path)
    assert {k: v["offset"] for k, v in per_step(found.clocks).items()} == {
        (f"run {r}", str(k), "0"): 900_000 * k * (r == 2) for r in (1, 2) for k in range(3)
    }
    assert {k[0]: v["last"] for k, v in per_step(found.stragglers).items() if v["last"]} == {"1": 1.5, "2": 2.5}


def test_without_communication_or_the_measure_there_is_nothing(tmp_path):
    path = write(tmp_path / "a.json", document([step(1, 0, 10), op("aten::mm", 1, 2)]))
    assert collective_tables(load_sets([path], LoadOptions(tables=("collectives",)))[0]) == ({}, [])
    assert collective_tables(load_sets([path])[0]) == ({}, [])


@needs_traces
def test_of_eight_real_ranks_the_seventh_is_late():
    found = waits_of(FOLDER / "dlrm_8ranks")
    rows = per_step(found.stragglers)
    times = {int(k[0]): v["wait"] + v["transfer"] for k, v in rows.items()}
    assert (times[7], times[1]) == (1_746_000, 11_336_000)  # as TRUTH.tsv has them
    assert max(rows, key=lambda k: rows[k]["held_up"]) == ("7",)
    assert rows["7",]["last"] == 5
    assert all(200_000 <= v["transfer"] <= 220_000 for v in rows.values())  # the same on all ranks: the rest is waiting
    assert all(abs(v["offset"]) <= v["uncertainty"] <= 5000 for v in per_step(found.clocks).values() if v["shared"])
    assert all(v["time"] == v["wait"] + v["transfer"] for v in per_step(found.waits).values())
    assert found.notes == []
