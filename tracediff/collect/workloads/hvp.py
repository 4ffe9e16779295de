"""A Hessian-vector product: reverse over reverse, forward over reverse, or as torch.autograd.functional has it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import grad, jvp, vjp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "a Hessian-vector product of a net's squared output"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 256, "depth": 4, "batch": 32},
    "small": {"width": 1024, "depth": 6, "batch": 128},
    "full": {"width": 4096, "depth": 8, "batch": 512},
}
OWN = ("revrev", "fwdrev", "vhp")
VARIANTS = ("revrev", "fwdrev", "vhp")


def make(variant: Variant, device: str, width: int, depth: int, batch: int) -> Task:
    """The step: the Hessian at x times a direction."""
    model = perceptron(width, width, depth, width, nn.Tanh).to(device)
    x, direction = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    def revrev(x: Tensor, direction: Tensor) -> Tensor:
        return vjp(grad(energy), x)[1](direction)[0]

    def fwdrev(x: Tensor, direction: Tensor) -> Tensor:
        return jvp(grad(energy), (x,), (direction,))[1]

    def vhp(x: Tensor, direction: Tensor) -> Tensor:
        product: Tensor = torch.autograd.functional.vhp(energy, x, direction)[1]  # the Hessian is symmetric
        return product

    product = variant({"revrev": revrev, "fwdrev": fwdrev, "vhp": vhp}[variant.choice(*OWN)])

    def step() -> Tensor:
        with variant.autocast(device):
            return product(x, direction)

    return Task(step, model)
