"""The timeline of one step: nothing of it is lost by putting short events together (µs in the events, ns in the
marks).
"""

from collections import Counter

import numpy as np
import pytest
from build_trace import BACKWARD, annotation, call, document, kernel, memory, op, step, write
from hypothesis import given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events
from traces import FILES, NAMES, needs_traces

import tracediff
from tracediff import bounds
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.model.profile import Timeline
from tracediff.profile.model.selection import Selection
from tracediff.profile.timeline import KINDS


def profile_of(folder, events, **meta):
    file = TraceFile(str(write(folder / "trace.json", document(events, **meta))))
    return profile_file(file, selection=Selection())


def drawn(timeline: Timeline) -> list[tuple]:
    """(row, kind, name, start, end, count, busy) of each mark."""
    m = timeline.marks
    columns = (m.start, m.end, m.count, m.busy)
    names = zip([timeline.rows[r] for r in m.row], [KINDS[k] for k in m.kind], m.name, strict=True)
    return [(*name, *numbers) for name, *numbers in zip(names, *(c.tolist() for c in columns), strict=True)]


def one_step():
    return [
        step(1, 0, 100),
        annotation("enumerate(DataLoader)#next", 0, 10),
        op("aten::linear", 10, 40),
        op("aten::mm", 12, 20),
        call("cudaLaunchKernel", 20, 5, correlation=1),
        kernel("gemm", 30, 30, correlation=1),
        op("aten::backward", 60, 10, tid=BACKWARD),
        call("cudaDeviceSynchronize", 80, 10),
    ]


def test_rows_are_the_state_then_streams_then_threads_level_by_level(tmp_path):
    timeline = profile_of(tmp_path, one_step()).timeline.unpacked()
    assert (timeline.step, timeline.start, timeline.end, timeline.left_out) == (1, 0, 100_000, 0)
    marks = drawn(timeline)
    assert [m[:5] for m in marks if m[0] != "state"] == [
        ("GPU 0 stream 7", "gpu_compute", "gemm", 30_000, 60_000),
        ("thread 100 annotations", "annotation", "ProfilerStep#1", 0, 100_000),
        ("thread 100 annotations 2", "data_loading", "enumerate(DataLoader)#next", 0, 10_000),
        ("thread 100 ops", "op", "aten::linear", 10_000, 50_000),
        ("thread 100 ops", "synchronising", "cudaDeviceSynchronize", 80_000, 90_000),
        ("thread 100 ops 2", "op", "aten::mm", 12_000, 32_000),
        ("thread 100 ops 3", "launching", "cudaLaunchKernel", 20_000, 25_000),
        ("thread 101 ops", "op", "aten::backward", 60_000, 70_000),
    ]
    states = [(m[2], m[3]) for m in marks if m[0] == "state"]
    assert states[:4] == [("data_loading", 0), ("op", 10_000), ("launching", 20_000), ("gpu_queued", 25_000)]


def states_shown(timeline):
    shown = Counter()
    for row, _, name, _, _, _, busy in drawn(timeline):
        if row == "state":
            shown[name] += busy
    return shown


def test_short_events_become_one_mark_that_counts_them(tmp_path):
    events = [step(1, 0, 80_000), op("aten::long", 40_000, 20_000)]
    events += [op(f"aten::short{k % 2}", k, 0.5 + k % 2 / 10) for k in range(50)]
    (short, long) = [m for m in drawn(profile_of(tmp_path, events).timeline.unpacked()) if m[0] == "thread 100 ops"]
    assert short == ("thread 100 ops", "op", "aten::short1", 0, 49_600, 50, 27_500)
    assert long[2:] == ("aten::long", 40_000_000, 60_000_000, 1, 20_000_000)


def test_the_typical_step_is_the_used_one_nearest_to_the_median(tmp_path):
    lengths = [90, 20, 40, 30, 31, 60]
    starts = [sum(lengths[:k]) for k in range(6)]
    events = [
        e
        for k, (start, dur) in enumerate(zip(starts, lengths, strict=True))
        for e in (step(k, start, dur), op("aten::add", start + 1, 3))
    ]
    file = TraceFile(str(write(tmp_path / "trace.json", document(events))))
    assert profile_file(file, selection=Selection()).timeline.unpacked().step == 4  # of 1–5: 20, 40, 30, 31, 60
    assert profile_file(file).timeline is None
    assert profile_file(file, selection=Selection(first=5, last=5)).timeline.unpacked().step == 5
    first_set, second_set = load_sets(
        [file.path, file.path], LoadOptions(tuple(SetOptions(selection=Selection(first=k, last=k)) for k in (1, 2)))
    )
    assert [s.profiles[0].timeline.unpacked().step for s in (first_set, second_set)] == [1, 2]


@examples(60)
@given(events=trace_events(), order=st.randoms(use_true_random=False))
def test_marks_hold_every_event_and_the_order_of_the_file_does_not_matter(tmp_path, events, order):
    profile = profile_of(tmp_path, events)
    timeline = profile.timeline.unpacked()
    position = profile.step_numbers.tolist().index(timeline.step)
    account = {name.partition(":")[0] if name not in KINDS else name: 0 for name in profile.state_names}
    for name, ns in zip(profile.state_names, profile.state_ns[position].tolist(), strict=True):
        account[name] = account.get(name, 0) + ns
    assert {k: v for k, v in states_shown(timeline).items() if v} == {k: v for k, v in account.items() if v}
    assert (timeline.marks.start >= 0).all()
    assert (timeline.marks.end <= timeline.end - timeline.start).all()
    assert (timeline.marks.busy <= (timeline.marks.end - timeline.marks.start) * timeline.marks.count).all()
    shuffled = list(events)
    order.shuffle(shuffled)
    again = profile_of(tmp_path, shuffled).timeline.unpacked()
    assert Counter((m[0], *m[3:]) for m in drawn(again)) == Counter((m[0], *m[3:]) for m in drawn(timeline))


def test_memory_is_what_the_allocator_had_given_out(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::empty", 1, 2),
        memory(-5, 100, 100),
        memory(10, 400, 500),
        memory(20, -100, 400),
        memory(30, 8, 8, device=1),
    ]
    first, second = profile_of(tmp_path, events).timeline.unpacked().memory
    assert (first.device, first.time.tolist(), first.allocated.tolist(), first.from_zero) == (
        "GPU 0",
        [0, 10_000, 20_000],
        [100, 500, 400],
        True,
    )
    assert (second.device, second.time.tolist(), second.allocated.tolist()) == ("GPU 1", [30_000], [8])


def test_old_traces_tell_changes_only(tmp_path):
    events = [step(1, 0, 100), op("aten::empty", 1, 2), memory(10, 400, 0), memory(20, -100, 0)]
    for event in events[2:]:
        del event["args"]["Total Allocated"]
    (host,) = profile_of(tmp_path, events).timeline.unpacked().memory
    assert (host.allocated.tolist(), host.from_zero) == ([400, 300], False)


def test_of_many_allocations_the_largest_amounts_are_kept(tmp_path):
    amounts = np.random.default_rng(7).integers(1, 10_000, 20_000).tolist()
    events = [step(1, 0, 20_000), op("aten::empty", 1, 2), *(memory(k, 1, amount) for k, amount in enumerate(amounts))]
    (curve,) = profile_of(tmp_path, events).timeline.unpacked().memory
    assert len(curve.time) <= bounds.MEMORY_POINTS + 2
    assert max(curve.allocated) == max(amounts)
    assert curve.allocated[-1] == amounts[-1]


def test_a_snapshot_has_no_timeline_and_the_chart_says_so(tmp_path):
    from tracediff.aggregate.snapshot import write_snapshot

    path = write(tmp_path / "trace.json", document(one_step()))
    snapshot = tmp_path / "base.tdprof.gz"
    write_snapshot(tracediff.load(path), snapshot)
    diff = tracediff.compare(snapshot, path)
    assert diff.comparison.control.typical is None
    assert diff.comparison.test.typical.timeline.step == 1
    assert "A snapshot contains no events" in diff.charts.timeline().layout.title.text.replace("<br>", " ")
    drawn = tracediff.compare(snapshot, snapshot).charts.timeline()
    assert "A snapshot contains no events" in drawn.layout.annotations[0].text.replace("<br>", " ")


@needs_traces
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_timelines_of_real_traces_are_bounded_and_add_up(path):
    profile = profile_file(TraceFile(str(path)), selection=Selection())
    timeline = profile.timeline.unpacked()
    position = profile.step_numbers.tolist().index(timeline.step)
    assert len(timeline.marks.row) <= bounds.TIMELINE_MARKS
    assert sum(states_shown(timeline).values()) == timeline.end - timeline.start == profile.periods[position]
    for curve in timeline.memory:
        assert len(curve.time) <= bounds.MEMORY_POINTS + 2
        assert (np.diff(curve.time) >= 0).all()
