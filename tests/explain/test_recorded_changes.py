"""Changes as programs make them on a GPU, of which the words of the answer are known (µs)."""

import re
from itertools import accumulate

import pytest
from build_trace import call, kernel, memcpy, memset, op, python, step
from two_sides import compared, launch

from tracediff.explain.facts import BACKLOG, NEW_WAIT, WORK_DIFFERS
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table, is_unclear
from tracediff.present.next_command import MORE_STEPS, next_command
from tracediff.present.path import read_path
from tracediff.present.sections import changed_work

COLLECTS = "<built-in function collect>"


def copied(source, took, size):
    dims = {"Input Dims": [[size], [size]], "Input type": ["float", "float"]}
    return [
        op("aten::copy_", 0, 8, **dims),
        call("cudaMemcpyAsync", 2, 1, 1),
        memcpy(f"Memcpy HtoD ({source} -> Device)", 10, took, 1, bytes=4 * size),
    ]


MULTIPLY = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}


def test_a_copy_from_other_memory_is_said_in_the_answer(tmp_path):
    sides = {"before": copied("Pageable", 900, 1000), "after": copied("Pinned", 100, 1000)}
    comparison = compared(tmp_path, {name: [step(1, 0, 10), *events] for name, events in sides.items()})
    what = "as many bytes, 9 × as fast, from pageable → pinned memory, 0.00444 → 0.0400 GB/s"
    assert f"{what})" in answer_of(comparison).why


def test_products_in_tf32_on_one_side_are_said_in_the_verdict(tmp_path):
    names = {"before": "ampere_sgemm_128x64_tn", "after": "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n"}
    sides = {
        name: [
            step(1, 0, 11 * took),
            *(e for i in range(10) for e in launch(i, kernel_name, took, took + took * i, **MULTIPLY)),
        ]
        for (name, kernel_name), took in zip(names.items(), (300, 60), strict=True)
    }
    assert "in TF32 instead of float" in answer_of(compared(tmp_path, sides)).verdict


def test_what_alone_grew_is_named_in_its_own_unit(tmp_path):
    """A copy of 100 times the bytes beside products that take most of the time."""
    products = [launch(i + 5, "sgemm", 300, 3000 + 300 * i, **MULTIPLY) for i in range(10)]
    rest = [event for events in products for event in events]
    sides = {"before": copied("Pageable", 20, 1000), "after": copied("Pageable", 2000, 100_000)}
    comparison = compared(tmp_path, {name: [step(1, 0, 60), *events, *rest] for name, events in sides.items()})
    (fact,) = [fact for fact in comparison.explanation.facts if fact.code == WORK_DIFFERS]
    assert "100 × the bytes" in fact.text
    assert comparison.explanation.causes[0].trail[1] == "copy" or comparison.explanation.causes[0].label.startswith(
        "copy"
    )


def of_python(took):
    events = [step(1, 0, 300 + took), op("aten::relu", 10, 5)]
    return [*events, python("train.py(3): update", 20, 200 + took, 1), python(COLLECTS, 100, took, 2, parent=1)]


def test_a_built_in_function_is_named_with_what_calls_it(tmp_path):
    comparison = compared(tmp_path, {"before": of_python(10), "after": of_python(5000)})
    first = comparison.explanation.causes[0]
    assert first.label == "collect() in train.py(3): update"
    assert first.delta_us == pytest.approx(4990)


def test_a_product_with_a_memset_in_its_call_is_paired_with_the_product(tmp_path):
    """Compiled code calls a plain product where a biased one was called; one of both clears a buffer before."""
    dims = {"Input type": ["float"] * 3}
    biased = launch(0, "gemm_a", 700, 50, "aten::addmm", 30, **dims, **{"Input Dims": [[8], [16, 32], [32, 8]]})
    plain = [
        op("aten::mm", 0, 30, **{"Input Dims": [[16, 32], [32, 8]], "Input type": ["float"] * 2}),
        call("cudaMemsetAsync", 3, 1, 9),
        memset(40, 2, 9),
        call("cudaLaunchKernel", 5, 1, 1),
        kernel("gemm_b", 50, 690, 1),
    ]
    fused = [call("launch", 40, 2, 5), kernel("triton_poi_fused_add_addmm_0", 800, 20, 5)]
    comparison = compared(tmp_path, {"before": [step(1, 0, 60), *biased], "after": [step(1, 0, 60), *plain, *fused]})
    groups = [[sorted(m.name for m in side) for side in group.members] for group in comparison.gpu_time.groups]
    assert any("gemm_a" in control and "gemm_b" in test for control, test in groups), groups
    rows = {row.name: comparison.us(row.delta) for row in comparison.work_by_operator}
    assert rows["aten::addmm → aten::mm"] == pytest.approx(-10)
    assert sum(rows.values()) == pytest.approx(comparison.us(comparison.gpu_time.delta))


def attention(kernels):
    """Kernels of (name, operator) that one module launches."""
    module = python("nn.Module: Block_0", 0, 100, 1, module=0)
    launches = [launch(i, name, 100, 200 + 100 * i, op_name, 10) for i, (name, op_name) in enumerate(kernels)]
    launches += [launch(20 + i, "conv_kernel", 900, 1000 + 900 * i, "aten::conv2d", 10) for i in range(5)]
    return [step(1, 0, 300), module, *(event for events in launches for event in events)]


def test_what_a_module_runs_instead_is_named_by_the_largest_operators(tmp_path):
    parts = [("sgemm_nn", "aten::bmm"), ("softmax_warp_forward", "aten::_softmax"), ("sgemm_nt", "aten::bmm")]
    fused = [("fmha_cutlassF_f32", "aten::_efficient_attention_forward")]
    comparison = compared(tmp_path, {"before": attention(parts), "after": attention(fused)})
    labels = [cause.label for cause in comparison.explanation.causes]
    assert "aten::bmm + 1 more → aten::_efficient_attention_forward in Block" in labels, labels


def of_host(extra):
    return [
        step(1, 0, 100 + extra),
        op("aten::relu", 10, 50 + extra),
        *launch(0, "relu", 10, 90 + extra, "aten::relu", 3, 11),
    ]


@pytest.mark.parametrize(("runs", "words"), [(1, "one run per side: "), (2, "2 runs per side")])
def test_how_many_runs_may_vary_is_said_as_it_is(tmp_path, runs, words):
    sides = {"before": lambda run: of_host(40 * run), "after": lambda run: of_host(10 + 40 * run)}
    answer = answer_of(compared(tmp_path, sides, runs=runs))
    assert words in answer.evidence
    assert answer.evidence.endswith("the time of the host may vary this much from run to run")


def test_a_difference_that_is_significant_is_no_variation(tmp_path):
    sides = {"before": lambda run: of_host(run), "after": lambda run: of_host(400 + run)}
    comparison = compared(tmp_path, sides, runs=2)
    assert comparison.verdict.result == "slower"
    answer = answer_of(comparison)
    assert answer.because.startswith("Because of ")
    assert "may vary" not in answer.evidence


def of_gpu(work, host):
    """One kernel of ``work`` µs, launched after ``host`` µs."""
    return [step(1, 0, host + 30), op("aten::relu", 0, host), *launch(0, "relu", work, host + 20, "aten::mm", 10, host)]


def test_steps_that_the_profiler_changes_the_other_way_are_gpu_work_and_idle_time(tmp_path):
    sides = {"before": of_gpu(900, 50), "after": of_gpu(500, 900)}
    comparison = compared(tmp_path, sides, unprofiled=(1000.0, 700.0))
    assert comparison.step_time.delta > 0
    explanation = comparison.explanation
    assert explanation.change_us == pytest.approx(-300)
    assert {cause.label: round(cause.delta_us) for cause in explanation.causes}["GPU idle"] == 100
    assert round(explanation.causes[0].delta_us) == -400
    assert explanation_table(explanation).heads[0] == "Why (step without the profiler)"
    answer = answer_of(comparison)
    assert "busy 90 → 71 % without the profiler" in answer.limits
    assert answer.offset_by == "offset by GPU idle (+100 µs)"


@pytest.mark.parametrize(("after", "said"), [(150, " (significantly more)"), (50, " (significantly less)"), (100, "")])
def test_gpu_work_that_surely_changed_is_said_where_the_host_hides_it(tmp_path, after, said):
    """The host takes 500 to 900 µs, on either side."""
    sides = {
        name: lambda run, work=work: of_gpu(work + 0.5 * run, (500, 900, 700)[run])
        for name, work in (("before", 100), ("after", after))
    }
    comparison = compared(tmp_path, sides, runs=3)
    assert comparison.verdict.result == "inconclusive"
    assert f" µs{said}, busy" in answer_of(comparison).limits.replace(", off the path", "").replace(
        " (off the path)", ""
    )


def test_gpu_work_that_is_longer_than_the_step_explains_only_profiled_steps(tmp_path):
    comparison = compared(tmp_path, {"before": of_gpu(900, 50), "after": of_gpu(500, 900)}, unprofiled=(800.0, 700.0))
    assert comparison.explanation.profiled
    assert "profiled steps" in answer_of(comparison).because


def test_what_is_done_more_often_has_a_row_however_short(tmp_path):
    many = [event for i in range(20) for event in launch(i, "k", 1000, 200 + 1000 * i)]
    more = launch(21, "small", 1, 20300, "aten::add")
    comparison = compared(tmp_path, {"before": [step(1, 0, 90), *many], "after": [step(1, 0, 90), *many, *more]})
    row, others = changed_work(comparison, 5).rows
    assert (row.name, *row.count) == ("aten::add", 0, 1)
    assert others.name == "1 other"
    assert next_command(comparison, "tracediff compare a b").endswith("aten::add")


def test_nothing_that_no_row_shows_is_next(tmp_path):
    many = [event for i in range(20) for event in launch(i, "k", 1000, 200 + 1000 * i)]
    sides = {
        name: [step(1, 0, 90), *many, *launch(21, "small", us, 20300, "aten::add")]
        for name, us in (("before", 1), ("after", 2))
    }
    assert "aten::add" not in (next_command(compared(tmp_path, sides), "tracediff compare a b") or "")


def with_copy(stream):
    """A kernel, and a copy that runs after it or beside it."""
    copy = [
        op("aten::copy_", 5, 4, **{"Input Dims": [[9], [9]], "Input type": ["float", "float"]}),
        call("cudaMemcpyAsync", 6, 1, 2),
        memcpy("Memcpy HtoD (Pinned -> Device)", 1020 if stream == 7 else 30, 400, 2, stream=stream, bytes=36),
    ]
    return [step(1, 0, 20), *launch(0, "sgemm", 1000, 20, **MULTIPLY), *copy]


def test_what_runs_beside_other_work_is_named(tmp_path):
    comparison = compared(tmp_path, {"before": with_copy(7), "after": with_copy(9)})
    (part,) = read_path(comparison.explanation).exposed
    assert part.mostly == "mostly copy kernels"
    assert part.times.exposure == pytest.approx(-400)
    assert (
        answer_of(comparison).why
        == "Largest change: GPU work, less exposed (−400 µs: in all 1,400 → 1,400, mostly copy kernels)."
    )


def reading(waits):
    """A kernel, and another after an operator of 60 µs; the host reads a number before that, or not."""
    at, begin = (122, 184) if waits else (5, 120)
    read = [op("aten::_local_scalar_dense", 5, 117), call("cudaStreamSynchronize", 6, 115)]
    second = [
        op("aten::mm", at, 60, **MULTIPLY),
        call("cudaLaunchKernel", at + 59, 1, 2),
        kernel("sgemm", begin, 100, 2),
    ]
    return [step(1, 0, at + 65), *launch(0, "sgemm", 100, 20, **MULTIPLY), *(read if waits else []), *second]


def test_who_waits_for_the_gpu_in_each_step_is_said(tmp_path):
    comparison = compared(tmp_path, {"before": reading(waits=False), "after": reading(waits=True)})
    facts = {fact.code: fact.text for fact in comparison.explanation.facts}
    assert facts[NEW_WAIT] == "only after waits for the GPU in aten::_local_scalar_dense (1 time per step)"
    answer = answer_of(comparison)
    assert (
        "waiting for the GPU (+60.0 µs: only after does in aten::_local_scalar_dense (1 time per step))" in answer.why
    )
    assert not any("waits for the GPU" in text for text in answer.unlike)  # the sentence says it
    turned = compared(tmp_path / "turned", {"before": reading(waits=True), "after": reading(waits=False)})
    assert "only before waits" in {fact.code: fact.text for fact in turned.explanation.facts}[NEW_WAIT]


def test_waiting_for_the_gpu_has_what_the_call_takes_itself(tmp_path):
    """The call returns 20 µs after the kernel has ended: both are one cause."""
    waiting = [call("cudaStreamSynchronize", 6, 134), op("aten::mm", 145, 60, **MULTIPLY)]
    waiting += [call("cudaLaunchKernel", 204, 1, 2), kernel("sgemm", 207, 100, 2)]
    after = [step(1, 0, 210), *launch(0, "sgemm", 100, 20, **MULTIPLY), *waiting]
    answer = answer_of(compared(tmp_path, {"before": reading(waits=False), "after": after}))
    assert re.search(r"waiting for the GPU .* does in cudaStream.* and these calls themselves \(\+20\.0", answer.why)
    assert "synchronisation: " not in answer.why


@pytest.mark.parametrize("asked", [1, 3])
def test_an_operator_is_called_as_often_however_often_it_asks_the_driver(tmp_path, asked):
    def asking(number, took):
        """Eight operators of the host, each with calls of the driver, and one that launches a kernel."""
        ops = [op(f"aten::op{i}", 100 + 2_000 * i, took) for i in range(8)]
        calls = [call("cudaEventQuery", 110 + 2_000 * i + 20 * k, 10) for i in range(8) for k in range(number)]
        return [step(1, 0, 20_000), *launch(0, "sgemm", 20, 30), *ops, *calls]

    comparison = compared(tmp_path, {"before": asking(2, 500), "after": asking(asked, 1_500)})
    first = comparison.explanation.causes[0]
    assert (first.label, first.what) == ("the same operator calls on the host", "9 calls each, 3 × as long")


def test_one_kernel_that_is_added_has_the_name_of_its_operator(tmp_path):
    products = [event for i in range(5) for event in launch(i, "sgemm", 100, 50 + 100 * i, **MULTIPLY)]
    norm = launch(8, "my_norm_kernel", 300, 600, "aten::batch_norm")
    comparison = compared(
        tmp_path, {"before": [step(1, 0, 50), *products], "after": [step(1, 0, 50), *products, *norm]}
    )
    assert comparison.explanation.causes[0].label == "aten::batch_norm (norm)"


def in_parts(parts):
    """Twelve products in ``parts`` parts of the rows each, each of which is added to a sum."""
    rows, out = 64 // parts, [step(1, 0, 6000)]
    for i in range(12 * parts):
        shapes = {"Input Dims": [[rows, 64], [64, 64]], "Input type": ["float", "float"]}
        out += launch(2 * i, "sgemm", 2400 // parts, 200 + 2400 // parts * i, "aten::mm", **shapes)
        out += launch(2 * i + 1, "add", 200, 40_000 + 200 * i, "aten::add_", **MULTIPLY)
    return out


@pytest.mark.parametrize(("parts", "code"), [(4, "rewritten"), (1, "")])
def test_the_same_batch_in_parts_is_as_many_flops(tmp_path, parts, code):
    comparison = compared(tmp_path, {"before": in_parts(1), "after": in_parts(parts)})
    facts = {fact.code: fact.text for fact in comparison.explanation.facts}
    assert not any(fact.is_other_work for fact in comparison.explanation.facts)
    assert code in facts or not code
    assert "different work" not in answer_of(comparison).verdict


def test_twice_as_many_products_are_other_work(tmp_path):
    twice = [event | {"ts": event["ts"] + 70_000} for event in in_parts(1)[1:]]
    for event in twice:
        if "correlation" in event["args"]:
            event["args"] = event["args"] | {"correlation": event["args"]["correlation"] + 1000}
    comparison = compared(tmp_path, {"before": in_parts(1), "after": [step(1, 0, 80_000), *in_parts(1)[1:], *twice]})
    assert any(fact.is_other_work for fact in comparison.explanation.facts)


def allocating(returns):
    """A product whose memory is got from the driver, and given back, or not."""
    product = launch(0, "sgemm", 100, 20, at=10, **MULTIPLY)
    calls = [call("cudaMalloc", 30, 20), call("cudaFree", 60, 300)]
    return [step(1, 0, 400), *product, *(calls if returns else [])]


def test_memory_that_is_given_back_in_each_step_is_no_warm_up(tmp_path):
    comparison = compared(tmp_path, {"before": allocating(returns=False), "after": allocating(returns=True)})
    facts = {fact.code: fact.text for fact in comparison.explanation.facts}
    assert "first-calls" not in facts
    assert facts["memory-returned"].startswith("after returns memory to the driver in each step")
    both = compared(tmp_path / "both", {"before": allocating(returns=True), "after": allocating(returns=True)})
    facts = {fact.code: fact.text for fact in both.explanation.facts}
    assert "first-calls" not in facts
    assert facts["memory-returned"].startswith("each side returns memory")


def replayed(events):
    """The same kernels, launched by one replay of a graph."""
    kernels = [event for event in events if event["cat"] == "kernel"]
    of_graph = [event | {"args": event["args"] | {"correlation": 1}} for event in kernels]
    return [step(1, 0, 60), call("cudaGraphLaunch", 5, 4, 1), *of_graph]


def test_products_that_a_graph_replays_are_no_part_of_a_fused_kernel(tmp_path):
    """It lists the product's operator, whose bias it adds."""
    product = "ampere_sgemm_128x64_tn"
    eager = [
        event
        for i in range(4)
        for event in (
            *launch(2 * i, product, 900, 50 + 1000 * i, "aten::addmm", **MULTIPLY),
            *launch(2 * i + 1, "vectorized_elementwise_kernel", 90, 960 + 1000 * i, "aten::add"),
        )
    ]
    compiled = [launch(2 * i, product, 900, 50 + 940 * i) for i in range(4)]
    compiled += [launch(2 * i + 1, "triton_red_fused_add_addmm_0", 30, 955 + 940 * i) for i in range(4)]
    graph = replayed([event for events in compiled for event in events])
    comparison = compared(tmp_path, {"before": [step(1, 0, 60), *eager], "after": graph})
    groups = [[{m.name for m in side} for side in group.members] for group in comparison.gpu_time.groups]
    assert all((product in control) == (product in test) for control, test in groups), groups
    first = comparison.explanation.causes[0]
    assert first.label == "aten::add → triton_red_fused_add_addmm"
    assert first.delta_us == pytest.approx(-240)


def test_other_operators_of_one_call_are_named_instead_of_their_kernels(tmp_path):
    """A kernel becomes three of other operators between the same products."""

    def sides(*names):
        parts = [launch(0, "sgemm", 9000, 50, **MULTIPLY)]
        kernels = [(f"vectorized_elementwise_{name}", f"aten::{name}") for name in names]
        parts += [launch(i, name, 200, 9000 + 200 * i, op_name) for i, (name, op_name) in enumerate(kernels, 1)]
        parts += [launch(9, "sgemm", 9000, 10_000, **MULTIPLY)]
        module = python("nn.Module: Block_0", 0, 60, 1, module=0)
        return [step(1, 0, 70), module, *(event for events in parts for event in events)]

    comparison = compared(tmp_path, {"before": sides("gelu"), "after": sides("mul", "tanh", "add")})
    labels = [cause.label for cause in comparison.explanation.causes]
    assert labels[0] == "aten::gelu → aten::add + 2 more", labels


def test_what_the_host_no_longer_hides_leads_the_answer(tmp_path):
    added = launch(9, "reduce_argmax", 10, 284, "aten::argmax", at=182)
    comparison = compared(tmp_path, {"before": reading(waits=False), "after": [*reading(waits=True), *added]})
    parts = answer_of(comparison).because.split(" and ")
    assert "waiting for the GPU (+" in parts[0]
    assert "aten::argmax (" in parts[1]


def of_steps(host, gpu, begin):
    """Five steps of ``host`` µs, each with a kernel of ``gpu`` µs; the GPU begins with them at ``begin``."""
    events = []
    for i in range(5):
        events += [step(i + 1, i * host, host - 1), op("aten::mm", i * host, host - 2, **MULTIPLY)]
        events += [call("cudaLaunchKernel", i * host + 1, 1, i + 1), kernel("sgemm", begin + gpu * i, gpu, i + 1)]
    return events


def test_steps_that_the_gpu_works_off_faster_than_the_host_launches_them_are_not_steady(tmp_path):
    """90 µs of the GPU per step in place of 100, while the host takes 200 in place of 100."""
    sides = {"before": of_steps(100, 100, 20), "after": lambda run: of_steps(200, 90 + run, 2000)}
    comparison = compared(tmp_path, sides, runs=3)
    (fact,) = [fact for fact in comparison.explanation.facts if fact.code == BACKLOG]
    assert fact.text.startswith("not steady state: the GPU works off a queue, and completes steps in 100.0 → 91.0 µs")
    assert comparison.verdict.result == "inconclusive"
    verdict = "inconclusive: after took 9.0 % less time per step: 100.0 → 91.0 µs, not in steady state"
    assert answer_of(comparison).verdict == verdict
    assert next_command(comparison, "tracediff compare before after") == MORE_STEPS


def test_a_step_that_the_host_delays_on_both_sides_is_steady(tmp_path):
    comparison = compared(tmp_path, {"before": of_steps(100, 50, 20), "after": of_steps(200, 50, 20)})
    assert BACKLOG not in {fact.code for fact in comparison.explanation.facts}


def whole_file(launched, began, took=100, returned=None):
    """Ten products in a file without steps; the first is launched at ``launched`` and starts at ``began`` µs."""
    products = [launch(i, "sgemm", took, began + took * i, at=launched + 5 * i, **MULTIPLY) for i in range(10)]
    waits = [call("cudaStreamSynchronize", launched + 60, returned - launched - 60)] if returned else []
    return [event for events in products for event in events] + waits


def test_what_passes_before_the_first_event_of_a_file_is_no_work_of_the_program(tmp_path):
    """On one side the GPU still runs earlier work when the recording starts, and each product takes 2 µs longer."""
    comparison = compared(tmp_path, {"before": whole_file(10, 5000), "after": whole_file(10, 20, took=102)})
    explanation, answer = comparison.explanation, answer_of(comparison)
    labels = [cause.label for cause in explanation.causes]
    assert labels[0] == "waiting for the first GPU event"
    assert explanation.causes[0].delta_us == pytest.approx(-4980, abs=2)
    assert "over the whole file: 5,990 → 1,030 µs, of which 4,989 → 9 µs is waiting for" in answer.verdict
    assert any("the GPU runs earlier work, or the profiler starts" in text for text in answer.unlike)


def test_other_code_does_not_hide_what_passes_before_the_first_event(tmp_path):
    before, after = ([op(f"aten::{name}{i}", 100 + 10 * i, 8) for i in range(60)] for name in ("one", "other"))
    larger = op("aten::mm", 800, 8, **{"Input Dims": [[999, 999], [999, 999]], "Input type": ["float", "float"]})
    sides = {"before": [*whole_file(10, 5000), *before], "after": [*whole_file(10, 20), *after, larger]}
    verdict = answer_of(compared(tmp_path, sides)).verdict
    assert ", with other operator calls, such as aten::other0, without aten::one0, of which 4,989 → 9 µs" in verdict


def test_what_the_program_does_comes_before_waiting_for_the_first_event(tmp_path):
    comparison = compared(tmp_path, {"before": whole_file(10, 20), "after": whole_file(10, 5000, took=130)})
    labels = [cause.label for cause in comparison.explanation.causes]
    assert labels == ["aten::mm (gemm)", "waiting for the first GPU event"]
    assert answer_of(comparison).because.startswith("Because of aten::mm (gemm) (+")


def test_a_call_that_waits_for_the_first_event_of_a_file_is_the_same_wait(tmp_path):
    """The host waits for it in a call, instead of running ahead."""
    sides = {"before": whole_file(10, 5000, returned=5600), "after": whole_file(10, 20, returned=620)}
    comparison = compared(tmp_path, sides)
    waited = [cause.delta_us for cause in comparison.explanation.causes if cause.label.startswith("waiting for the f")]
    assert waited == [pytest.approx(-4980, abs=2)]


def test_steps_wait_for_no_first_event(tmp_path):
    sides = {"before": [step(1, 0, 70), *whole_file(10, 5000)], "after": [step(1, 0, 70), *whole_file(10, 20)]}
    labels = [cause.label for cause in compared(tmp_path, sides).explanation.causes]
    assert "waiting for the first GPU event" not in labels


@pytest.mark.parametrize(
    ("kernel_name", "is_known"), [("ampere_sgemm_{}x64_tn", True), ("nvjet_sm90_tst_{}x64", False)]
)
def test_persistent_kernels_do_not_tell_their_tiles(tmp_path, kernel_name, is_known):
    """As many blocks of twice the rows: twice the work only if each block computes one tile."""
    sides = {
        name: [step(1, 0, 60), *launch(0, kernel_name.format(rows), 8 * rows, 50)]
        for name, rows in (("before", 128), ("after", 256))
    }
    (cause,) = compared(tmp_path, sides).explanation.causes
    assert (cause.amount is not None and cause.amount.unit == "GEMM tiles") == is_known


def backward(recomputes):
    """Products of three sizes, as a backward pass calls them: without shapes; the first computes something again."""
    events, kernels = [], ["sgemm_down", "sgemm_up", "sgemm_out"] * 2
    for i, name in enumerate(kernels):
        inner = [op("aten::gelu", 100 * i + 5, 10)] if recomputes and not i % 3 else []
        events += [op("AddmmBackward0", 100 * i, 90), *inner, op("aten::mm", 100 * i + 20, 60)]
        events += [call("cudaLaunchKernel", 100 * i + 30, 2, i + 1), kernel(name, 1000 + 100 * i, 100, i + 1)]
    return [step(1, 0, 600), *events]


def test_what_a_call_holds_beside_its_product_gives_it_no_other_partner(tmp_path):
    comparison = compared(tmp_path, {"before": backward(recomputes=False), "after": backward(recomputes=True)})
    for group in comparison.gpu_time.groups:
        control, test = ({m.name for m in side} for side in group.members)
        assert control == test


def passes(again):
    """Two products of the forward pass, and two of the backward pass, in which those of the forward pass run again."""
    events = [step(1, 0, 400)]
    for i in range(2):
        forward = f"sgemm_fwd_{'ab'[i]}", 100
        events += launch(i, *forward, 500 + 100 * i, "aten::addmm", at=10 + 20 * i, host=15)
        events += [op("AddmmBackward0", 100 + 100 * i, 80)]
        if again:
            events += launch(10 + i, *forward, 1000 + 200 * i, "aten::addmm", at=105 + 100 * i, host=15)
        events += launch(20 + i, "sgemm_bwd", 100, 1100 + 200 * i, "aten::mm", at=130 + 100 * i, host=15)
    return events


@pytest.mark.parametrize(("sides", "words"), [((False, True), "added in"), ((True, False), "removed from")])
def test_what_runs_again_in_another_phase_is_said(tmp_path, sides, words):
    comparison = compared(
        tmp_path, {name: passes(again) for name, again in zip(("before", "after"), sides, strict=True)}
    )
    first = comparison.explanation.causes[0]
    assert first.label == "aten::addmm (gemm)"
    assert f"{words} the backward pass" in {reason.text for reason in first.reasons if reason.code == "phase"}


def test_kernels_of_an_operator_that_does_work_of_two_families_are_named_by_theirs(tmp_path):
    def backward(took):
        events, begin = [step(1, 0, 20)], 100
        for number in range(8):
            name, ns = ("volta_sgemm_128x64_nn", 100) if number % 2 else ("implicit_convolve_sgemm", took)
            events += launch(number, name, ns, begin, "aten::convolution_backward")
            begin += ns
        return events

    comparison = compared(tmp_path, {"before": backward(100), "after": backward(600)})
    assert [cause.label for cause in comparison.explanation.causes] == ["conv kernels of aten::convolution_backward"]


def test_what_grew_is_not_told_as_an_exception_of_the_side_that_has_less(tmp_path):
    """Each step of one side waits before an operator; the other did so once, for a shorter time."""

    def side(waits_us):
        events, begin = [], 0
        for k, wait_us in enumerate(waits_us, 1):
            ops = [op("aten::relu", begin + wait_us + 110 * i, 100) for i in range(12)]
            events += [step(k, begin, wait_us + 1320), *ops]
            begin += wait_us + 1320
        return events

    answer = answer_of(compared(tmp_path, {"before": side([0, 0, 0, 2_000, 0, 0]), "after": side([8_000] * 6)}))
    assert "up to 8,000 µs between calls in after, before aten::relu" in answer.because
    assert "before takes" not in answer.because


@pytest.mark.parametrize(("relu_us", "is_chance"), [(1300, True), (2500, False)], ids=["a third", "more than twice"])
def test_the_pace_of_the_same_calls_may_be_chance_whatever_the_gpu_does(tmp_path, relu_us, is_chance):
    def side(host_us, kernel_us):
        kernel_of_step = launch(0, "relu", kernel_us, host_us + 20, "aten::mm", 10, host_us)
        return [step(1, 0, host_us + 30), op("aten::relu", 0, host_us), *kernel_of_step]

    answer = answer_of(compared(tmp_path, {"before": side(1000, 10), "after": side(relu_us, 200)}))
    assert ("may vary this much from run to run" in answer.evidence) == is_chance
    assert ("ecause of " in answer.because) != is_chance


def test_what_the_host_computes_on_one_side_only_is_said_to_be_there(tmp_path):
    def side(on_host):
        product = launch(0, "sgemm", 50, 2_000, "aten::mm", 10, 1_900)
        moved = [op("aten::topk", 0, 1_800)] if on_host else launch(1, "topk", 20, 40, "aten::topk", 30, 0)
        return [step(1, 0, 2_100), *product, *moved]

    comparison = compared(tmp_path, {"before": side(False), "after": side(True)})
    (reason,) = [r for cause in comparison.explanation.causes for r in cause.reasons if r.code == "device"]
    assert reason.text == "computed on the GPU in before, on the host in after"
    assert reason.text in answer_of(comparison).because


def test_rows_that_are_not_significant_are_one_row_of_a_screen(tmp_path):
    """One operator takes longer in every run, three others now longer and now shorter, and all of them more in one."""
    noise = (0, 900, 100), (900, 0, 500), (300, 400, 900)

    def side(longer):
        def events(run):
            lengths = (5_000 + longer, *(3_000 + ns * (1.5 if longer else 1) for ns in noise[run]))
            kinds = zip(
                ("mm", "softmax", "gelu", "native_layer_norm"), accumulate((0, *lengths)), lengths, strict=False
            )
            return [step(1, 0, sum(lengths)), *(op(f"aten::{name}", start, us) for name, start, us in kinds)]

        return events

    explanation = compared(tmp_path, {"a": side(0), "b": side(2_000)}, runs=3).explanation
    every, some = explanation_table(explanation), explanation_table(explanation, 8)
    assert [line.label.split(" (")[0] for line in every.lines[:4]] == [
        "aten::mm",
        "aten::native_layer_norm",
        "aten::gelu",
        "aten::softmax",
    ]
    assert [line.label for line in some.lines] == ["aten::mm (gemm)", "3 rows, not significant"]
    not_significant = [cause for cause in explanation.causes if is_unclear(cause)]
    assert some.lines[1].delta_us == pytest.approx(sum(cause.delta_us for cause in not_significant), abs=50)
    assert sum(line.delta_us for line in some.lines) == pytest.approx(some.total.delta_us)


def test_what_is_larger_than_what_is_certain_is_said_not_to_be_significant(tmp_path):
    """One operator is new, for 0.3 ms, another takes 2 ms longer on average, now less and now more."""

    def side(added, noise):
        def events(run):
            others = [op("aten::_softmax", 0, noise[run]), *([op("aten::tanh", noise[run], added)] if added else [])]
            return [step(1, 0, added + noise[run]), *others]

        return events

    sides = {"a": side(0, (3_000, 5_000, 4_000)), "b": side(300, (9_000, 3_500, 6_000))}
    answer = answer_of(compared(tmp_path, sides, runs=3))
    assert answer.because.startswith("Work that differs, on the critical path: aten::tanh (pointwise) (+300 µs")
    assert re.search(r" of which aten::_softmax \(softmax\) \+[\d,]+, not significant$", answer.not_explained)
