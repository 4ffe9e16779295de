"""The Jacobian of a small net: row by row, in reverse mode, in forward mode."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import jacfwd, jacrev, vjp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "the Jacobian of a small net"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"inputs": 192, "outputs": 32},
    "small": {"inputs": 512, "outputs": 128},
    "full": {"inputs": 2048, "outputs": 512},
}
OWN = ("loop", "jacrev", "jacfwd")
VARIANTS = ("loop", "jacrev", "jacfwd")


def make(variant: Variant, device: str, inputs: int, outputs: int) -> Task:
    """The step: the matrix [outputs, inputs]."""
    model = perceptron(inputs, inputs, 1, outputs, nn.Tanh).to(device)
    x = torch.randn(inputs, device=device)

    def by_rows(x: Tensor) -> Tensor:
        y, pull_back = vjp(model, x)
        return torch.stack([pull_back(row)[0] for row in torch.eye(len(y), device=y.device)])

    ways = {"loop": by_rows, "jacrev": jacrev(model), "jacfwd": jacfwd(model)}
    jacobian = variant(ways[variant.choice(*OWN)])

    def step() -> Tensor:
        with variant.autocast(device):
            return jacobian(x)

    return Task(step, model)
