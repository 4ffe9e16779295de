"""Records pairs on a GPU that differ by one known change of a model, which were compared as recorded.

python benchmarks/gpu/planted_models.py OUT [--device cpu] [--only NAME …] writes what planted.py writes.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from planted import Pair, Step, record
from torch import nn
from torch.nn import functional as F


def experts(*, device: str, width: int, tokens: int, looped: bool = False, reduced: bool = True, **_: object) -> Step:
    """A training step of a layer of 16 experts, each of which computes a sixteenth of the tokens."""
    torch.manual_seed(0)
    kind = torch.bfloat16 if reduced else torch.float32
    up = nn.Parameter(torch.randn(16, width, 4 * width, device=device, dtype=kind) * 0.02)
    down = nn.Parameter(torch.randn(16, 4 * width, width, device=device, dtype=kind) * 0.02)
    optimizer = torch.optim.SGD([up, down], 0.01)
    x = torch.randn(tokens, width, device=device, dtype=kind)
    order = torch.randperm(tokens, device=device)
    expert_of = torch.arange(tokens, device=device) % 16

    def step() -> None:
        optimizer.zero_grad()
        if looped:
            y = torch.zeros_like(x)
            for n in range(16):
                mine = (expert_of == n).nonzero().flatten()
                y = y.index_add(0, mine, F.silu(x[mine] @ up[n]) @ down[n])
        else:
            parts = x[order].view(16, -1, width)
            y = torch.bmm(F.silu(torch.bmm(parts, up)), down)
        y.float().square().mean().backward()
        optimizer.step()

    return step


def attend(
    *,
    device: str,
    width: int,
    tokens: int,
    batch: int,
    masked: bool = False,
    causal: bool = False,
    offloaded: bool = False,
    weights: str = "bf16",
    einsum: bool = False,
    optimizer: str = "AdamW",
    sorted_: bool = False,
    on_host: bool = False,
    **_: object,
) -> Step:
    """A training step of four attention blocks."""
    torch.manual_seed(0)
    blocks = nn.ModuleList(nn.ModuleList([nn.Linear(width, 3 * width), nn.Linear(width, width)]) for _ in range(4))
    blocks = blocks.to(device, torch.bfloat16 if weights == "bf16" else torch.float32)
    update = getattr(torch.optim, optimizer)(blocks.parameters(), lr=1e-3)
    images = torch.rand(batch, tokens, width, pin_memory=device == "cuda")
    mask = torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril() if masked else None

    def step() -> None:
        update.zero_grad()
        if on_host:
            x = ((images - images.mean()) / images.std()).to(device)
        else:
            x = images.to(device, non_blocking=True)
            x = (x - x.mean()) / x.std()
        x = x.to(blocks[0][0].weight.dtype)
        with torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda") if offloaded else nullcontext():
            for qkv, out in blocks:
                query, key, value = (p.unflatten(-1, (8, -1)).transpose(1, 2) for p in qkv(x).chunk(3, -1))
                mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
                if einsum:
                    x = x + torch.einsum("bhtd,ohd->bto", mixed, out.weight.unflatten(1, (8, -1)))
                else:
                    x = x + out(mixed.transpose(1, 2).flatten(2))
        if sorted_:
            x = x.sort(-1).values
        x.float().square().mean().backward()
        update.step()

    return step


def recur(
    *, device: str, width: int, tokens: int, batch: int, written: bool = False, layers: int = 1, **_: object
) -> Step:
    """A training step of a recurrent network."""
    torch.manual_seed(0)
    lstm = nn.LSTM(width, width, layers, batch_first=True).to(device)
    x = torch.randn(batch, tokens, width, device=device)
    optimizer = torch.optim.SGD(lstm.parameters(), 0.1)

    def cell(x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(len(x), width, device=device)
        out = []
        for part in x.unbind(1):
            gates = F.linear(part, lstm.weight_ih_l0, lstm.bias_ih_l0) + F.linear(h, lstm.weight_hh_l0, lstm.bias_hh_l0)
            i, f, g, o = gates.chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out, 1)

    def step() -> None:
        optimizer.zero_grad()
        (cell(x) if written else lstm(x)[0]).square().mean().backward()
        optimizer.step()

    return step


def serve(*, device: str, width: int, batch: int, quantised: bool = False, **_: object) -> Step:
    """An inference step of eight linear layers, whose weights are bf16 or eight bits with scales."""
    torch.manual_seed(0)
    weights = [torch.randn(width, width, device=device, dtype=torch.bfloat16) * 0.02 for _ in range(8)]
    small = [(w * 1000).to(torch.int8) for w in weights]
    x = torch.randn(batch, width, device=device, dtype=torch.bfloat16)

    @torch.inference_mode()
    def step() -> None:
        y = x
        for full, part in zip(weights, small, strict=True):
            y = F.relu(y @ (part.to(torch.bfloat16) * 0.001 if quantised else full))

    return step


MOE = {"width": 1024, "tokens": 16384}
ATTENTION = {"width": 1024, "tokens": 1024, "batch": 16}
RECURRENT = {"width": 512, "tokens": 64, "batch": 64}
SERVED = {"width": 8192, "batch": 64}

PAIRS = {
    "looped": Pair(
        "experts one by one, with nonzero that waits, instead of batched products", MOE, {}, {"looped": True}, experts
    ),
    "full_experts": Pair("float instead of bf16", MOE, {}, {"reduced": False}, experts),
    "masked": Pair("a mask makes attention take another kernel", ATTENTION, {}, {"masked": True}, attend),
    "causal": Pair("causal attention: half the attention work", ATTENTION, {}, {"causal": True}, attend),
    "offloaded": Pair("activations are copied to the host and back", ATTENTION, {}, {"offloaded": True}, attend),
    "full_weights": Pair("float weights: products and attention in float", ATTENTION, {}, {"weights": "float"}, attend),
    "einsum": Pair(
        "einsum in place of a linear layer: copies of the transposed", ATTENTION, {}, {"einsum": True}, attend
    ),
    "sgd": Pair("SGD in place of AdamW", ATTENTION, {"optimizer": "AdamW"}, {"optimizer": "SGD"}, attend),
    "sorted": Pair("a sort of each row", ATTENTION, {}, {"sorted_": True}, attend),
    "on_host": Pair("the batch is normalised on the host", ATTENTION, {}, {"on_host": True}, attend),
    "written": Pair("an LSTM written out, cell by cell, instead of cuDNN's", RECURRENT, {}, {"written": True}, recur),
    "stacked": Pair("two layers of the LSTM", RECURRENT, {}, {"layers": 2}, recur),
    "quantised": Pair("weights are converted from eight bits in each step", SERVED, {}, {"quantised": True}, serve),
    "served_more": Pair("eight times the batch, of which the time hardly depends", SERVED, {}, {"batch": 512}, serve),
}
REHEARSED = {"width": 64, "tokens": 32, "batch": 4}

if __name__ == "__main__":
    record(PAIRS, REHEARSED)
