"""The Jacobian of a small net: row by row, in reverse mode, in forward mode; tall or wide, batched, by its weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacfwd, jacrev, vjp, vmap

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "the Jacobian of a small net"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"many": 2048, "few": 32, "batch": 4},
    "small": {"many": 4096, "few": 64, "batch": 8},
    "full": {"many": 8192, "few": 128, "batch": 16},
}
OWN = ("loop", "jacrev", "jacfwd", "wide", "tall", "inputs", "weights", "one", "batched")
VARIANTS = ("loop", "jacrev", "jacfwd")


def make(variant: Variant, device: str, many: int, few: int, batch: int) -> Task:
    """The step: the matrix [few, many], with ``tall`` [many, few]; with ``batched`` one for each sample; with
    ``weights`` the derivative by the last layer's weights instead of the inputs.
    """
    inputs, outputs = (few, many) if variant.choice("wide", "tall") == "tall" else (many, few)
    model = perceptron(inputs, few, 1, outputs, nn.Tanh).to(device)
    last = f"{len(model) - 1}.weight"
    weights = dict(model.named_parameters())[last].detach()
    is_batched = variant.choice("one", "batched") == "batched"
    x = torch.randn(*((batch,) if is_batched else ()), inputs, device=device)

    def output(weights: Tensor, x: Tensor) -> Tensor:
        out: Tensor = functional_call(model, {last: weights}, (x,))
        return out

    by = 0 if variant.choice("inputs", "weights") == "weights" else 1

    def by_rows(weights: Tensor, x: Tensor) -> Tensor:
        y, pull_back = vjp(output, weights, x)
        return torch.stack([pull_back(row)[by] for row in torch.eye(len(y), device=y.device)])

    def by_samples(weights: Tensor, x: Tensor) -> Tensor:
        return torch.stack([by_rows(weights, sample) for sample in x])

    ways: dict[str, Any] = {"jacrev": jacrev(output, argnums=by), "jacfwd": jacfwd(output, argnums=by)}
    way = variant.choice("loop", *ways)
    if way == "loop":
        jacobian = variant(by_samples if is_batched else by_rows)
    else:
        jacobian = variant(vmap(ways[way], in_dims=(None, 0)) if is_batched else ways[way])

    def step() -> Tensor:
        with variant.autocast(device):
            out: Tensor = jacobian(weights, x)
            return out

    return Task(step, model)
