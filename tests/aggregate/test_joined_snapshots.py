"""Snapshots of parts of a set, made anywhere and joined in any order, are the set."""

import itertools

import pytest
from build_trace import document, op, step, write
from hypothesis import given, strategies as st
from properties import examples

from tracediff.aggregate.snapshot import to_bytes, write_snapshot
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.profile.model.selection import Selection

RANKS = 5


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """A folder of RANKS files in each of two runs."""
    folder = tmp_path_factory.mktemp("set")
    for run, rank in itertools.product((1, 2), range(RANKS)):
        (folder / f"run{run}").mkdir(exist_ok=True)
        events = [step(n, 100 * n, 90 + rank) for n in range(1, 5)] + [op("a", 100 * n, 50 + run) for n in range(1, 5)]
        about = {"rank": rank, "world_size": RANKS}
        write(folder / f"run{run}" / f"rank{rank}.json", document(events, distributedInfo=about))
    return folder


@pytest.fixture(scope="module")
def whole(ranks):
    """What the snapshot of the folder holds."""
    return to_bytes(loaded(ranks))


def loaded(where, **chosen):
    (found,) = load_sets([where], LoadOptions((SetOptions("set", **chosen),)))
    return found


def part(where, path, **chosen):
    write_snapshot(loaded(where, **chosen), path)
    return str(path)


@pytest.mark.slow
@examples(50)
@given(st.lists(st.integers(0, 2), min_size=RANKS, max_size=RANKS), st.randoms(use_true_random=False))
def test_parts_joined_in_any_order_are_the_whole(ranks, whole, tmp_path, parts, random):
    paths = []
    for number in set(parts):
        mine = frozenset(rank for rank in range(RANKS) if parts[rank] == number)
        paths.append(part(ranks, tmp_path / f"{number}.tdprof.gz", ranks=mine))
    random.shuffle(paths)
    assert to_bytes(loaded(paths)) == whole
    if len(paths) > 2:  # joined in two steps
        both = part(paths[:2], tmp_path / "both.tdprof.gz")
        assert to_bytes(loaded([paths[2], both])) == whole


def test_a_rank_that_two_parts_have_is_an_error(ranks, tmp_path):
    paths = [part(ranks, tmp_path / f"{k}.tdprof.gz", ranks=frozenset((k, 2))) for k in (0, 1)]
    with pytest.raises(TracediffError, match=r"1\.tdprof\.gz: another snapshot has rank 2 of run 1, too"):
        loaded(paths)


def test_steps_are_chosen_alike_or_anew(ranks, tmp_path):
    chosen = Selection(first=2, last=3)
    paths = [
        part(ranks, tmp_path / "0.tdprof.gz", ranks=frozenset((0, 1)), selection=chosen),
        part(ranks, tmp_path / "1.tdprof.gz", ranks=frozenset((2, 3, 4))),
    ]
    with pytest.raises(TracediffError, match="its steps are chosen in another way"):
        loaded(paths)
    assert to_bytes(loaded(paths, selection=chosen)) == to_bytes(loaded(ranks, selection=chosen))


def test_other_programs_do_not_join(ranks, tmp_path):
    other = write(tmp_path / "other.json", document([step(1, 0, 9)], distributedInfo={"rank": 7, "world_size": 64}))
    paths = [part(ranks, tmp_path / "0.tdprof.gz"), part(other, tmp_path / "1.tdprof.gz")]
    with pytest.raises(TracediffError, match="world size"):
        loaded(paths)
