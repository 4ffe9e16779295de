"""Rates on traces whose answer is known by hand, and on the real ones: nothing is lost, nothing is counted twice,
nothing beats its device.
"""

import json

import numpy as np
import pytest
import traces
from build_trace import call, document, kernel, memcpy, op, step, write
from hypothesis import given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events

from tracediff.aggregate.averages import table_average
from tracediff.engine import LoadOptions, load_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.perf_model.device_peaks import DEVICES, device_named, device_of
from tracediff.profile.tables.rates import RATES, part_of_peak

COLUMNS = [c.name for c in RATES.columns]
H100 = "NVIDIA H100 80GB HBM3"


def inputs(*dims, types=None, values=None):
    """Arguments of an operator: tensors by their sizes, None for others."""
    types = types or ["float" if d is not None else "Scalar" for d in dims]
    args = {"Input Dims": [d if d is not None else [] for d in dims], "Input type": types}
    return args | ({"Concrete Inputs": values} if values else {})


def rates_of(folder, events, **meta):
    """key → column → value, of the one step."""
    file = TraceFile(str(write(folder / "trace.json", document(events, **meta))))
    table = profile_file(file, tables=["rates"]).tables["rates"]
    return {
        table.keys[k]: dict(zip(COLUMNS, v, strict=True))
        for k, v in zip(table.key.tolist(), table.values.tolist(), strict=True)
    }


def launched(start, ns, correlation, name="gemm", make=kernel, **args):
    return [
        call("cudaLaunchKernel", start, 1, correlation=correlation),
        make(name, start + 50, ns, correlation=correlation, **args),
    ]


@pytest.mark.parametrize("spelled", ["c10::BFloat16", "c10::bfloat16", "bfloat16"])
def test_dtypes_are_known_in_every_spelling(tmp_path, spelled):
    events = [
        step(1, 0, 100),
        op("aten::mm", 1, 40, **inputs([2, 4], [4, 8], types=[spelled] * 2)),
        *launched(3, 7, 1),
    ]
    ((key, row),) = rates_of(tmp_path, events).items()
    assert key == ("matrix product", "2×4 @ 4×8", "bfloat16")
    assert row["bytes"] == 2 * (2 * 4 + 4 * 8 + 2 * 8)


def test_an_operator_inside_of_another_is_charged_alone(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::linear", 1, 40, **inputs([1, 10, 4], [8, 4], [8])),
        op("aten::addmm", 2, 20, **inputs([8], [10, 4], [4, 8], None, None)),
        *launched(3, 7, 1, "ampere_sgemm_128x64_tn"),
        *launched(6, 2, 2, "splitKreduce_kernel"),
        *launched(30, 5, 3, "elementwise_kernel"),  # the outer operator's own: of no formula
    ]
    assert rates_of(tmp_path, events) == {
        ("matrix product", "10×4 @ 4×8", "float32"): {
            "time": 9000,
            "calls": 1,
            "flop": 2 * 10 * 4 * 8,
            "flop_time": 9000,
            "bytes": 4 * (40 + 32 + 80),
            "bytes_time": 9000,
            "matrix": 0,
            "vector": 9000,
        },
        ("aten::linear", "", ""): {
            "time": 5000,
            "calls": 1,
            "flop": 0,
            "flop_time": 0,
            "bytes": 0,
            "bytes_time": 0,
            "matrix": 0,
            "vector": 0,
        },
    }


def test_a_helper_inside_of_attention_keeps_the_attention_charged(tmp_path):
    q = [2, 8, 4, 16]  # batch, positions, heads, size
    values = ["", "", "", "", "", "8", "8", "0.", "True", "False", "0.25"]
    events = [
        step(1, 0, 100),
        op(
            "aten::_flash_attention_forward",
            1,
            40,
            **inputs(q, q, q, None, None, None, None, None, None, None, None, values=values),
        ),
        op("aten::zero_", 2, 5, **inputs([1])),
        *launched(3, 1, 1, "fill"),
        *launched(10, 30, 2, "flash_fwd_kernel<cutlass::half_t>"),
    ]
    found = rates_of(tmp_path, events)
    assert found["attention", "q 2×4×8×16, causal", "float32"]["flop"] == 2 * 4 * (8 * 9 // 2) * 2 * (16 + 16)
    assert found["aten::zero_", "1", "float32"]["bytes"] == 4


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add", inputs([8, 1], [1, 4], None), 4 * (8 + 4 + 32)),
        ("add_", inputs([8, 4], [1, 4], None), 4 * (32 + 4 + 32)),
        ("eq", inputs([8, 4], None), 4 * 32 + 32),
        ("copy_", inputs([8, 4], [8, 4], None, types=["c10::BFloat16", "float", "Scalar"]), 2 * 32 + 4 * 32),
        ("fill_", inputs([8, 4], None), 4 * 32),
        ("gelu", inputs([8, 4], types=["c10::Half"]), 2 * 64),
        ("mul", inputs([8, 4], [], types=["c10::Half", "double"]), 2 * 64 + 8),
        ("mul", inputs([8, 4], [], types=["long int", "double"]), None),  # the default dtype
        ("exp", inputs([8, 4], types=["long int"]), None),
        ("add", inputs([8, 4], [8, 4], types=["c10::Half", "c10::BFloat16"]), None),
        ("add", {"Input Dims": [[8, 4], [4]]}, None),
        (
            "add",
            inputs([8, 4], [8, 4]) | {"Input Strides": [[4, 1], [0, 1]]},
            4 * (32 + 4 + 32),
        ),  # expanded: eight times the same four
        (
            "_softmax",
            inputs([8, 4], None, None, types=["c10::Half", "Scalar", "Scalar"], values=["", "-1", "False"]),
            2 * 64,
        ),
        (
            "_softmax",
            inputs([8, 4], None, None, types=["c10::Half", "Scalar", "Scalar"], values=["", "-1", "True"]),
            None,
        ),
        (
            "native_layer_norm",
            inputs([8, 4], None, [4], [4], types=["c10::Half", "ScalarList", "float", "float"]),
            2 * 64 + 4 * 8,
        ),
    ],
)
def test_bytes_are_inputs_and_result_as_far_as_the_trace_tells(tmp_path, name, args, expected):
    (row,) = rates_of(tmp_path, [step(1, 0, 100), op(f"aten::{name}", 1, 40, **args), *launched(3, 7, 1)]).values()
    assert (row["bytes"], row["bytes_time"], row["flop_time"]) == (
        (expected, 7000, 0) if expected is not None else (0, 0, 0)
    )


def test_what_is_not_recorded_is_unknown_and_keeps_its_time(tmp_path):
    x, w = [2, 3, 8, 8], [4, 3, 3, 3]
    without_stride = inputs(x, w, None, None, None, None, None, None, None)
    events = [
        step(1, 0, 500),
        op("aten::cudnn_convolution", 1, 9, **without_stride),
        *launched(2, 5, 1),
        op("aten::mm", 11, 9),
        *launched(12, 6, 2),
        op("aten::mm", 21, 9, **inputs([3, 4], [5, 6])),
        *launched(22, 7, 3),
        *launched(31, 8, 4, "ncclKernel_AllReduce"),
        op("aten::copy_", 41, 9, **inputs([8], [8], None)),
        *launched(42, 9, 5, "Memcpy HtoD (Pageable -> Device)", make=memcpy),
    ]
    found = rates_of(tmp_path, events)
    assert {key: row["time"] for key, row in found.items()} == {
        ("convolution", "2×3×8×8 * 4×3×3×3", "float32"): 5000,
        ("matrix product", "shapes not recorded", ""): 6000,
        ("matrix product", "shapes not recorded", "float32"): 7000,
        ("no operator: communication", "", ""): 8000,
        ("aten::copy_", "", ""): 9000,
    }
    assert all(row["flop_time"] == row["bytes_time"] == 0 for row in found.values())


def test_a_convolution_without_recorded_stride_is_told_by_its_backward(tmp_path):
    x, w, grad = [2, 3, 8, 8], [4, 3, 3, 3], [2, 4, 4, 4]
    none = [None] * 7
    types = ["GenericList", "float", "float", *["GenericList"] * 7]
    events = [
        step(1, 0, 500),
        op("aten::cudnn_convolution", 1, 9, **inputs(x, w, *none)),
        *launched(2, 5, 1),
        op("aten::cudnn_convolution_backward", 11, 29, **inputs(x, grad, w, *none)),
        op("aten::cudnn_convolution_backward_input", 12, 9, **inputs(None, grad, w, *none, types=types)),
        *launched(13, 6, 2, "volta_scudnn_128x64_stridedB_splitK_medium_nn_v0"),
        op("aten::cudnn_convolution_backward_weight", 22, 9, **inputs(None, grad, x, *none, types=types)),
        *launched(23, 7, 3, "void cudnn::winograd_nonfused::winogradWgradDelta4x4<float, float>"),
    ]
    flop = 2 * 2 * 16 * 4 * 3 * 9
    shapes = "2×3×8×8 * 4×3×3×3 → 4×4"
    assert {
        key[:2]: (row["flop"], row["flop_time"], row["vector"]) for key, row in rates_of(tmp_path, events).items()
    } == {
        ("convolution", shapes): (flop, 5000, 0),
        ("convolution backward", f"{shapes} of input"): (flop, 6000, 6000),
        ("convolution backward", f"{shapes} of weight"): (flop, 7000, 0),  # Winograd: neither unit's peak applies
    }


def test_without_a_gpu_time_is_that_of_the_operator_and_what_it_calls(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::linear", 0, 50, **inputs([2, 3], [4, 3])),
        op("aten::mm", 10, 30, **inputs([2, 3], [3, 4])),
        op("aten::empty", 20, 5),
    ]
    found = rates_of(tmp_path, events)
    assert {key: row["time"] for key, row in found.items()} == {
        ("aten::linear", "", ""): 20_000,
        ("matrix product", "2×3 @ 3×4", "float32"): 30_000,
    }


@pytest.mark.parametrize(
    "text",
    [
        "[[2,3],[3",
        '{"a": 1}',
        "[[2, -3], [3, 4]]",
        "[[2, 1e400], [3, 4]]",
        '[["2", 3], [3, 4]]',
        "[" * 5000,
        f"[[{10**40}, 3], [3, 4]]",
    ],
)
def test_damaged_sizes_are_unknown(tmp_path, text):
    ((key, row),) = rates_of(
        tmp_path, [step(1, 0, 100), op("aten::mm", 1, 40, **{"Input Dims": text}), *launched(3, 7, 1)]
    ).items()
    assert (key, row["flop_time"]) == (("matrix product", "shapes not recorded", ""), 0)


def test_a_call_that_copies_first_counts_once_at_its_work(tmp_path):
    rows = rates_of(
        tmp_path,
        [
            step(1, 0, 100),
            op("aten::add", 1, 40, **inputs([3, 4], [3, 4])),
            *launched(3, 7, 1, "Memcpy HtoD (Pageable -> Device)", memcpy),
            *launched(13, 7, 2, "add"),
        ],
    )
    assert {key: (row["calls"], row["bytes"], row["time"]) for key, row in rows.items()} == {
        ("aten::add", "", ""): (0, 0, 7_000),
        ("aten::add", "3×4", "float32"): (1, 3 * 12 * 4, 7_000),
    }


def test_sizes_beyond_belief_do_not_overflow(tmp_path):
    (row,) = rates_of(
        tmp_path,
        [step(1, 0, 100), op("aten::mm", 1, 40, **inputs([1 << 40, 1 << 40], [1 << 40, 1 << 40])), *launched(3, 7, 1)],
    ).values()
    assert (row["flop"], row["flop_time"], row["bytes_time"]) == (0, 0, 0)


@examples(60)
@given(events=trace_events(), gpu=st.booleans())
def test_times_sum_to_the_kernel_account_or_to_self_times(tmp_path, events, gpu):
    events = [e for e in events if gpu or e["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset")]
    closes(profile_file(TraceFile(str(write(tmp_path / "trace.json", document(events)))), tables=["rates"]))


@traces.needs_traces
@pytest.mark.parametrize("name", traces.NAMES)
def test_times_of_real_traces_close_and_no_part_of_a_peak_is_above_it(name):
    (loaded,) = load_sets([str(traces.FOLDER / name)], LoadOptions(tables=("rates",), jobs=1))
    (profile,) = loaded.profiles
    closes(profile)
    rows = table_average(loaded, "rates").rows
    for key, values in rows.items():
        part = part_of_peak(key, dict(zip(COLUMNS, values, strict=True)), profile.origin.gpus)
        assert part is None or 0 <= part <= 1, key


def closes(profile):
    work = profile.kernels if profile.has_gpu else profile.host_work
    table = profile.tables["rates"]
    steps = len(profile.step_numbers)
    inside = work.step >= 0
    whole = np.bincount(work.step[inside], weights=work.total_ns[inside], minlength=steps)
    assert np.bincount(table.step, weights=table.values[:, 0], minlength=steps).tolist() == whole.tolist()
    columns = dict(zip(COLUMNS, table.values.T, strict=True))
    assert (columns["flop_time"] <= columns["time"]).all()
    assert (columns["bytes_time"] <= columns["time"]).all()
    assert (columns["matrix"] + columns["vector"] <= columns["flop_time"]).all()


@traces.needs_traces
def test_resnet50_on_32_images_is_three_times_its_forward_pass_less_the_gradient_of_the_images():
    (loaded,) = load_sets([str(traces.trace("resnet50_workers0"))], LoadOptions(tables=("rates",), jobs=1))
    table = table_average(loaded, "rates")
    denominator, rows = table.denominator, table.rows
    total = sum(values[COLUMNS.index("flop")] for values in rows.values()) / denominator
    stem = 2 * 32 * 112 * 112 * 64 * 3 * 7 * 7
    forward = (
        sum(v[COLUMNS.index("flop")] for k, v in rows.items() if k[0] == "convolution") / denominator
        + 2 * 32 * 2048 * 1000
    )
    assert total == 3 * forward - stem
    assert forward / 32 / 2 == pytest.approx(4.09e9, rel=0.01)  # multiply-adds of an image, as the model is known for


@traces.needs_traces
def test_two_vendors_of_one_model_have_the_same_work():
    work = []
    for name in ("timesformer_h100", "timesformer_mi300"):
        (loaded,) = load_sets([str(traces.trace(name))], LoadOptions(tables=("rates",), jobs=1))
        table = table_average(loaded, "rates")
        denominator, rows = table.denominator, table.rows
        work.append(
            {key: (values[1] / denominator, values[2] / denominator) for key, values in rows.items() if values[2]}
        )
    assert work[0] == work[1]
    assert sum(flop for _, flop in work[0].values()) == pytest.approx(8.977e12, rel=1e-4)


def attained(dtype, values, gpu=H100):
    return part_of_peak(("", "", dtype), dict(zip(COLUMNS, values, strict=True)), (gpu,))


def test_a_part_of_a_peak_needs_a_known_device_dtype_and_units():
    def row(**columns):
        return [columns.get(name, 0) for name in COLUMNS]

    arithmetic, traffic = {"flop": 494_700_000, "flop_time": 1000}, {"bytes": 1_675_000, "bytes_time": 1000}
    assert attained("bfloat16", row(**arithmetic)) == pytest.approx(0.5)
    assert attained("bfloat16", row(**traffic)) == pytest.approx(0.5)
    fast = row(time=1000, calls=1, **arithmetic, **traffic)
    assert attained("bfloat16", fast) == pytest.approx(0.5)
    assert attained("bfloat16", fast, "AMD Radeon Graphics") is None
    assert attained("int32", fast, "AMD Radeon Graphics") is None
    assert attained("float32", row(**arithmetic)) is None  # TF32 or not?
    assert attained("float32", fast) is None
    on_matrix = row(time=1000, calls=1, flop=247_350_000, flop_time=1000, matrix=1000)
    assert attained("float32", on_matrix) == pytest.approx(0.5)
    on_vector = row(time=1000, calls=1, flop=33_450_000, flop_time=1000, vector=1000)
    assert attained("float32", on_vector) == pytest.approx(0.5)
    more_than_the_peak = row(flop=10**12, flop_time=1000, vector=1000)  # not by these operations
    assert attained("float32", more_than_the_peak) is None


def test_a_name_is_one_device_or_none():
    for name in (
        H100,
        "NVIDIA H200",
        "NVIDIA L4",
        "NVIDIA L40S",
        "Tesla T4",
        "AMD Instinct MI300X VF",
        "NVIDIA A100-SXM4-80GB",
        "Tesla V100-SXM2-16GB",
    ):
        assert device_named(name) in DEVICES
    assert device_named("NVIDIA H200").memory == 4800
    for name in (
        "NVIDIA H100",
        "NVIDIA L4 MIG 1g.6gb",
        "AMD Radeon Graphics",
        "",
        "AMD Instinct MI308X",
        "NVIDIA GeForce RTX 2080 SUPER",
    ):
        assert device_named(name) is None
    for name in ("NVIDIA A100-PG509-200", "NVIDIA PG509-210"):
        board = device_named(name)
        assert board is not None
        assert board.memory is None
        assert attained("bfloat16", [1000, 1, 0, 0, 10**6, 1000, 0, 0], name) is None
        assert attained("bfloat16", [1000, 1, 156_000_000, 1000, 10**6, 1000, 0, 0], name) == 0.5
    assert device_of((H100, "Tesla T4")) is None
    assert len({d.name for d in DEVICES}) == len(DEVICES)
    assert json.dumps([[d.memory, d.vector, d.matrix] for d in DEVICES])
