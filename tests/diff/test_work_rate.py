"""efficiency: equal work at another rate, on traces whose answer can be derived by hand and on the real pairs."""

import pytest
import traces
from build_trace import call, document, kernel, op, step, write

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.load_options import LoadOptions

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
UNKNOWN = {"deviceProperties": [{"id": 0, "name": "Some GPU"}]}


def product(start, ns, number, size=1024, times=1):
    args = {"Input Dims": [[size, size], [size, size]], "Input type": ["c10::BFloat16"] * 2}
    events = []
    for k in range(times):
        begin, correlation = start + 100 * k, number * 100 + k
        events += [op("aten::mm", begin, 9, **args), call("cudaLaunchKernel", begin + 1, 1, correlation=correlation)]
        events += [kernel("nvjet_tst_128x64", begin + 20, ns, correlation=correlation)]
    return events


def found(folder, control, test, meta=H100, tables=("rates",)):
    paths = [
        write(folder / name / "trace.json", document([step(1, 0, 5000), *events], **meta))
        for name, events in (("control", control), ("test", test))
    ]
    comparison = compare_sets(*load_sets([str(p) for p in paths], LoadOptions(tables=tables)))
    return [f for f in comparison.findings if f.code == "efficiency"]


def test_the_same_product_at_another_part_of_peak(tmp_path):
    peak_us = 2 * 1024**3 / 989.4e12 * 1e6
    (finding,) = found(tmp_path, product(0, peak_us / 0.6, 1, times=3), product(0, peak_us / 0.4, 1, times=3))
    assert finding.title == "matrix product in bfloat16 at 60 → 40 % of peak for equal work (one run)"
    assert finding.delta_us == pytest.approx(3 * peak_us * (1 / 0.4 - 1 / 0.6), rel=1e-3)
    (evidence,) = finding.evidence
    assert (evidence.name, evidence.control_count) == ("1024×1024 @ 1024×1024: 594 → 396 TFLOP/s", 3)


def test_an_unknown_device_has_rates_and_no_part_of_a_peak(tmp_path):
    (finding,) = found(tmp_path, product(0, 4, 1), product(0, 8, 1), UNKNOWN)
    assert finding.title == "matrix product in bfloat16 at 537 → 268 TFLOP/s for equal work (one run)"
    assert "peak is not known" in finding.detail


def test_more_calls_at_the_same_rate_are_no_change_of_efficiency(tmp_path):
    assert not found(
        tmp_path,
        product(0, 4, 1) + product(1000, 2, 2, size=64, times=9),
        product(0, 4, 1, times=9) + product(1000, 2, 2, size=64),
    )


def test_nothing_is_told_of_other_work_or_without_the_table(tmp_path):
    assert not found(tmp_path / "a", product(0, 4, 1), product(0, 8, 1, size=512))
    assert not found(tmp_path / "b", product(0, 4, 1), product(0, 8, 1), tables=())


def test_the_other_way_round_it_is_the_other_way_round(tmp_path):
    a, b = product(0, 4, 1, times=2), product(0, 8, 1, times=2)
    (forward,), (backward,) = found(tmp_path / "1", a, b), found(tmp_path / "2", b, a)
    assert forward.delta_us == -backward.delta_us
    assert forward.weight_us == -backward.weight_us


def real(control, test):
    comparison = compare_sets(
        *load_sets([str(traces.FOLDER / control), str(traces.FOLDER / test)], LoadOptions(tables=("rates",), jobs=1))
    )
    return [f.title for f in comparison.findings if f.code == "efficiency"]


@traces.needs_traces
@pytest.mark.parametrize(
    "pair", [("resnet50_workers0", "resnet50_workers4"), ("transformer_h100_run1", "transformer_h100_run2")]
)
def test_two_runs_of_one_program_are_as_efficient(pair):
    assert real(*pair) == []


@traces.needs_traces
def test_on_two_devices_rates_are_compared():
    assert "attention in bfloat16 at 46.6 → 15.3 TFLOP/s for equal work (one run)" in real(
        "falconsai_h100", "falconsai_mi300"
    )
