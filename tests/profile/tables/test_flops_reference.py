"""FLOPs from traces against torch's own counter, on models made at random: forward and backward, to the last one."""

import random

import pytest

torch = pytest.importorskip("torch")

from one_file import profile_file  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils import flop_counter  # noqa: E402

from tracediff.ingest.files.source import TraceFile  # noqa: E402
from tracediff.profile.perf_model.operator_costs import ATTENTION, CONVOLUTION_BACKWARD, CONVOLUTIONS, PRODUCTS, WINDOWS  # noqa: E402
from tracediff.profile.tables.rates import RATES  # noqa: E402

aten = torch.ops.aten
CPU_ATTENTION = {  # torch's counter knows the GPU's operators only; the formulas are the same
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: flop_counter.sdpa_flop_count(q, k, v),
    aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda g, q, k, v, *_, **__: (
        flop_counter.sdpa_backward_flop_count(g, q, k, v)
    ),
}
FLOP = [c.name for c in RATES.columns].index("flop")


def recorded(folder, run):
    """(work → FLOPs of the trace of ``run``, FLOPs by torch's counter)."""
    path = folder / "trace.json"
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorder:
        run()
    recorder.export_chrome_trace(str(path))
    with flop_counter.FlopCounterMode(display=False, custom_mapping=CPU_ATTENTION) as counter:
        run()
    table = profile_file(TraceFile(str(path)), tables=["rates"]).tables["rates"]
    found = {}
    for key, values in zip(table.key.tolist(), table.values.tolist(), strict=True):
        if values[FLOP]:
            found[table.keys[key][0]] = found.get(table.keys[key][0], 0) + values[FLOP]
    return found, counter.get_total_flops()


def convolution(draw, transposed=False, grouped=False):
    dims = draw.choice((1, 2, 3))
    name = f"Conv{'Transpose' if transposed else ''}{dims}d"
    groups = 2 if grouped else 1
    into, out = draw.randint(1, 4) * groups, draw.randint(1, 4) * groups
    settings = {"stride": draw.randint(1, 3), "padding": draw.randint(0, 2), "groups": groups}
    settings |= {} if transposed else {"dilation": draw.randint(1, 2)}
    layer = getattr(nn, name)(into, out, draw.randint(1, 3), bias=draw.random() < 0.5, **settings)
    x = torch.randn(
        draw.randint(1, 3), into, *(draw.randint(6, 9) for _ in range(dims)), requires_grad=draw.random() < 0.5
    )
    return lambda: layer(x).sum().backward()


def products(draw):
    b, n, k, m = (draw.randint(1, 7) for _ in range(4))
    first, second = nn.Linear(k, m, bias=draw.random() < 0.5), nn.Linear(m, k)
    x = torch.randn(b, n, k, requires_grad=True)
    y = torch.randn(b, k, n, requires_grad=True)

    def run():
        h = second(F.gelu(first(x)))
        (
            torch.baddbmm(h @ y, x, y).sum()
            + torch.einsum("bnk,bmk->bnm", h, x).sum()
            + torch.addmm(x[0] @ y[0], x[0], y[0]).sum()
            + x.matmul(y[0]).sum()
        ).backward()

    return run


def attention(draw):
    b, heads, n, m, d = (
        draw.randint(1, 3),
        draw.randint(1, 4),
        draw.randint(2, 40),
        draw.randint(2, 40),
        draw.choice((8, 16)),
    )
    q, k, v = (torch.randn(b, heads, s, d, requires_grad=True) for s in (n, m, m))
    return lambda: F.scaled_dot_product_attention(q, k, v).sum().backward()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [convolution, products, attention])
def test_the_trace_tells_what_torch_counts(tmp_path, make, seed):
    torch.manual_seed(seed)
    found, counted = recorded(tmp_path, make(random.Random(seed)))
    assert sum(found.values()) == counted > 0


@pytest.mark.parametrize("seed", range(8))
def test_a_transposed_convolution_tells_what_torch_counts(tmp_path, seed):
    found, counted = recorded(tmp_path, convolution(random.Random(seed), transposed=True))
    assert found["convolution transposed"] > 0
    assert sum(found.values()) == counted


@pytest.mark.parametrize("seed", range(8))
def test_gradients_of_grouped_convolutions_cost_what_the_forward_does(tmp_path, seed):
    draw = random.Random(seed)
    layer = nn.Conv2d(4, 8, 3, groups=draw.choice((2, 4)), stride=draw.randint(1, 2))
    x = torch.randn(2, 4, 9, 9, requires_grad=True)
    found, _ = recorded(tmp_path, lambda: layer(x).sum().backward())
    with flop_counter.FlopCounterMode(display=False) as counter:
        layer(x)
    assert found == {"convolution": counter.get_total_flops(), "convolution backward": 2 * counter.get_total_flops()}


def test_causal_attention_counts_what_its_mask_leaves(tmp_path):
    q = torch.randn(2, 3, 12, 8, requires_grad=True)
    found, counted = recorded(
        tmp_path, lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    )
    assert sum(found.values()) * 2 * 12 == counted * 13


def test_positions_of_arguments_are_those_of_torchs_operators():
    def names(op):
        packet = getattr(aten, op, None)
        overloads = packet.overloads() if packet else []
        return (
            [a.name for a in getattr(packet, "default" if "default" in overloads else overloads[-1])._schema.arguments]
            if packet
            else None
        )

    checked = 0
    for op, (position, causal, offsets, _) in ATTENTION.items():
        arguments = names(op)
        assert arguments[position : position + 3] == ["query", "key", "value"]
        assert arguments[causal] in ("is_causal", "custom_mask_type")
        assert offsets is None or arguments[offsets] in ("cum_seq_q", "cu_seqlens_q")
        assert all(arguments[k].startswith("window_size") for k in WINDOWS.get(op, ()))
    for op, (*settings, transposed) in CONVOLUTIONS.items():
        arguments = names(op)
        assert [arguments[k] for k in settings] == ["stride", "padding", "dilation"]
        assert isinstance(transposed, bool) or arguments[transposed] == "transposed"
        checked += 1
    for op, (grad, x, w, transposed, mask) in CONVOLUTION_BACKWARD.items():
        if arguments := names(op):
            assert [arguments[k] for k in (grad, x, w, transposed, mask)] == [
                "grad_output",
                "input",
                "weight",
                "transposed",
                "output_mask",
            ]
            checked += 1
    operands = (
        "self mat2",
        "self vec",
        "self other",
        "self tensor",
        "input weight",
        "mat1 mat2",
        "batch1 batch2",
        "mat vec",
    )
    for op, (position,) in PRODUCTS.items():
        assert " ".join(names(op)[position : position + 2]) in operands
    assert checked >= 14
