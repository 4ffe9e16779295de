"""A part of the work: parts add up to the whole, nothing chosen changes nothing, swapped sides give the opposite."""

from collections import Counter

import pytest
from build_trace import call, document, kernel, op, python, step, write
from real_sets import real_comparison, real_sets
from traces import FOLDER, needs_traces

from tracediff.aggregate.assemble import narrowed
from tracediff.diff.comparison import Part, only
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.profile.kernels.match_names import is_wrapper
from tracediff.profile.model.selection import Selection

PAIRS = [
    ("resnet50_workers0", "resnet50_workers4"),
    ("tinylm_compile", "tinylm_cudagraph"),
    ("hta_cpu_only", "hta_cpu_only"),
]


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: "-".join(pair))
def both_ways(request):
    """The comparison of a real pair, and of the same pair swapped."""
    a, b = real_sets(*request.param)
    return real_comparison(*request.param), compare_sets(b, a, True)


def totals(comparison):
    work = comparison.work
    return Counter({"control": sum(g.time.control for g in work.groups), "test": sum(g.time.test for g in work.groups)})


def values(comparison, attribute):
    return {getattr(m, attribute) for g in comparison.work.groups for side in g.members for m in side}


@needs_traces
@pytest.mark.parametrize("attribute", ["family", "phase"])
def test_the_parts_of_all_families_and_phases_add_up(both_ways, attribute):
    whole = both_ways[0]
    parts = [
        only(whole, Part(**{"families" if attribute == "family" else "phases": frozenset((value,))}))
        for value in values(whole, attribute)
    ]
    assert len(parts) > 1
    assert sum(map(totals, parts), Counter()) == totals(whole)
    trees = [sum(w.ns for part in parts for w in part.trees[which].work) for which in (0, 1)]
    assert trees == [sum(w.ns for w in tree.work) for tree in whole.trees]
    gpu = [
        sum(op.total.test for part in parts for op in part.ops if op.category == "kernel"),
        sum(o.total.test for o in whole.ops if o.category == "kernel"),
    ]
    assert gpu[0] == gpu[1]
    assert all(
        len({getattr(m, attribute) for g in part.work.groups for side in g.members for m in side}) == 1
        for part in parts
    )


@needs_traces
def test_host_operators_of_all_phases_add_up(both_ways):
    whole = both_ways[0]
    phases = {call.name for tree in whole.trees for call in tree.calls if call.kind == "phase"}
    parts = [only(whole, Part(phases=frozenset((phase,)))) for phase in phases]
    found = Counter()
    for part in parts:
        for operator in part.ops:
            if operator.category == "cpu_op":
                found[operator.raw_name] += operator.self_time.test
    assert found == Counter(
        {
            operator.raw_name: operator.self_time.test
            for operator in whole.ops
            if operator.category == "cpu_op" and not is_wrapper(operator.raw_name)
        }
    )


@needs_traces
def test_nothing_chosen_is_everything_and_devices_share_it(both_ways):
    whole = both_ways[0]
    assert only(whole, Part()) is whole
    gpu, cpu = (only(whole, Part(device=device)) for device in ("gpu", "cpu"))
    assert {operator for part in (gpu, cpu) for operator in part.ops} == set(whole.ops)
    assert totals(gpu) + totals(cpu) == totals(whole)
    assert gpu.verdict == whole.verdict
    assert gpu.step_time is whole.step_time


@needs_traces
def test_swapped_sides_give_the_opposite(both_ways):
    forward, backward = both_ways
    families = frozenset(sorted(values(forward, "family"))[:3])
    for part in (Part(families=families), Part(phases=frozenset(("backward",))), Part(device="gpu")):
        a, b = only(forward, part), only(backward, part)
        assert totals(a)["control"] == totals(b)["test"]
        assert a.work.delta == -b.work.delta
        opposite = {
            (o.category, o.raw_name): (o.count.test, o.count.control, o.self_time.test, o.self_time.control)
            for o in b.ops
        }
        assert len(a.ops) == len(b.ops)
        spelled = {
            (o.category, o.raw_name): (o.count.control, o.count.test, o.self_time.control, o.self_time.test)
            for o in a.ops
        }
        assert all(opposite[key] == numbers for key, numbers in spelled.items() if key in opposite)
        assert Counter((g.delta, g.count.control) for g in a.work.groups) == Counter(
            (-g.delta, g.count.test) for g in b.work.groups
        )


def test_a_module_is_chosen_with_all_below_it(tmp_path):
    def events(scale):
        out = [step(1, 0, 400)]
        for k, (module, inner) in enumerate((("Net_0", "Linear_0"), ("Net_0", "Norm_0"), ("Head_0", "Linear_1"))):
            start, number = 100 * k, 10 * k
            out.append(python(f"nn.Module: {module}", start, 90, number + 1, module=k))
            out.append(python(f"nn.Module: {inner}", start + 1, 80, number + 2, number + 1, module=10 + k))
            out += [op(f"aten::op{k}", start + 5, 20), call("cudaLaunchKernel", start + 6, 2, correlation=k + 1)]
            out.append(kernel(f"k{k}", start + 30, scale * (k + 1), correlation=k + 1))
        return out

    sides = [write(tmp_path / name / "t.json", document(events(scale))) for name, scale in (("a", 1), ("b", 10))]
    whole = compare_sets(*load_sets(sides), True)
    modules = values(whole, "module")
    net = min(m for m in modules if m and m.startswith("Net"))
    part = only(whole, Part(modules=frozenset((net.split("/")[0],))))
    inside = {m for m in modules if m and m.split("/")[0] == net.split("/")[0]}
    assert values(part, "module") == inside
    assert {o.name for o in part.ops if o.category == "cpu_op"} <= {"aten::op0", "aten::op1"}
    assert not only(whole, Part(modules=frozenset(("Ne",)))).work.groups


@needs_traces
def test_other_steps_and_ranks_are_as_if_read_so():
    folder = FOLDER / "resnet50_workers0"
    (whole,), (fewer,) = (
        load_sets([folder]),
        load_sets([folder], LoadOptions((SetOptions(selection=Selection(first=7, last=8)),))),
    )
    again = narrowed(whole, Selection(first=7, last=8))
    assert again.steps_used == fewer.steps_used == [7, 8]
    a, b = compare_sets(again, whole, True), compare_sets(fewer, whole, True)
    assert a.ops == b.ops
    assert a.step_time == b.step_time
    (ranks,) = load_sets([FOLDER / "dlrm_8ranks"])
    assert narrowed(ranks, ranks.selection, frozenset((2, 5))).ranks == [2, 5]
    spilled = {
        rank: sum(n.count for p in run.ranks[rank] for n in p.notes if n.code == "spilled-kernels")
        for run in ranks.runs
        for rank in run.ranks
    }
    for some in ({1}, {2, 5}, {1, 3}, set(spilled)):
        notes = narrowed(ranks, ranks.selection, frozenset(some)).notes
        assert sum(n.count for n in notes if n.code == "spilled-kernels") == sum(spilled[rank] for rank in some)
    assert sum(spilled.values()) == 128
    assert ranks.ranks == list(range(8))
    with pytest.raises(TracediffError, match="no file of rank 99"):
        narrowed(ranks, ranks.selection, frozenset((99,)))
    with pytest.raises(TracediffError, match="no step is left"):
        narrowed(whole, Selection(first=900, last=901))
