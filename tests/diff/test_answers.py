"""The results of comparisons, on traces whose answer can be derived by hand, and on real ones."""

import pytest
import traces
from build_trace import call, document, kernel, memcpy, op, step, write
from real_sets import real_comparison

from tracediff.diff.groups import split_change
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.profile.model.selection import Selection
from tracediff.structs import Pair


def compare_events(folder, control, test, force=False):
    paths = [
        write(folder / name / "trace.json", document(events)) for name, events in (("control", control), ("test", test))
    ]
    return compare_sets(*load_sets([str(p) for p in paths]), force=force)


def launched(name, start, length, correlation, op_name="aten::mm", **args):
    """A kernel with its op and launch at ``start``; it runs 10 µs later."""
    return [
        op(op_name, start, 4, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=correlation),
        kernel(name, start + 10, length, correlation=correlation),
    ]


def classes(comparison, category):
    return {o.raw_name: o.count_change for o in comparison.ops if o.category == category}


def test_the_five_classes_of_counts(tmp_path):
    control = [
        step(1, 0, 100),
        op("same", 0, 5),
        op("more", 5, 5),
        op("less", 10, 5),
        op("less", 15, 5),
        op("gone", 20, 5),
    ]
    test = [step(1, 0, 100), op("same", 0, 5), op("more", 5, 5), op("more", 10, 5), op("less", 15, 4), op("new", 20, 5)]
    assert classes(compare_events(tmp_path, control, test), "cpu_op") == {
        "same": "unchanged",
        "more": "increased",
        "less": "decreased",
        "gone": "deleted",
        "new": "added",
    }


def test_steps_of_other_numbers_are_the_same_op(tmp_path):
    ops = compare_events(tmp_path, [step(1, 0, 10), op("a", 1, 2)], [step(3, 0, 10), op("a", 1, 2)]).ops
    assert [(o.name, o.count_change) for o in ops if o.category == "user_annotation"] == [
        ("ProfilerStep#", "unchanged")
    ]


def test_a_change_splits_into_its_count_and_its_mean_part():
    # 1 × 10 → 2 × 20 µs: one more at the mean of 15, and 10 more each at the mean count of 1.5
    assert split_change(Pair(1, 2), Pair(10, 40)) == (15, 15)
    assert split_change(Pair(2, 1), Pair(40, 10)) == (-15, -15)
    assert split_change(Pair(0, 3), Pair(0, 9)) == (9, 0)


def test_a_group_is_counted_in_the_operator_that_its_members_share(tmp_path):
    """One vendor's product is a memset and a kernel, another's a single kernel: one product on both sides."""
    control = [
        step(1, 0, 100),
        op("aten::mm", 0, 20),
        call("launch", 1, 2, correlation=1),
        kernel("zero", 30, 2, correlation=1),
    ]
    control += [call("launch", 5, 2, correlation=2), kernel("gemm", 40, 10, correlation=2)]
    test = [
        step(1, 0, 100),
        op("aten::mm", 0, 20),
        call("launch", 1, 2, correlation=1),
        kernel("other_gemm", 30, 20, correlation=1),
    ]
    (group,) = compare_events(tmp_path, control, test).gpu_time.groups
    assert (group.level, group.count.control, group.count.test, group.counts) == ("op", 2, 1, (1, 1))
    assert [float(p) for p in group.parts] == [0, 8_000]


def test_exact_needs_the_same_op_and_the_same_shapes(tmp_path):
    def products(*shapes):
        launches = [launched("gemm", 20 * k, 5, k, "aten::mm", **{"Input Dims": dims}) for k, dims in enumerate(shapes)]
        return [step(1, 0, 100), *(event for launch in launches for event in launch)]

    groups = compare_events(tmp_path, products([[2, 2]], [[4, 4]]), products([[2, 9]], [[4, 4]])).gpu_time.groups
    assert sorted(g.level for g in groups) == ["exact", "op"]


def test_another_batch_size_matches_by_operator_where_every_shape_differs_by_one_ratio(tmp_path):
    def products(batch):
        a, b = ([[batch, 3], [3, 5]], [[batch, 5], [5, 2]])
        launches = [launched("gemm", 20 * k, 5, k, "aten::mm", **{"Input Dims": dims}) for k, dims in enumerate((a, b))]
        return [step(1, 0, 100), *(event for launch in launches for event in launch)]

    groups = compare_events(tmp_path, products(8), products(32)).gpu_time.groups
    assert [g.level for g in groups] == ["op", "op"]


def test_copies_match_by_direction_however_the_vendor_spells_it(tmp_path):
    def copy(name):
        return [
            step(1, 0, 50),
            op("aten::copy_", 0, 4),
            call("cudaMemcpyAsync", 1, 2, correlation=1),
            memcpy(name, 10, 5, correlation=1),
        ]

    comparison = compare_events(
        tmp_path, copy("Memcpy HtoD (Pageable -> Device)"), copy("Memcpy HtoD (Host -> Device)")
    )
    assert [(g.level, g.name) for g in comparison.gpu_time.groups] == [("exact", "Memcpy HtoD")]


def test_generated_kernels_match_across_counters_but_stay_apart_by_grid(tmp_path):
    def two(first, second):
        a = launched(first, 0, 5, 1, "triton")
        b = launched(second, 30, 9, 2, "triton")
        a[2]["args"] |= {"grid": [4, 1, 1], "block": [64, 1, 1]}
        b[2]["args"] |= {"grid": [8, 1, 1], "block": [64, 1, 1]}
        return [step(1, 0, 60), *a, *b]

    control, test = (
        two("triton_poi_fused_add_0", "triton_poi_fused_add_3"),
        two("triton_poi_fused_add_1", "triton_poi_fused_add_2"),
    )
    groups = compare_events(tmp_path, control, test).gpu_time.groups
    assert [(g.level, g.time.control, g.time.test) for g in groups] == [
        ("exact", 5_000, 5_000),
        ("exact", 9_000, 9_000),
    ]


def test_one_side_without_gpu_is_refused_unless_forced(tmp_path):
    control, test = [step(1, 0, 100), *launched("gemm", 0, 10, 1)], [step(1, 0, 100), op("aten::mm", 1, 5)]
    refused = compare_events(tmp_path, control, test)
    assert refused.comparability.level == "refused"
    assert refused.was_refused
    assert refused.ops == ()
    assert "cannot be compared" in refused.verdict.sentence
    assert compare_events(tmp_path, control, test, force=True).ops


def test_sets_with_nothing_in_common_are_refused(tmp_path):
    comparison = compare_events(tmp_path, [step(1, 0, 10), op("a", 1, 2)], [step(1, 0, 10), op("b", 1, 2)])
    assert [(r.code, r.level) for r in comparison.comparability.reasons] == [("nothing-shared", "refused")]


def test_two_steps_of_one_file_compare_with_caution(tmp_path):
    path = str(write(tmp_path / "t.json", document([step(1, 0, 10), op("a", 1, 2), step(2, 10, 30), op("a", 11, 4)])))
    comparison = compare_sets(
        *load_sets([path, path], LoadOptions(tuple(SetOptions(selection=Selection(first=k, last=k)) for k in (1, 2))))
    )
    assert comparison.step_time.period == (10_000, 30_000)
    assert [(r.code, r.level) for r in comparison.comparability.reasons] == [("same-set", "caution")]


def test_nothing_is_claimed_untested(tmp_path):
    verdict = compare_events(tmp_path, [step(1, 0, 100), op("a", 1, 2)], [step(1, 0, 50), op("a", 1, 2)]).verdict
    assert (verdict.result, verdict.p_value, verdict.ci95_us) == ("untested", None, None)
    assert "50 % less time" in verdict.sentence
    assert "one run per side: significance unknown" in verdict.sentence


def ms(comparison, name):
    state = next(s for s in comparison.step_time.states if s.name == name)
    return [round(comparison.us(x) / 1000, 1) for x in state.time]


@traces.needs_traces
@pytest.mark.parametrize(
    ("control", "test", "step_ms"),
    [
        ("resnet50_workers0", "resnet50_workers4", [175.5, 132.8]),
        ("resnet50_workers0", "resnet50_workers0_repeat", [175.5, 151.5]),
        ("tinylm_compile", "tinylm_cudagraph", [22.9, 22.9]),
        ("hta_control", "hta_test", [77.9, 117.6]),
        ("hta_ns", "hta_ns", [95.6, 95.6]),
    ],
)
def test_step_times_of_the_real_pairs(control, test, step_ms):
    comparison = real_comparison(control, test)
    assert [round(comparison.us(x) / 1000, 1) for x in comparison.step_time.period] == step_ms


@traces.needs_traces
def test_resnet_gains_by_loading_data_not_by_its_kernels():
    comparison = real_comparison("resnet50_workers0", "resnet50_workers4")
    assert ms(comparison, "data_loading") == [56.7, 0.6]
    assert ms(comparison, "gpu_compute") == [98.6, 99.0]


@traces.needs_traces
def test_unlike_machines_are_compared_with_caution():
    comparison = real_comparison("hta_control", "hta_test")
    assert comparison.comparability.level == "caution"
    assert {"gpu", "world-size"} <= {r.code for r in comparison.comparability.reasons}
    assert comparison.gpu_time.spilled.count.test == 614
