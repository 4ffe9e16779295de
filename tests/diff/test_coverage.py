"""How much of the step's change the findings account for together, and what holds the rest."""

from pathlib import Path

import pytest
import traces
from build_trace import call, document, kernel, op, step, write

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.report.text import coverage_line

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def compared(control, test):
    return compare_sets(*load_sets([str(control), str(test)]))


def sample(name, control, test):
    return compared(SAMPLES / name / control, SAMPLES / name / test)


def host_trace(path, mm, wrapper):
    """Two steps of 1,000 µs: a product of ``mm`` µs, and a call of compiled code that takes ``wrapper`` µs itself."""
    events = []
    for number, start in enumerate((0, 1000)):
        events += [step(number, start, 1000), op("aten::mm", start + 10, mm)]
        if wrapper:
            events.append(op("Torch-Compiled Region: 0/0", start + 500, wrapper + 20))
            events.append(op("aten::relu", start + 505, 20))
    return write(path, document(events))


def gpu_trace(path, first, second):
    """Steps in which the GPU works for ``first`` + ``second`` µs in two kernels, and is idle for 50 µs."""
    events = []
    length = first + second + 50
    for number, start in enumerate((0, length)):
        events.append(step(number, start, length))
        at = start + 20
        for k, (name, duration) in enumerate((("first_gemm", first), ("second_softmax", second))):
            correlation = 10 * number + k + 1
            events += [
                op(f"aten::{name}", start + 10 * k, 8),
                call("cudaLaunchKernel", start + 10 * k + 1, 4, correlation=correlation),
                kernel(name, at, duration, correlation=correlation),
            ]
            at += duration
    return write(path, document(events))


def test_findings_that_hold_all_of_the_change_close():
    comparison = sample("ensemble", "loop", "vmap")
    found = comparison.coverage
    assert found.change_us == comparison.us(comparison.step_time.delta)
    assert found.rest_us == pytest.approx(0, abs=1e-6)
    assert coverage_line(comparison) == "All together: −1.60 of −1.60 ms"


def test_the_calls_of_compiled_code_are_a_finding_without_a_gpu(tmp_path):
    comparison = compared(host_trace(tmp_path / "a.json", 200, 0), host_trace(tmp_path / "b.json", 200, 300))
    (found,) = [f for f in comparison.findings if f.code == "compiled-calls"]
    assert (found.delta_us, found.weight_us) == (300, 300)
    assert [(e.name, e.test_count, e.test_us) for e in found.evidence] == [("Torch-Compiled Region: 0/0", 1, 300)]


def test_graph_breaks_cost_what_their_calls_take():
    comparison = sample("graph-breaks", "eager", "compile")
    assert comparison.findings[0].code == "compiled-calls"
    small = 0.02 * comparison.us(comparison.step_time.control)
    assert abs(comparison.coverage.rest_us) < small


@traces.needs_traces
def test_the_calls_of_compiled_code_are_no_finding_beside_a_gpu():
    comparison = compared(traces.FOLDER / "hta_control", traces.FOLDER / "tinylm_compile")
    assert any(op.raw_name.startswith("CompiledFunction") for op in comparison.ops)
    assert "compiled-calls" not in {f.code for f in comparison.findings}


@traces.needs_traces
def test_the_rest_is_named_where_one_state_holds_it():
    comparison = compared(traces.FOLDER / "bertsmall_h100", traces.FOLDER / "bertsmall_mi300")
    found = comparison.coverage
    assert found.largest_us == pytest.approx(found.rest_us, rel=0.2)
    assert coverage_line(comparison) == "All together: −466.6 of −418.8 µs; not in them: idle: synchronising (+42.8 µs)"


@traces.needs_traces
def test_outlier_steps_that_are_no_cause_stay_in_the_states():
    """Step 9 of the test side is an outlier, and 7.7 ms of the change."""
    comparison = compared(traces.FOLDER / "resnet50_workers0", traces.FOLDER / "resnet50_workers4")
    assert coverage_line(comparison) == "All together: −44.4 of −42.7 ms"


def test_outlier_steps_that_are_the_cause_count_once(tmp_path):
    def looped(path, last):
        events, start = [], 0
        for number, length in enumerate((1000, 1000, 1000, 1000, 1000, last)):
            events += [step(number, start, length), op("aten::mm", start + 10, 200)]
            start += length
        return write(path, document(events))

    comparison = compared(looped(tmp_path / "a.json", 1000), looped(tmp_path / "b.json", 9000))
    assert [f.code for f in comparison.findings if f.weight_us] == ["outlier-step"]
    assert comparison.coverage.found_us == pytest.approx(comparison.coverage.change_us)


@traces.needs_traces
@pytest.mark.parametrize(
    ("control", "test"),
    [
        ("timesformer_h100", "timesformer_mi300"),
        ("bertsmall_h100", "bertsmall_mi300"),
        ("hta_control", "hta_test"),
        ("resnet50_workers0", "resnet50_workers0_repeat"),
    ],
)
def test_the_parts_close_in_the_real_pairs(control, test):
    comparison = compared(traces.FOLDER / control, traces.FOLDER / test)
    found = comparison.coverage
    assert found.found_us + found.rest_us == pytest.approx(found.change_us)
    if found.largest:
        assert found.largest_us * found.rest_us >= 0.5 * found.rest_us**2
    else:
        assert found.largest_us == 0


@traces.needs_traces
def test_work_without_a_finding_is_named_as_a_whole():
    """The GPU of the one is slower throughout, which a step that waits for the host does not show."""
    found = compared(traces.FOLDER / "falconsai_h100", traces.FOLDER / "falconsai_mi300").coverage
    assert found.largest == "GPU work"
    assert found.largest_us == pytest.approx(found.rest_us, rel=0.1)


def test_idle_time_that_work_filled_is_part_of_the_change_of_the_work(tmp_path):
    """A step of the host's: the kernel takes 300 µs more of it, and the GPU is idle for 300 µs less."""

    def hosted(path, length):
        events = []
        for number, start in enumerate((0, 1000)):
            events += [step(number, start, 1000), op("aten::mm", start + 1, 8), op("aten::item", start + 100, 890)]
            events.append(call("cudaLaunchKernel", start + 2, 4, correlation=number + 1))
            events.append(kernel("gemm", start + 50, length, correlation=number + 1))
        return write(path, document(events))

    comparison = compared(hosted(tmp_path / "a.json", 100), hosted(tmp_path / "b.json", 400))
    assert comparison.step_time.delta == 0
    assert comparison.coverage is None or comparison.coverage.found_us == pytest.approx(0)


def test_work_of_two_findings_counts_once(tmp_path):
    """Each kernel is a finding of 100 µs: both are 200 µs, the change of the step."""
    comparison = compared(gpu_trace(tmp_path / "a.json", 400, 400), gpu_trace(tmp_path / "b.json", 500, 500))
    assert [f.delta_us for f in comparison.findings] == [100, 100]
    assert (comparison.coverage.found_us, comparison.coverage.change_us) == (200, 200)


def test_without_a_change_there_is_nothing_to_account_for(tmp_path):
    control = host_trace(tmp_path / "a.json", 200, 0)
    comparison = compared(control, host_trace(tmp_path / "b.json", 200, 0))
    assert comparison.coverage is None
    assert coverage_line(comparison) is None
