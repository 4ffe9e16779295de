"""The Hessian of a scalar function: row by row, or by two of forward and reverse mode; of one input or a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import grad, jacfwd, jacrev, vjp, vmap

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, sizes
from tracediff.collect.workloads.mlp import perceptron

TITLE = "the Hessian of a small net's squared output"
SIZES = sizes("inputs width", tiny=(32, 96), small=(256, 512), full=(1024, 1024))
OWN = ("loop", "jacfwd_jacrev", "jacrev_jacrev", "jacfwd_jacfwd", "one", "batched")
VARIANTS = ("loop", "jacfwd_jacrev", "jacrev_jacrev")
BATCH = 4


def make(variant: Variant, device: str, inputs: int, width: int) -> Task:
    """The step: the matrix [inputs, inputs]; with ``batched`` one for each of `BATCH` inputs."""
    model = perceptron(inputs, width, 1, width, nn.Tanh).to(device)
    is_batched = variant.choice("one", "batched") == "batched"
    x = torch.randn(*((BATCH,) if is_batched else ()), inputs, device=device)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    def by_rows(x: Tensor) -> Tensor:
        slope, pull_back = vjp(grad(energy), x)
        return torch.stack([pull_back(row)[0] for row in torch.eye(len(slope), device=slope.device)])

    def by_samples(x: Tensor) -> Tensor:
        return torch.stack([by_rows(sample) for sample in x])

    ways = {
        "loop": by_rows,
        "jacfwd_jacrev": jacfwd(jacrev(energy)),
        "jacrev_jacrev": jacrev(jacrev(energy)),
        "jacfwd_jacfwd": jacfwd(jacfwd(energy)),
    }
    way = variant.choice(*ways)
    hessian = ways[way]
    if is_batched:
        hessian = by_samples if way == "loop" else vmap(hessian)
    return calling(variant, device, variant(hessian), x, model=model)
