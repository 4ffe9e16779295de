"""The Jacobian of a small net: row by row, in reverse mode, in forward mode; tall or wide, batched, by its weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacfwd, jacrev, vjp, vmap

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, sizes
from tracediff.collect.workloads.mlp import perceptron

TITLE = "the Jacobian of a small net"
SIZES = sizes("many few batch", tiny=(2048, 32, 4), small=(4096, 64, 8), full=(8192, 128, 16))
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
    by = 0 if variant.choice("inputs", "weights") == "weights" else 1

    def output(weights: Tensor, x: Tensor) -> Tensor:
        return functional_call(model, {last: weights}, (x,))

    def by_rows(weights: Tensor, x: Tensor) -> Tensor:
        y, pull_back = vjp(output, weights, x)
        return torch.stack([pull_back(row)[by] for row in torch.eye(len(y), device=y.device)])

    def by_samples(weights: Tensor, x: Tensor) -> Tensor:
        return torch.stack([by_rows(weights, sample) for sample in x])

    ways = {"loop": by_rows, "jacrev": jacrev(output, argnums=by), "jacfwd": jacfwd(output, argnums=by)}
    way = variant.choice(*ways)
    jacobian = ways[way]
    if is_batched:
        jacobian = by_samples if way == "loop" else vmap(jacobian, in_dims=(None, 0))
    return calling(variant, device, variant(jacobian), weights, x, model=model)
