"""Both accounts close exactly, and diff(a, b) = −diff(b, a): on generated traces, on every real file against itself, on
every real pair.
"""

import pytest
import traces
from accounts import assert_antisymmetric, assert_closes
from build_trace import document, write
from hypothesis import given
from properties import examples
from random_traces import trace_events
from real_sets import real_comparison, real_sets

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


def compare(a, b, force=False):
    return compare_sets(*load_sets([str(a), str(b)]), force=force)


@traces.needs_traces
@pytest.mark.parametrize(("control", "test"), traces.PAIRS)
def test_a_real_pair_closes_and_mirrors(control, test):
    forward = real_comparison(control, test)
    backward = compare_sets(*real_sets(control, test)[::-1], force=True)
    assert_closes(forward)
    assert_antisymmetric(forward, backward)


@traces.needs_traces
@pytest.mark.parametrize("name", traces.NAMES)
def test_a_real_file_against_itself_differs_by_nothing(name):
    comparison = compare(traces.FOLDER / name, traces.FOLDER / name)
    assert_closes(comparison)
    assert [r.code for r in comparison.comparability.reasons] == ["same-set"]
    assert comparison.step_time.delta == 0
    assert {g.level for g in comparison.gpu_time.groups} <= {
        "exact",
        "sequence",
    }  # graph replays have no operator to be exact about
    assert all(g.delta == 0 and g.count.control == g.count.test for g in comparison.gpu_time.groups)
    assert {(o.count_change, o.significance.time_change) for o in comparison.ops} <= {("unchanged", "untested")}


@pytest.mark.slow
@examples(60)
@given(trace_events(), trace_events())
def test_any_pair_closes_and_mirrors(tmp_path, a, b):
    paths = [
        write(tmp_path / f"{name}.json", document(events), layout="compact") for name, events in (("a", a), ("b", b))
    ]
    forward, backward = compare(*paths, force=True), compare(*paths[::-1], force=True)
    assert_closes(forward)
    assert_antisymmetric(forward, backward)
