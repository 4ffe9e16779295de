"""Findings: the causes in the real pairs, and each code on a trace whose answer can be derived by hand."""

from pathlib import Path

import pytest
import traces
from build_trace import annotation, call, document, event, kernel, memcpy, op, step, write
from tracediff.diff.reach import reach

from tracediff.analysis.analyze import analyze_set
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.report.text import context

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def real(control, test):
    return compare_sets(*load_sets([str(traces.FOLDER / control), str(traces.FOLDER / test)]))


def compare_events(folder, control, test):
    paths = [
        write(folder / name / "trace.json", document(events)) for name, events in (("control", control), ("test", test))
    ]
    return compare_sets(*load_sets([str(p) for p in paths]))


def codes(comparison):
    return [f.code for f in comparison.findings]


def finding(comparison, code):
    (found,) = [f for f in comparison.findings if f.code == code]
    return found


def launched(name, start, length, correlation, op_name="aten::mm", **args):
    return [
        op(op_name, start, 4, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=correlation),
        kernel(name, start + 10, length, correlation=correlation),
    ]


@traces.needs_traces
def test_resnet_got_faster_by_its_data_loader_and_not_by_cudnns_choices():
    comparison = real("resnet50_workers0", "resnet50_workers4")
    first = comparison.findings[0]
    assert (first.code, round(first.delta_us / 1000, 1)) == ("data-loading", -56.2)
    assert "exceeds the whole change" in first.detail
    assert "In resnet50_workers0 the process itself loads (aten::copy_" in first.detail
    about_kernels = {"algorithm-swap", "slower-family", "faster-family", "all-kernels", "workload-changed", "fused"}
    assert not about_kernels & set(codes(comparison))
    assert comparison.gpu_time.added == comparison.gpu_time.removed == 0


@traces.needs_traces
@pytest.mark.parametrize(
    ("control", "test"),
    [("resnet50_workers0", "resnet50_workers0_repeat"), ("transformer_h100_run1", "transformer_h100_run2")],
)
def test_nothing_changed_on_the_gpu_between_two_runs_of_one_program(control, test):
    comparison = real(control, test)
    assert {g.level for g in comparison.gpu_time.groups} == {"exact"}
    about_kernels = {
        "algorithm-swap",
        "cudnn-choice",
        "slower-kernel",
        "faster-kernel",
        "slower-family",
        "faster-family",
        "all-kernels",
        "module-change",
        "count-change",
        "new-copies",
        "fused",
        "tensor-core-share",
    }
    assert not about_kernels & set(codes(comparison))


@traces.needs_traces
def test_cuda_graphs_save_the_host_time_that_nobody_waited_for():
    comparison = real("tinylm_compile", "tinylm_cudagraph")
    found = comparison.findings[0]
    assert found.code == "cuda-graph"
    assert "graph launches: 0 → 2 per step" in found.title
    assert "−73 %" in found.detail or "-73 %" in found.detail
    assert "No speed-up" in found.detail
    assert codes(comparison) == ["cuda-graph", "spilled-kernels"]
    assert context(comparison) == "GPU idle for 1.2 → 0.8 % of the step, GPU-bound on both sides"


@traces.needs_traces
@pytest.mark.parametrize(
    ("model", "culprit"),
    [
        ("bertsmall", "modeling_bert.py: forward"),
        ("falconsai", "modeling_vit.py: forward"),
        ("timesformer", "aten::copy_ in feature_extraction_utils.py: to"),
    ],
)
def test_the_host_bounds_the_small_models(model, culprit):
    comparison = real(f"{model}_h100", f"{model}_mi300")
    first = comparison.findings[0]
    assert (first.code, first.evidence[0].label) == ("host-time", culprit)
    assert "host-bound on both sides" in context(comparison)
    assert "gpu" in {r.code for r in comparison.comparability.reasons}


@traces.needs_traces
def test_kernels_count_by_how_much_of_their_time_reaches_the_step():
    alternating, hidden = real("timesformer_h100", "timesformer_mi300"), real("falconsai_h100", "falconsai_mi300")
    assert 0.7 < reach(alternating) < 0.9  # the host waits for the GPU in its copies
    assert reach(hidden) < 0.05
    assert "algorithm-swap" in codes(alternating)
    assert "algorithm-swap" not in codes(hidden)


@traces.needs_traces
def test_two_machines_are_compared_with_caution():
    comparison = real("hta_control", "hta_test")
    assert {"gpu", "world-size"} <= {r.code for r in comparison.comparability.reasons}
    assert "3 → 768 copies per step" in finding(comparison, "new-copies").title


@traces.needs_traces
def test_the_rank_that_waits_least_comes_last():
    (traceset,) = load_sets([str(traces.FOLDER / "dlrm_8ranks")])
    (found,) = [f for f in analyze_set(traceset).findings if f.code == "straggler"]
    assert found.title == "ranks 2, 6, 7 of dlrm_8ranks are stragglers: other ranks wait up to 9.59 ms per step"
    assert found.evidence[-1].name.startswith("rank 1: 11.3")
    assert codes(compare_sets(traceset, traceset)) == ["spilled-kernels"]  # late on both sides alike


def test_a_compiled_sample_fuses_what_it_computes():
    comparison = compare_sets(*load_sets([str(SAMPLES / "vit/eager"), str(SAMPLES / "vit/compile")]))
    found = finding(comparison, "fused")
    assert found.delta_us < 0
    fused = [(g.level, m.ns) for g in comparison.host_time.groups for m in g.test if "fused" in m.name]
    assert sum(ns for level, ns in fused if level == "fusion") >= 0.95 * sum(ns for _, ns in fused)
    gelu = [g for g in comparison.host_time.groups if any(m.op == "aten::gelu_backward" for m in g.control)]
    assert all(g.level == "fusion" and all("gelu_backward" in m.name for m in g.test) for g in gelu)


def test_graph_breaks_come_from_the_manifest():
    comparison = compare_sets(*load_sets([str(SAMPLES / "graph-breaks/eager"), str(SAMPLES / "graph-breaks/compile")]))
    found = finding(comparison, "graph-breaks")
    assert "has 4 graph breaks: 5 compiled regions" in found.title
    assert all("graph_breaks.py:" in e.name for e in found.evidence)


def test_the_same_kernel_slower_and_faster(tmp_path):
    comparison = compare_events(
        tmp_path,
        [step(1, 0, 100), *launched("gemm", 0, 40, 1), *launched("relu", 45, 45, 2, "aten::relu")],
        [step(1, 0, 100), *launched("gemm", 0, 45, 1), *launched("relu", 45, 40, 2, "aten::relu")],
    )
    assert (finding(comparison, "slower-kernel").delta_us, finding(comparison, "faster-kernel").delta_us) == (5, -5)


def test_other_kernels_of_the_same_operator(tmp_path):
    comparison = compare_events(
        tmp_path,
        [step(1, 0, 100), *launched("ampere_sgemm_64x64_tn", 0, 90, 1)],
        [step(1, 0, 80), *launched("ampere_h16816gemm_64x64_tn", 0, 70, 1)],
    )
    found = finding(comparison, "algorithm-swap")
    assert (found.delta_us, found.evidence[0].control_us, found.evidence[0].test_us) == (-20, 90, 70)
    assert "0 → 100 %" in finding(comparison, "tensor-core-share").title


def test_kernels_of_another_operator_and_what_it_launches_beside_them(tmp_path):
    def attention(*names, op_name):
        launches = [
            e
            for k, name in enumerate(names)
            for e in (
                call("cudaLaunchKernel", 2 + 3 * k, 2, correlation=k + 1),
                kernel(name, 20 + 50 * k, 40, correlation=k + 1),
            )
        ]
        return [step(1, 0, 130), op(op_name, 1, 12), *launches]

    control = attention("flash_fwd_kernel", op_name="aten::_flash_attention_forward")
    test = attention("quant_per_warp_int8_kernel", "qk_int_sv_f16_attn_kernel", op_name="sage::attention")
    comparison = compare_events(tmp_path, control, test)
    first = finding(comparison, "operator-swap")
    assert first.title.startswith("sage::attention instead of aten::_flash_attention_forward: 40.0 → 80.0 µs")
    assert {"quant_per_warp_int8_kernel", "qk_int_sv_f16_attn_kernel"} <= set(first.evidence[0].name.split())
    assert "count-change" not in codes(comparison)


def test_copies_and_waits_that_one_side_makes_more_of(tmp_path):
    copies = [
        event
        for k in range(3)
        for event in (
            op("aten::copy_", 30 + 10 * k, 8),
            call("cudaMemcpyAsync", 31 + 10 * k, 2, correlation=10 + k),
            memcpy("Memcpy DtoH (Device -> Pageable)", 33 + 10 * k, 3, correlation=10 + k),
            call("cudaStreamSynchronize", 34 + 10 * k, 3),
        )
    ]
    plain = [step(1, 0, 30), *launched("gemm", 0, 20, 1)]
    comparison = compare_events(tmp_path, plain, [step(1, 0, 70), *plain[1:], *copies])
    assert "0 → 3 copies per step" in finding(comparison, "new-copies").title
    assert finding(comparison, "new-sync").evidence[0].test_count == 3


def test_inputs_of_another_dtype_and_in_another_layout(tmp_path):
    def product(dtype, strides):
        inputs = {"Input Dims": [[4, 4], [4, 4]], "Input type": [dtype, dtype], "Input Strides": strides}
        return [step(1, 0, 100), *launched("gemm", 0, 10, 1, **inputs)]

    rows, columns = [[4, 1], [4, 1]], [[1, 4], [4, 1]]
    found = finding(compare_events(tmp_path, product("float", rows), product("c10::BFloat16", rows)), "dtype-change")
    assert "float → c10::BFloat16" in found.evidence[0].name
    found = finding(compare_events(tmp_path, product("float", rows), product("float", columns)), "layout-change")
    assert "strides [4, 1] → [1, 4]" in found.evidence[0].name


def test_work_of_other_shapes(tmp_path):
    def products(*sizes):
        return [
            step(1, 0, 200),
            *(
                e
                for k, n in enumerate(sizes)
                for e in launched("gemm", 40 * k, 10, k, **{"Input Dims": [[8, n], [8, n]]})
            ),
        ]

    title = finding(compare_events(tmp_path, products(4, 16), products(4, 64)), "workload-changed").title
    assert title.startswith("50 % of the work has other shapes")
    assert compare_events(tmp_path, products(4), products(4, 16, 64)).comparability.level == "ok"  # added work
    title = finding(compare_events(tmp_path, products(4, 16), products(4, 64, 32)), "workload-changed").title
    assert title.startswith("40 % of the work")  # one product of another shape, one more


def test_compiling_inside_of_the_steps_is_told(tmp_path):
    plain = [step(1, 0, 100), op("aten::mm", 0, 10)]
    compiling = [*plain, op("Torch-Compiled Region: 0/1", 20, 30), op("compile_fx_inner (dynamo_timed)", 25, 20)]
    comparison = compare_events(tmp_path, plain, compiling)
    assert {"compile-in-window", "recompile-in-window"} <= set(codes(comparison))


def test_a_step_far_from_the_others_is_named_and_kept(tmp_path):
    def steps(*lengths):
        start, out = 0, []
        for number, length in enumerate(lengths, 1):
            out += [step(number, start, length), op("aten::mm", start + 1, 5)]
            start += length
        return out

    comparison = compare_events(tmp_path, steps(*[100] * 8), steps(*[100] * 5, 900, 100, 100))
    assert "step 6: 900.0 µs" in finding(comparison, "outlier-step").detail


def test_launches_that_the_step_waits_for(tmp_path):
    def slow_launch(us):
        return [
            step(1, 0, 100 + us),
            op("aten::mm", 0, us + 4),
            call("cudaLaunchKernel", 1, us, correlation=1),
            kernel("gemm", us + 3, 10, correlation=1),
        ]

    assert finding(compare_events(tmp_path, slow_launch(5), slow_launch(80)), "launch-bound").delta_us == 75


def test_a_refused_comparison_has_no_findings(tmp_path):
    comparison = compare_events(tmp_path, [step(1, 0, 10), op("a", 0, 5)], [step(1, 0, 10), *launched("gemm", 0, 5, 1)])
    assert comparison.findings == ()


def test_data_loading_on_traces_without_a_gpu(tmp_path):
    def loading(us):
        return [step(1, 0, 100 + us), annotation("enumerate(DataLoader)#_Iter.__next__", 0, us), op("aten::mm", us, 50)]

    assert finding(compare_events(tmp_path, loading(200), loading(10)), "data-loading").delta_us == -190


def busy_step(number, start, *work, dtype=None, length=None):
    """A GPU-bound step: (operator, kernel, µs) one after the other, launched at once."""
    args = {"Input Dims": [[64, 64], [64, 64]], "Input type": [dtype, dtype]} if dtype else {}
    events, at, total = [], start + 5, sum(us for *_, us in work)
    for k, (operator, name, us) in enumerate(work):
        correlation = 1000 * number + k
        events += [
            op(operator, start + 2 * k, 2, **args),
            call("cudaLaunchKernel", start + 2 * k + 0.5, 1, correlation=correlation),
            kernel(name, max(at, start + 2 * k + 2), us, correlation=correlation),
        ]
        at = max(at, start + 2 * k + 2) + us
    return [step(number, start, length or total + 6), *events]


def test_a_family_is_a_cause_where_no_name_is(tmp_path):
    def products(factor):
        names = [(f"aten::op{k}", f"cutlass_gemm_{k}x64", 20 * factor) for k in range(6)]
        return busy_step(1, 0, *names, ("aten::relu", "relu_kernel", 30), ("aten::add", "add_kernel", 30))

    first = compare_events(tmp_path, products(1), products(1.25)).findings[0]
    assert (first.code, first.delta_us) == ("slower-family", 30)
    assert "gemm kernels are 25 % slower: 120.0 → 150.0 µs per step over 6 names (one run)" in first.title


def test_all_kernels_together_hold_their_families(tmp_path):
    def work(factor):
        families = ("cutlass_gemm", "softmax_warp_forward", "layer_norm_kernel")
        return busy_step(1, 0, *((f"aten::op{k}", f"{families[k % 3]}_{k}", 30 * factor) for k in range(9)))

    comparison = compare_events(tmp_path, work(1), work(1.1))
    assert codes(comparison) == ["all-kernels"]
    assert {part.code for part in comparison.findings[0].parts} == {"slower-family"}


def test_another_dtype_holds_the_kernels_that_it_replaced(tmp_path):
    def product(dtype, kernel_name, us):
        return busy_step(1, 0, ("aten::mm", kernel_name, us), dtype=dtype)

    comparison = compare_events(
        tmp_path, product("float", "ampere_sgemm_64x64", 100), product("c10::Half", "ampere_h16816gemm_64x64", 40)
    )
    first = comparison.findings[0]
    assert first.code == "dtype-change"
    assert [part.code for part in first.parts] == ["algorithm-swap"]
    assert first.delta_us == first.parts[0].delta_us == -60


def test_kernels_of_an_idle_gpu_are_no_cause(tmp_path):
    def step_with(us):
        return [step(1, 0, 1000), *launched("gemm", 0, us, 1), op("aten::host_work", 200, 700)]

    comparison = compare_events(tmp_path, step_with(40), step_with(80))
    assert reach(comparison) == 0
    assert comparison.findings == ()
    assert context(comparison).startswith(
        "GPU idle for 96 → 92 % of the step, host-bound on both sides; faster kernels would hardly"
    )


def convolutions(count):
    return busy_step(1, 0, *[("aten::convolution", "implicit_convolve_sgemm", 10)] * count)


def test_repeated_work_without_steps_is_other_work(tmp_path):
    comparison = compare_events(tmp_path, convolutions(20)[1:], convolutions(60)[1:])
    assert comparison.findings[0].code == "workload-changed"
    assert "3 times as often on the test side: 20 → 60 GPU events" in comparison.findings[0].title
    assert comparison.verdict.sentence.startswith("Different work: the same work is done 3 times as often")


def test_repeated_work_in_a_step_is_added_work_but_less_of_it_is_other_work(tmp_path):
    more = compare_events(tmp_path, convolutions(20), convolutions(60))
    assert codes(more) == ["count-change"]
    assert not more.verdict.sentence.startswith("Different work")
    less = compare_events(tmp_path, convolutions(60), convolutions(20))
    assert codes(less)[0] == "workload-changed"
    assert less.verdict.sentence.startswith("Different work: the same work is done 3 times as often on the control")


PRODUCT, ACTIVATION = ("aten::mm", "sgemm_128", 100), ("aten::relu", "relu_kernel", 20)
FUSED = ("triton_fused_mlp", "triton_per_fused_mm_relu_0", 90)


@pytest.mark.parametrize("work", [(PRODUCT, ACTIVATION), (PRODUCT, ("aten::bmm", "bgemm_64", 50), ACTIVATION)])
@pytest.mark.parametrize("stepped", [True, False], ids=["steps", "whole file"])
def test_added_products_are_a_slow_down_and_removed_ones_are_missing(tmp_path, work, stepped):
    few = busy_step(1, 0, *work * 3)[not stepped :]
    many = busy_step(1, 0, *work * 3, *[PRODUCT] * 3)[not stepped :]
    added = compare_events(tmp_path, few, many)
    assert codes(added) == ["count-change"]
    assert added.findings[0].title.startswith("3 GPU events per step added")
    assert added.comparability.level == "ok"
    removed = compare_events(tmp_path, many, few)
    assert [r.code for r in removed.comparability.reasons] == ["missing-work"]
    assert codes(removed)[0] == "missing-work"
    assert removed.verdict.sentence.startswith("Different work: ")
    first = removed.findings[0]
    assert sum(e.control_count - e.test_count for e in first.evidence) == 3
    whole = sum(us for *_, us in work) * 3 + 300
    assert first.title.startswith(f"{300 / whole * 100:.0f} % of control's work is missing")


@pytest.mark.parametrize(
    "test",
    [
        (PRODUCT, PRODUCT, FUSED),
        (PRODUCT, PRODUCT, PRODUCT),
        (PRODUCT, PRODUCT, ("custom::mlp", "my_kernel", 60), ACTIVATION),
    ],
    ids=["fused", "activation saved", "own kernel"],
)
def test_work_that_is_fused_saved_or_replaced_is_not_missing(tmp_path, test):
    comparison = compare_events(tmp_path, busy_step(1, 0, *[PRODUCT] * 3, ACTIVATION), busy_step(1, 0, *test))
    assert comparison.comparability.level == "ok"
    assert "missing-work" not in codes(comparison)


def test_a_wrapper_of_a_product_is_no_product(tmp_path):
    """Compiled code calls the product itself: only the self time of what called it is gone."""
    wrapped = [op("aten::linear", 0, 100), op("aten::addmm", 30, 60), op("aten::mul", 110, 50)]
    bare = [op("aten::addmm", 30, 60), op("aten::mul", 110, 50)]
    comparison = compare_events(tmp_path, [step(1, 0, 200), *wrapped], [step(1, 0, 200), *bare])
    assert "missing-work" not in codes(comparison)
    without = compare_events(tmp_path, [step(1, 0, 200), *bare], [step(1, 0, 200), bare[1]])
    assert codes(without)[0] == "missing-work"


def test_a_product_whose_module_does_something_else_instead_is_missing(tmp_path):
    def forward(name, kernel_name):
        product = launched("sgemm_128", 20, 50, 1)
        return [
            step(1, 0, 200),
            event("python_function", "nn.Module: Linear_0", 60, 40, **{"Python id": 1, "Python parent id": None}),
            *product,
            *launched(kernel_name, 65, 30, 2, name),
        ]

    comparison = compare_events(tmp_path, forward("aten::mm", "sgemm_64"), forward("aten::add", "add_kernel"))
    assert codes(comparison)[0] == "missing-work"


def test_the_compiled_functions_own_frames_are_no_compilation(tmp_path):
    plain = [step(1, 0, 100), op("aten::mm", 0, 10)]
    frames = ["torch/_inductor/compile_fx.py(1234): forward", "## Call CompiledFxGraph f ##", "CompiledFunction"]
    running = [*plain, *(op(name, 20 + 10 * k, 5) for k, name in enumerate(frames))]
    little = [*plain, op("compile_fx_inner (dynamo_timed)", 20, 0.5)]
    for test in (running, little):
        assert "compile-in-window" not in codes(compare_events(tmp_path, plain, test))
    assert codes(compare_events(tmp_path, plain, [*plain, op("compile_fx_inner (dynamo_timed)", 20, 30)]))[0] == (
        "compile-in-window"
    )


def test_pinned_memory_instead_of_pageable(tmp_path):
    def copied(kind, us):
        return [
            step(1, 0, us + 40),
            *launched("gemm", 0, 20, 1),
            call("cudaMemcpyAsync", 31, us + 2, correlation=2),
            memcpy(f"Memcpy HtoD ({kind} -> Device)", 32, us, correlation=2, bytes=1_800_000),
        ]

    first = compare_events(tmp_path, copied("Pageable", 90), copied("Pinned", 30)).findings[0]
    assert first.code == "copy-kind"
    assert "pinned to device instead of pageable to device: 90.0 → 30.0 µs per step, 20 → 60 GB/s" in first.title


def test_findings_turn_their_sign_with_the_sides(tmp_path):
    a = busy_step(1, 0, ("aten::mm", "gemm", 40), ("aten::relu", "relu", 50))
    b = busy_step(1, 0, ("aten::mm", "gemm", 60), ("aten::relu", "relu", 45))
    there, back = compare_events(tmp_path, a, b).findings, compare_events(tmp_path, b, a).findings
    assert [f.delta_us for f in there] == [-f.delta_us for f in back]
    assert [f.code for f in there] == ["slower-kernel", "faster-kernel"]


@traces.needs_traces
def test_runtime_calls_of_two_vendors_are_one_row():
    comparison = real("bertsmall_h100", "bertsmall_mi300")
    launches = next(op for op in comparison.ops if op.name == "cudaLaunchKernel → hipLaunchKernel")
    assert comparison.number(launches.control_count) == comparison.number(launches.test_count) == 60
    calls = [op for op in comparison.ops if op.category.startswith("cuda")]
    assert sum(op.count_change == "unchanged" for op in calls) >= 2
    assert not any(op.raw_name.startswith("cuda") and not op.test_count for op in calls if "Launch" in op.raw_name)


def test_copies_that_computation_no_longer_covers(tmp_path):
    def copying(start):
        return [
            step(1, 0, 160),
            *launched("gemm", 0, 100, 1),
            call("cudaMemcpyAsync", 5, 1, correlation=2),
            memcpy("Memcpy HtoD (Pinned -> Device)", start, 50, correlation=2, stream=8),
        ]

    found = finding(compare_events(tmp_path, copying(20), copying(110)), "overlap-change")
    assert "computation covers 100 → 0 % of the time of copies" in found.title
    assert found.delta_us == 50


def test_a_module_holds_most_of_the_change(tmp_path):
    def layers(factor):
        work, start = [], 0
        for k in range(4):
            name, length = f"{'Attention' if k % 2 else 'Mlp'}_{k // 2}", 60 * factor if k % 2 else 60
            work += [
                event("python_function", f"nn.Module: {name}", start, 2 * length + 5, **{"Python id": k + 1}),
                *launched("cutlass_gemm", start + 2, length, 10 * k + 1),
                *launched("softmax_warp_forward", start + length + 2, length, 10 * k + 2, "aten::softmax"),
            ]
            start += 2 * length + 10
        return [step(1, 0, start + 10), *work]

    first = compare_events(tmp_path, layers(1), layers(1.4)).findings[0]
    assert first.code == "module-change"
    assert "Attention is 40 % slower: 240.0 → 336.0 µs per step over 2 instances" in first.title
    assert {part.code for part in first.parts} <= {"slower-kernel", "slower-family"}


def test_compiled_regions_are_counted_once(tmp_path):
    def regions(*names):
        return [step(1, 0, 100), op("aten::mm", 0, 5), *(op(name, 10 * k + 10, 5) for k, name in enumerate(names))]

    once = regions("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/1")
    twice = regions("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 1/0")
    assert finding(compare_events(tmp_path, once, twice), "graph-breaks").title == "compiled regions: 1 → 2"
    assert "graph-breaks" not in codes(compare_events(tmp_path, once, regions("Torch-Compiled Region: 0/0")))
