"""The levels of matching, each on traces whose counterparts can be derived by hand."""

import pytest
from build_trace import call, document, event, kernel, op, step, write

from tracediff.diff.views import VIEWS, by_cause, summed
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.report.explain import explain


def compare_events(folder, control, test):
    paths = [
        write(folder / name / "trace.json", document(events)) for name, events in (("control", control), ("test", test))
    ]
    return compare_sets(*load_sets([str(p) for p in paths]))


def launched(name, start, length, correlation, op_name, **args):
    return [
        op(op_name, start, 4, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=correlation),
        kernel(name, start + 10, length, correlation=correlation),
    ]


def level_and_kernels(comparison):
    """(level, control names, test names) of every group."""
    return sorted(
        (g.level, [m.name for m in g.members.control], [m.name for m in g.members.test])
        for g in comparison.gpu_time.groups
    )


def test_work_that_only_one_of_two_calls_does_is_removed_beside_what_both_do(tmp_path):
    """One side's attention clears a buffer before: flash_attention > zeros > fill_."""
    attention = [
        op("aten::flash_attention", 0, 30),
        call("launch", 20, 2, correlation=2),
        kernel("flash", 40, 20, correlation=2),
    ]
    clearing = [
        op("aten::zeros", 1, 10),
        op("aten::fill_", 2, 8),
        call("launch", 3, 2, correlation=1),
        kernel("fill", 8, 2, correlation=1),
    ]
    comparison = compare_events(tmp_path, [step(1, 0, 100), *attention, *clearing], [step(1, 0, 100), *attention])
    assert level_and_kernels(comparison) == [("exact", ["flash"], ["flash"]), ("removed", ["fill"], [])]
    other = [*attention[:2], kernel("other", 40, 20, correlation=2)]
    comparison = compare_events(tmp_path / "other", [step(1, 0, 100), *attention, *clearing], [step(1, 0, 100), *other])
    assert level_and_kernels(comparison) == [("op", ["flash", "fill"], ["other"])]


def test_the_only_call_of_its_name_left_on_both_sides_is_one_call_of_another_size(tmp_path):
    def attention(shapes, *kernels):
        inside = [
            event
            for k, (name, took) in enumerate(kernels)
            for event in (op(f"own::{name}", 10 * k + 1, 8), call("launch", 10 * k + 2, 2, k + 1),
                          kernel(name, 50 + 10 * k, took, k + 1))
        ]  # fmt: skip
        return [step(1, 0, 100), op("attention", 0, 45, **{"Input Dims": shapes}), *inside]

    parts = [("bmm_a", 1), ("softmax_b", 2), ("bmm_c", 3)]
    comparison = compare_events(tmp_path, attention([[8, 512, 64]], ("flash", 5)), attention([[8, 64, 512]], *parts))
    assert level_and_kernels(comparison) == [("op", ["flash"], ["bmm_c", "softmax_b", "bmm_a"])]


def of_batches(*batches, names=("aten::mm", "aten::addmm"), more=0):
    """A step per batch, with a product of each of ``names``, and in the last ``more`` times as many."""
    events, correlation = [], 1
    for k, batch in enumerate(batches):
        start = 10_000 * k
        events.append(step(k, start, 10_000))
        for i, name in enumerate([*names, *names * (more if k == len(batches) - 1 else 0)]):
            shapes = {"Input Dims": [[batch, 8], [8, 8]], "Input type": ["float", "float"]}
            events += launched("gemm", start + 300 * i, batch, correlation, name, **shapes)
            correlation += 1
    return events


def test_calls_of_other_sizes_in_some_steps_have_those_that_these_sizes_lack(tmp_path):
    """As the ranks of a step may have unequal batches."""
    both = of_batches(64, 64, 64), of_batches(64, 96, 64)
    comparison = compare_events(tmp_path, *both)
    groups = {g.call: (g.level, *g.ops.map(comparison.number)) for g in comparison.gpu_time.groups}
    assert groups == dict.fromkeys(("aten::mm", "aten::addmm"), ("op", 1, 1))
    assert all(group.level == "exact" for group in compare_events(tmp_path / "same", both[0], both[0]).gpu_time.groups)
    mirrored = compare_events(tmp_path / "mirrored", *reversed(both))
    assert level_and_kernels(mirrored) == level_and_kernels(comparison)


def test_what_is_called_besides_is_added(tmp_path):
    names = ("aten::mm", "aten::addmm") * 4
    comparison = compare_events(tmp_path, of_batches(64, 64, names=names), of_batches(64, 96, names=names, more=1))
    assert [group.level for group in comparison.gpu_time.groups if not group.members.control] == ["added"] * 2
    texts = [fact.text for fact in comparison.explanation.facts] + [c.what for c in comparison.explanation.causes]
    assert not any("FLOPs" in text and "% of the" in text for text in texts), (
        texts
    )  # of one size, but more of the other


def test_vendors_operators_match_below_what_they_share(tmp_path):
    def convolution(inner, name):
        return [
            step(1, 0, 100),
            op("aten::_convolution", 0, 30),
            op(inner, 2, 20),
            call("launch", 3, 2, correlation=1),
            kernel(name, 40, 10, correlation=1),
        ]

    comparison = compare_events(
        tmp_path,
        convolution("aten::cudnn_convolution", "implicit_gemm"),
        convolution("aten::miopen_convolution", "igemm_fwd"),
    )
    assert level_and_kernels(comparison) == [("op", ["implicit_gemm"], ["igemm_fwd"])]


def test_optional_arguments_that_one_side_leaves_out_do_not_count(tmp_path):
    def product(*shapes):
        return [step(1, 0, 100), *launched("gemm", 0, 10, 1, "aten::mm", **{"Input Dims": list(shapes)})]

    comparison = compare_events(
        tmp_path, product([4, 4], [4, 4]), product([4, 4], [4, 4], [], [4, 4])
    )  # compiled code passes the output too
    assert [g.level for g in comparison.gpu_time.groups] == ["exact"]


def test_what_is_left_of_a_module_goes_together(tmp_path):
    def norm(*ops):
        modules = [
            event("python_function", "nn.Module: Net_0", 0, 90, tid=100),
            event("python_function", "nn.Module: Norm_0", 1, 80, tid=100),
        ]
        return [
            step(1, 0, 100),
            *modules,
            *(e for k, name in enumerate(ops) for e in launched(f"kernel_{name}", 5 + 20 * k, 5, k, f"aten::{name}")),
        ]

    other = launched("large", 90, 400, 9, "aten::mm")
    comparison = compare_events(tmp_path, [*norm("pow", "mean", "rsqrt"), *other], [*norm("rms_norm"), *other])
    (group,) = (g for g in comparison.gpu_time.groups if g.level != "exact")
    assert (group.level, group.module, *group.members.map(len)) == ("module", "Net/Norm", 3, 1)


def test_a_group_of_a_module_that_is_most_of_the_time_is_placed_and_not_matched(tmp_path):
    def module(*ops):
        modules = [event("python_function", "nn.Module: Net_0", 0, 90, tid=100)]
        work = (e for k, name in enumerate(ops) for e in launched(f"kernel_{name}", 5 + 20 * k, 5, k, f"aten::{name}"))
        return [step(1, 0, 100), *modules, *work]

    gpu = compare_events(tmp_path, module("pow", "mean"), module("rms_norm")).gpu_time
    assert [g.level for g in gpu.groups] == ["same module"]
    assert (gpu.matched, gpu.placed) == (0, gpu.delta)


def test_a_fused_kernel_against_the_operators_that_its_name_lists(tmp_path):
    def gemm(start, correlation, **args):
        return launched("gemm", start, 5, correlation, "aten::mm", **{"Input Dims": [[8, 8], [8, 8]]}, **args)

    control = [
        step(1, 0, 200),
        *gemm(0, 1),
        *launched("add_kernel", 20, 6, 2, "aten::add"),
        *launched("gelu_kernel", 40, 7, 3, "aten::gelu"),
        *gemm(60, 4),
    ]
    test = [
        step(1, 0, 200),
        *gemm(0, 1),
        *launched("triton_poi_fused_add_gelu_0", 20, 4, 2, "triton_poi_fused_add_gelu_0"),
        *gemm(60, 4),
    ]
    comparison = compare_events(tmp_path, control, test)
    assert ("fusion", ["gelu_kernel", "add_kernel"], ["triton_poi_fused_add_gelu_0"]) in level_and_kernels(comparison)
    (cause,) = [s for s in by_cause(comparison.gpu_time) if s.name == "fusion"]
    assert cause.time == (13_000, 4_000)


def test_a_fused_kernel_of_another_layer_is_no_partner(tmp_path):
    """Two layers, each a product and an add; only the second layer's add is fused."""

    def layer(start, correlation, fused):
        name = "triton_poi_fused_add_0" if fused else "add_kernel"
        return [
            *launched("gemm", start, 5, correlation, "aten::mm", **{"Input Dims": [[8, 8], [8, 8]]}),
            *launched(name, start + 20, 4, correlation + 1, name if fused else "aten::add"),
        ]

    control = [step(1, 0, 200), *layer(0, 1, fused=False), *layer(60, 3, fused=False)]
    test = [step(1, 0, 200), *layer(0, 1, fused=False), *layer(60, 3, fused=True)]
    comparison = compare_events(tmp_path, control, test)
    assert sorted(g.level for g in comparison.gpu_time.groups) == ["exact", "exact", "exact", "fusion"]


def graph(names, took=None):
    launch = [step(1, 0, 500), op("CompiledFunction", 0, 10), call("cudaGraphLaunch", 1, 2, correlation=1)]
    took = took or [8] * len(names)
    return launch + [kernel(name, 20 + 10 * k, took[k], correlation=1) for k, name in enumerate(names)]


def test_replayed_work_is_aligned_by_its_order(tmp_path):
    comparison = compare_events(
        tmp_path, graph(["gemm", "relu", "gemm", "gelu"]), graph(["gemm", "new_elementwise", "relu", "gemm", "gelu"])
    )
    assert [g.level for g in comparison.gpu_time.groups].count("sequence") == 4
    assert ("added", [], ["new_elementwise"]) in level_and_kernels(comparison)


def test_replayed_nodes_that_changed_places_are_still_partners(tmp_path):
    comparison = compare_events(
        tmp_path, graph(["a", "dw_gemm", "dx_gemm", "b"]), graph(["a", "dx_gemm", "dw_gemm", "b"])
    )
    assert {g.level for g in comparison.gpu_time.groups} == {"sequence"}
    assert all(
        [m.name for m in g.members.control] == [m.name for m in g.members.test] for g in comparison.gpu_time.groups
    )


def test_between_two_pairs_the_only_one_of_its_family_is_a_partner(tmp_path):
    comparison = compare_events(
        tmp_path, graph(["a", "ampere_sgemm_64x64_tn", "b"]), graph(["a", "ampere_sgemm_128x64_tn", "b"])
    )
    assert ("sequence", ["ampere_sgemm_64x64_tn"], ["ampere_sgemm_128x64_tn"]) in level_and_kernels(comparison)


def test_of_equal_neighbours_none_is_said_to_be_the_one_without_a_partner(tmp_path):
    gemm = "ampere_sgemm_64x64_tn"
    comparison = compare_events(tmp_path, graph(["a", gemm, gemm, "b"]), graph(["a", gemm, gemm, gemm, "b"]))
    (group,) = (g for g in comparison.gpu_time.groups if g.level == "sequence~family")
    scale = comparison.scale
    assert (group.count.control / scale, group.count.test / scale) == (2, 3)


FUSED, SPLIT, COMBINE = "fmha_fused_kernel", "flash_fwd_splitkv_kernel", "flash_fwd_splitkv_combine_kernel"
GEMM = "ampere_sgemm_64x64_tn"


def with_attention(*groups):
    """Level, control and test names of the groups that hold attention."""
    return [group for group in groups if any("mha" in name or "flash" in name for name in (*group[1], *group[2]))]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_replayed_kernel_is_grouped_with_all_the_neighbours_that_replace_it(tmp_path, swapped):
    sides = graph([GEMM, FUSED, "relu"] * 3), graph([GEMM, SPLIT, COMBINE, "relu"] * 3)
    comparison = compare_events(tmp_path, *(reversed(sides) if swapped else sides))
    found = with_attention(*level_and_kernels(comparison))
    members = [(sorted(control), sorted(test)) for level, control, test in found if level == "sequence~family"]
    parts = ([FUSED], [COMBINE, SPLIT])
    assert members == [parts[::-1] if swapped else parts] * len(found) == members[:1] * 3


def test_what_is_new_beside_a_kernel_that_stayed_is_added(tmp_path):
    comparison = compare_events(tmp_path, graph([GEMM, FUSED, "relu"]), graph([GEMM, FUSED, COMBINE, "relu"]))
    assert with_attention(*level_and_kernels(comparison)) == [
        ("added", [], [COMBINE]),
        ("sequence", [FUSED], [FUSED]),
    ]


def test_what_is_new_between_two_replaced_kernels_is_a_part_of_neither(tmp_path):
    control = graph([GEMM, "fmha_first_kernel", "fmha_second_kernel", "relu"])
    names = [GEMM, "flash_one_kernel", "flash_new_kernel", "flash_two_kernel", "relu"]
    test = graph(names, took=[8, 8, 1, 8, 8])
    assert ("added", [], ["flash_new_kernel"]) in level_and_kernels(compare_events(tmp_path, control, test))


def test_what_runs_elsewhere_is_no_part_of_a_replaced_kernel(tmp_path):
    comparison = compare_events(tmp_path, graph([GEMM, FUSED, "relu"]), graph([GEMM, SPLIT, "relu", COMBINE]))
    assert ("added", [], [COMBINE]) in level_and_kernels(comparison)


@pytest.mark.parametrize(("took", "together"), [(3, True), (30, False)])
def test_what_comes_with_a_kernel_is_part_of_its_replacement_unless_it_takes_longer(tmp_path, took, together):
    """The second side clears the same buffer in another operator, and convolves nothing."""

    def side(op_name, first, *more):
        kernels = [kernel(name, 20 + 40 * i, length, i + 1) for i, (name, length) in enumerate((first, *more))]
        calls = [call("cudaLaunchKernel", 2 + i, 1, i + 1) for i in range(len(kernels))]
        return [step(1, 0, 100), op(op_name, 0, 10), *calls, *kernels]

    control = side("aten::cudnn_convolution", ("memset_kernel", 5), ("implicit_convolve_sgemm", took))
    comparison = compare_events(tmp_path, control, side("aten::fill_", ("vectorized_fill_kernel_FillFunctor", 4)))
    convolution = next(g for g in comparison.gpu_time.groups for m in g.members.control if "convolve" in m.name)
    assert bool(convolution.members.test) == together


def test_a_kernel_longer_than_its_step_is_kept_out_and_told(tmp_path):
    # step 2's period is 10 µs, but its kernel began in step 1's and lasts 60
    events = [
        step(1, 0, 20),
        *launched("gemm", 0, 5, 1, "aten::mm"),
        call("launch", 22, 1, correlation=2),
        step(2, 20, 10),
        kernel("corrupt", 23, 70, correlation=2),
    ]
    events += [call("launch", 12, 1, correlation=3), kernel("late", 15, 75, correlation=3)]
    comparison = compare_events(tmp_path, events, [step(1, 0, 20), *launched("gemm", 0, 5, 1, "aten::mm")])
    gpu = comparison.gpu_time
    assert comparison.us(gpu.unattributed.delta) == -35  # 70 µs over two steps
    assert gpu.matched + gpu.placed + gpu.added + gpu.removed + gpu.unattributed.delta == gpu.delta
    assert "long-kernels" in {n.code for n in comparison.control.notes}


def test_every_view_adds_up(tmp_path):
    control = [step(1, 0, 100), *launched("gemm", 0, 10, 1, "aten::mm"), *launched("relu", 40, 20, 2, "aten::relu")]
    comparison = compare_events(tmp_path, control, [step(1, 0, 100), *launched("gemm", 0, 7, 1, "aten::mm")])
    for view in (*VIEWS, "cause"):
        lines = summed(comparison.gpu_time, view)
        assert sum(s.time.control for s in lines) == comparison.gpu_time.time.control
        assert sum(s.time.test for s in lines) == comparison.gpu_time.time.test


def test_explain_says_how_and_why(tmp_path):
    control = [step(1, 0, 100), *launched("gemm_a", 0, 10, 1, "aten::mm", **{"Input Dims": [[4, 8], [8, 2]]})]
    test = [step(1, 0, 100), *launched("gemm_b", 0, 7, 1, "aten::mm", **{"Input Dims": [[4, 8], [8, 2]]})]
    comparison = compare_events(tmp_path, control, test)
    text = explain(comparison, "gemm_a")
    assert "op: other work below the same call of aten::mm([4,8], [8,2]), or the same on inputs that differ" in text
    assert "1 × gemm_b below aten::mm, 7.00 µs" in text
    with pytest.raises(TracediffError, match="no kernel or operator is called 'nothing'"):
        explain(comparison, "nothing")
    with pytest.raises(TracediffError, match="'aten::mn'; did you mean aten::mm"):
        explain(comparison, "aten::mn")
    assert explain(comparison, "cudaLaunchKernel").splitlines() == [
        "cudaLaunchKernel: no work that is matched; on the host, per step:",
        "  1 × cudaLaunchKernel, 2.00 → 2.00 µs, of which itself 2.00 → 2.00 µs",
    ]


def test_explain_adds_up_what_is_alike(tmp_path):
    """Three products of one call, one of which has another kernel on the test side."""
    shapes = {"Input Dims": [[4, 8], [8, 2]]}

    def products(kernels):
        times = enumerate(zip(kernels, (10, 20, 50), strict=True))
        return [event for k, (name, ns) in times for event in launched(name, 100 * k, ns, k + 1, "aten::mm", **shapes)]

    both = [[step(1, 0, 400), *products(names)] for names in (["a_gemm"] * 3, ["b_gemm", "b_gemm", "a_gemm"])]
    text = explain(compare_events(tmp_path, *both), "a_gemm")
    assert text.startswith("a_gemm: 3 groups, 80.0 → 50.0 µs per step\n")
    assert text.count("groups, op: ") == 1
    assert "2 groups, op: other work below the same call" in text
    assert "control/trace  2 × a_gemm below aten::mm, 30.0 µs; first at ts " in text
    assert "test/trace     2 × b_gemm below aten::mm, 30.0 µs; first at ts " in text
    assert "more groups" not in text
    assert "2 more groups (--top)" in explain(compare_events(tmp_path / "again", *both), "a_gemm", most=1)
