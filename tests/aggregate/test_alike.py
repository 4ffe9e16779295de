"""Ranks with the same calls are added up before anything else is done with them; no number depends on it."""

import numpy as np
import pytest
from build_trace import call, document, kernel, op, step, write
from hypothesis import given, strategies as st
from msgspec.structs import replace
from one_file import profile_file
from properties import examples
from traces import FOLDER, needs_traces

from tracediff.aggregate.assemble import arrange
from tracediff.aggregate.averages import weighted_files
from tracediff.aggregate.snapshot_columns import SharedColumns
from tracediff.aggregate.traceset import LARGEST, MOST_FILES, alike
from tracediff.explain.compare import compare_sets
from tracediff.ingest.discover import find_traces
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model.health import Notes
from tracediff.profile.model.selection import Selection
from tracediff.report.to_json import to_json


def rank_trace(path, rank, times, names):
    """A rank's file: in each step one operator and kernel per name, as long as ``times`` say."""
    events = []
    for n in range(4):
        events.append(step(n, 1000 * n, 900))
        for k, (name, dur) in enumerate(zip(names, times, strict=True)):
            ts, link = 1000 * n + 100 * k, 100 * n + k
            events += [op(f"aten::{name}", ts, dur + n), call("cudaLaunchKernel", ts + 1, 2, correlation=link)]
            events.append(kernel(f"{name}_kernel", ts + 10, dur, correlation=link))
    return write(path / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": 4}))


def profiles_of(folder, tables=()):
    return [profile_file(file, selection=Selection(), tables=tables) for file in find_traces(folder, Notes())]


def answer(*sides):
    """The comparison of sets made of profiles."""
    return to_json(compare_sets(*(arrange("set", profiles, Selection()) for profiles in sides)))


def shared(profiles):
    columns = SharedColumns()
    return [columns.of(profile) for profile in profiles]


times = st.lists(st.integers(20, 60), min_size=3, max_size=3)
names = st.sampled_from((["mm", "add", "mm"], ["mm", "mul", "mm"], ["add", "mm", "mm"]))


@pytest.mark.slow
@examples(40)
@given(st.lists(st.tuples(times, names), min_size=8, max_size=8))
def test_adding_up_changes_no_number(tmp_path, ranks):
    sides = [tmp_path / "before", tmp_path / "after"]
    for k, (durations, kernels) in enumerate(ranks):
        sides[k % 2].mkdir(exist_ok=True)
        rank_trace(sides[k % 2], k // 2, durations, kernels)
    one_by_one = [profiles_of(side) for side in sides]
    assert answer(*map(shared, one_by_one)) == answer(*one_by_one)


@needs_traces
@pytest.mark.parametrize("name", ["dlrm_8ranks", "resnet50_workers0"])
def test_nor_with_real_ranks(name):
    profiles = profiles_of(FOLDER / name)
    random = np.random.default_rng(0)
    noisy = [
        replace(p, calls=replace(p.calls, total_ns=p.calls.total_ns + random.integers(0, 99, len(p.calls.step))))
        for p in profiles
    ]
    assert answer(shared([*profiles, *noisy]), shared(noisy)) == answer([*profiles, *noisy], noisy)


@pytest.fixture
def four(tmp_path):
    """The profiles of four ranks with the same calls."""
    for rank in range(4):
        rank_trace(tmp_path, rank, (20 + rank, 30, 40), ("mm", "add", "mm"))
    return shared(profiles_of(tmp_path))


def groups(profiles):
    _, weighted = weighted_files(arrange("set", profiles, Selection()))
    return alike(weighted, [p.ops for p in profiles], [(p.names,) for p in profiles])


def test_ranks_with_the_same_calls_are_one_sum(four):
    (one,) = groups(four)
    assert one.files == [0, 1, 2, 3]
    assert one.table.total_ns.tolist() == sum(p.ops.total_ns for p in four).tolist()
    assert four[0].ops.total_ns.tolist() != one.table.total_ns.tolist()  # what is added up is not changed
    assert all(p.calls.parent is four[0].calls.parent and p.names is four[0].names for p in four)


def test_a_sum_that_may_not_fit_is_not_made(four):
    huge = four[1].ops.total_ns.copy()
    huge[0] = LARGEST
    four[1] = replace(four[1], ops=replace(four[1].ops, total_ns=huge))
    assert [group.files for group in groups(four)] == [[0, 2, 3], [1]]
    assert LARGEST * MOST_FILES <= 2**62


def test_a_packed_timeline_is_the_timeline(four):
    packed = four[0].timeline
    timeline = packed.unpacked()
    assert timeline.step == four[0].step_numbers[packed.position]
    assert [timeline.start, timeline.end] == four[0].completions[packed.position :][:2].tolist()
    assert len(timeline.marks.row) > 4
    assert TraceFile(four[0].origin.file.path) == four[0].origin.file
