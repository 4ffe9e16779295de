"""Both accounts close exactly, and diff(a, b) = −diff(b, a): on generated traces, on every real file against itself, on
every real pair.
"""

from fractions import Fraction

import pytest
import traces
from build_trace import document, write
from hypothesis import given
from properties import examples
from random_traces import trace_events

from tracediff.diff.compare import compare_sets
from tracediff.engine import load_sets


def compare(a, b, force=False):
    return compare_sets(*load_sets([str(a), str(b)]), force=force)


def assert_closes(comparison):
    step, gpu = comparison.step_time, comparison.gpu_time
    assert step.residual == 0
    host = comparison.host_time
    assert host.matched + host.placed + host.added + host.removed == host.delta
    assert not (host.groups and gpu.groups)
    assert sum(s.control for s in step.states) == step.control
    assert sum(s.test for s in step.states) == step.test
    assert gpu.matched + gpu.placed + gpu.added + gpu.removed + gpu.unattributed == gpu.delta
    for group in gpu.groups:
        assert sum(group.parts) == group.delta
    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        ops = [op for op in comparison.ops if op.category == category]
        assert all(op.control_self == op.control_total and op.test_self == op.test_total for op in ops)
    if gpu.groups:
        assert (
            sum(op.control_total for op in comparison.ops if op.category in ("kernel", "gpu_memcpy", "gpu_memset"))
            == gpu.control
        )


def mirrored(comparison):
    """Everything that must change its sign or its side when the sides are swapped."""
    d, gpu, scale = comparison, comparison.gpu_time, comparison.scale
    level = {"added": "removed", "removed": "added"}
    return {
        "states": {s.name: (Fraction(s.test, scale), Fraction(s.control, scale)) for s in d.step_time.states},
        "gpu": (Fraction(gpu.added, scale), Fraction(gpu.removed, scale), Fraction(gpu.matched, scale)),
        "groups": sorted(
            (
                level.get(g.level, g.level),
                g.name,
                _members(g.test, scale),
                _members(g.control, scale),
                tuple(p / scale for p in g.parts),
            )
            for g in gpu.groups
        ),
        "ops": {
            (o.category, o.raw_name): (
                o.test_count,
                o.control_count,
                o.test_total,
                o.control_total,
                o.test_self,
                o.control_self,
            )
            for o in d.ops
        },
        "classes": {(o.category, o.raw_name): (o.count_change, o.time_change) for o in d.ops},
    }


def _members(members, scale):
    return tuple((m.name, m.op or "", Fraction(m.count, scale), Fraction(m.ns, scale)) for m in members)


OPPOSITE = {
    "added": "deleted",
    "deleted": "added",
    "increased": "decreased",
    "decreased": "increased",
    "faster": "slower",
    "slower": "faster",
}


def assert_antisymmetric(forward, backward):
    forward_answer, backward_answer = mirrored(forward), mirrored(backward)
    assert forward_answer["states"] == {k: v[::-1] for k, v in backward_answer["states"].items()}
    assert forward_answer["gpu"] == (-backward_answer["gpu"][1], -backward_answer["gpu"][0], -backward_answer["gpu"][2])
    swapped = [
        ({"added": "removed", "removed": "added"}.get(lv, lv), n, t, c, tuple(-p for p in parts))
        for lv, n, c, t, parts in backward_answer["groups"]
    ]
    assert forward_answer["groups"] == sorted(swapped)
    assert forward_answer["ops"] == {k: (v[1], v[0], v[3], v[2], v[5], v[4]) for k, v in backward_answer["ops"].items()}
    assert forward_answer["classes"] == {
        k: tuple(OPPOSITE.get(c, c) for c in v) for k, v in backward_answer["classes"].items()
    }


@traces.needs_traces
@pytest.mark.parametrize(("control", "test"), traces.PAIRS)
def test_a_real_pair_closes_and_mirrors(control, test):
    forward, backward = (
        compare(traces.FOLDER / a, traces.FOLDER / b, force=True) for a, b in ((control, test), (test, control))
    )
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
    assert all(g.delta == 0 and g.control_count == g.test_count for g in comparison.gpu_time.groups)
    assert {(o.count_change, o.time_change) for o in comparison.ops} <= {("unchanged", "untested")}


@examples(60)
@given(trace_events(), trace_events())
def test_any_pair_closes_and_mirrors(tmp_path, a, b):
    paths = [
        write(tmp_path / f"{name}.json", document(events), layout="compact") for name, events in (("a", a), ("b", b))
    ]
    forward, backward = compare(*paths, force=True), compare(*paths[::-1], force=True)
    assert_closes(forward)
    assert_antisymmetric(forward, backward)
