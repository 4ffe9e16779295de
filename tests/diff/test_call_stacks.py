"""Stacks and steps of one name add up to what its row says."""

from real_sets import real_comparison, real_sets
from traces import needs_traces

from tracediff.aggregate.samples import per_step
from tracediff.charts.figures.timeline import name_steps
from tracediff.diff.comparison import places, places_of
from tracediff.profile.kernels.match_names import table_name

pytestmark = needs_traces


PAIR = "resnet50_workers0", "resnet50_workers4"


def test_the_stacks_of_a_name_hold_all_of_it():
    comparison = real_comparison(*PAIR)
    for op in comparison.ops:
        if op.category not in ("cpu_op", "kernel"):
            continue
        found = places(comparison, op.category, op.raw_name)
        assert sum(p.count.control for p in found) == op.count.control
        assert sum(p.time.test for p in found) == op.total.test
        assert all(p.stack[0] in ("forward", "backward", "optimizer", "other", "unknown") for p in found)
    assert places(comparison, "kernel", "no such kernel") == []


def test_the_stacks_of_a_group_hold_all_of_it():
    comparison = real_comparison(*PAIR)
    for group in comparison.work.groups:
        found = places_of(comparison, group)
        assert sum(p.count.control for p in found) == group.count.control
        assert sum(p.time.test for p in found) == group.time.test
        assert all(p.stack[-1] for p in found)


def test_the_steps_of_a_name_average_to_its_row():
    sets, comparison = real_sets(*PAIR), real_comparison(*PAIR)
    for op in comparison.ops[:40]:
        sides = tuple(per_step(traces, op.category, table_name(op.raw_name)) for traces in sets)
        assert [s.step for s in sides[0]] == [6, 7, 8, 9, 10]
        assert sum(s.ns for s in sides[1]) * comparison.scale == op.self_time.test * len(sides[1])
        assert len(name_steps(sides).data) == 2
    assert name_steps(([], [])).data == ()
