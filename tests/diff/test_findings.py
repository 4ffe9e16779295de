"""Findings: the causes in the real pairs, and each code on a trace whose answer can be derived by hand."""

from pathlib import Path

import pytest
import traces
from build_trace import annotation, call, document, kernel, memcpy, op, step, write

from tracediff.diff.compare import compare_sets
from tracediff.engine import load_sets

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
    assert "cudnn-choice" in codes(comparison)
    assert not {"algorithm-swap", "workload-changed", "fused"} & set(codes(comparison))
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
        "count-change",
        "new-copies",
        "fused",
        "tensor-core-share",
    }
    assert not about_kernels & set(codes(comparison))


@traces.needs_traces
def test_cuda_graphs_save_the_host_time_that_nobody_waited_for():
    comparison = real("tinylm_compile", "tinylm_cudagraph")
    found = finding(comparison, "cuda-graph")
    assert "graph launches: 0 → 2 per step" in found.title
    assert "−73 %" in found.detail or "-73 %" in found.detail
    assert "No speed-up" in found.detail
    assert {"gpu-bound", "spilled-kernels"} <= set(codes(comparison))


@traces.needs_traces
@pytest.mark.parametrize("model", ["bertsmall", "falconsai", "timesformer"])
def test_the_host_bounds_the_small_models(model):
    comparison = real(f"{model}_h100", f"{model}_mi300")
    assert {"host-bound", "algorithm-swap"} <= set(codes(comparison))
    assert "gpu" in {r.code for r in comparison.comparability.reasons}


@traces.needs_traces
def test_two_machines_are_compared_with_caution():
    comparison = real("hta_control", "hta_test")
    assert {"gpu", "world-size"} <= {r.code for r in comparison.comparability.reasons}
    assert "3 → 768 copies per step" in finding(comparison, "new-copies").title


@traces.needs_traces
def test_the_rank_that_waits_least_comes_last():
    found = [f for f in real("dlrm_8ranks", "dlrm_8ranks").findings if f.code == "straggler"]
    assert len(found) == 2
    assert [f.title for f in found] == [
        f"rank 7 of {side} is a straggler: other ranks wait up to 9.59 ms per step" for side in ("control", "test")
    ]
    assert found[0].evidence[-1].name.startswith("rank 1: 11.3")


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
        [step(1, 0, 100), *launched("gemm", 0, 10, 1), *launched("relu", 40, 20, 2, "aten::relu")],
        [step(1, 0, 100), *launched("gemm", 0, 20, 1), *launched("relu", 40, 10, 2, "aten::relu")],
    )
    assert (finding(comparison, "slower-kernel").delta_us, finding(comparison, "faster-kernel").delta_us) == (10, -10)


def test_other_kernels_of_the_same_operator(tmp_path):
    comparison = compare_events(
        tmp_path,
        [step(1, 0, 100), *launched("ampere_sgemm_64x64_tn", 0, 30, 1)],
        [step(1, 0, 100), *launched("ampere_h16816gemm_64x64_tn", 0, 10, 1)],
    )
    found = finding(comparison, "algorithm-swap")
    assert (found.delta_us, found.evidence[0].control_us, found.evidence[0].test_us) == (-20, 30, 10)
    assert "0 → 100 %" in finding(comparison, "tensor-core-share").title


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
    plain = [step(1, 0, 100), *launched("gemm", 0, 10, 1)]
    comparison = compare_events(tmp_path, plain, plain + copies)
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
                for e in launched("gemm", 40 * k, 10, k, **{"Input Dims": [[n, 8], [8, 8]]})
            ),
        ]

    assert (
        "50 % of the work"
        in finding(compare_events(tmp_path, products(4, 16), products(4, 64)), "workload-changed").title
    )


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
