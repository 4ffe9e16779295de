"""Scopes nest; self times add up to the roots."""

import numpy as np
import pytest
import traces
from build_trace import BACKWARD, document, op, python, step, write
from hypothesis import given, strategies as st
from properties import examples

from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace
from tracediff.profile.placement import nesting
from tracediff.profile.placement.nesting import build_lanes


def self_times(folder, events, lane="ops"):
    trace = read_trace(str(write(folder / "trace.json", document(events))))
    built = getattr(build_lanes(trace, notes := Notes()), lane)
    named = [
        (trace.names[trace.name[row]], ns) for row, ns in zip(built.rows.tolist(), built.self_ns.tolist(), strict=True)
    ]
    return sorted(named), built, notes


def test_self_is_duration_less_direct_children(tmp_path):
    found, _, _ = self_times(
        tmp_path, [op("a", 0, 100), op("b", 10, 50), op("c", 20, 10), op("d", 70, 10), op("e", 0, 5, tid=BACKWARD)]
    )
    assert found == [("a", 40_000), ("b", 40_000), ("c", 10_000), ("d", 10_000), ("e", 5_000)]


def test_of_equal_scopes_the_one_recorded_first_is_outside(tmp_path):
    events = [op("inner", 0, 10, **{"External id": 2}), op("outer", 0, 10, **{"External id": 1})]
    assert self_times(tmp_path, events)[0] == [("inner", 10_000), ("outer", 0)]


def test_lanes_do_not_take_time_from_each_other(tmp_path):
    events = [op("a", 0, 10), python("model.py(1): forward", 5, 10, number=1), step(1, 0, 12)]
    assert self_times(tmp_path, events)[0] == [("a", 10_000)]
    assert self_times(tmp_path, events, "python")[0] == [("model.py(1): forward", 10_000)]


def test_a_scope_that_outlasts_the_one_around_it_is_cut_and_said(tmp_path):
    found, built, notes = self_times(tmp_path, [op("a", 0, 10), op("b", 5, 10)])
    assert found == [("a", 5_000), ("b", 5_000)]
    assert [n.code for n in notes.list()] == ["overlapping-scopes"]
    assert built.self_ns.sum() == 10_000


scopes = st.tuples(st.integers(0, 30), st.integers(0, 20), st.sampled_from("abc"))


@examples(100)
@given(st.lists(scopes, min_size=1, max_size=25))
def test_self_times_add_up_to_the_roots_whatever_overlaps(tmp_path, drawn):
    _, built, _ = self_times(tmp_path, [op(name, ts, dur) for ts, dur, name in drawn])
    roots = built.parent < 0
    assert built.self_ns.sum() == (built.end - built.start)[roots].sum()
    assert (built.self_ns >= 0).all()
    inner = built.parent >= 0
    assert (built.start[built.parent[inner]] <= built.start[inner]).all()
    assert (built.end[built.parent[inner]] >= built.end[inner]).all()


@examples(300)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12))
def test_scopes_nest_as_if_they_were_opened_and_closed_one_by_one(drawn):
    thread, start, dur = np.array(sorted(drawn, key=lambda s: (s[0], s[1], -s[2])), np.int64).T
    for far in (0, 1 << 61):  # times so far apart that threads do not fit after each other
        start[-1] += far
        parent, end, depth = (np.zeros(len(start), np.int64) for _ in range(3))
        for code in np.unique(thread):
            first, last = np.searchsorted(thread, [code, code + 1]).tolist()
            nesting._nest_crossing(first, last, start, start + dur, parent, end, depth)
        found = nesting._nest(thread, start, start + dur)
        assert [x.tolist() for x in found] == [x.tolist() for x in (parent, end, depth)]


@traces.needs_traces
@pytest.mark.parametrize(
    "name", ["timesformer_h100/trace.json.gz", "hta_nccl/nccl_data.json.gz", "tinylm_compile/trace_04.json.gz"]
)
def test_real_scopes_nest_without_overlap(name):
    trace = read_trace(str(traces.FOLDER / name))
    lanes = build_lanes(trace, notes := Notes())
    assert notes.list() == []
    for built, categories in zip(lanes, (cat.OPS, (cat.ANNOTATION,), (cat.PYTHON,)), strict=True):
        assert built.self_ns.sum() == trace.dur[built.rows[built.parent < 0]].sum()
        assert np.isin(trace.category[built.rows], categories).all()
