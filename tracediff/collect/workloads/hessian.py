"""The Hessian of a scalar function: row by row, forward over reverse, reverse over reverse."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import grad, jacfwd, jacrev, vjp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "the Hessian of a small net's squared output"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"inputs": 32, "width": 96},
    "small": {"inputs": 256, "width": 512},
    "full": {"inputs": 1024, "width": 1024},
}
OWN = ("loop", "jacfwd_jacrev", "jacrev_jacrev")
VARIANTS = ("loop", "jacfwd_jacrev", "jacrev_jacrev")


def make(variant: Variant, device: str, inputs: int, width: int) -> Task:
    """The step: the matrix [inputs, inputs]."""
    model = perceptron(inputs, width, 1, width, nn.Tanh).to(device)
    x = torch.randn(inputs, device=device)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    def by_rows(x: Tensor) -> Tensor:
        slope, pull_back = vjp(grad(energy), x)
        return torch.stack([pull_back(row)[0] for row in torch.eye(len(slope), device=slope.device)])

    ways = {"loop": by_rows, "jacfwd_jacrev": jacfwd(jacrev(energy)), "jacrev_jacrev": jacrev(jacrev(energy))}
    hessian = variant(ways[variant.choice(*OWN)])

    def step() -> Tensor:
        with variant.autocast(device):
            return hessian(x)

    return Task(step, model)
