"""A Hessian-vector product: reverse over reverse, forward over reverse, or as torch.autograd.functional has it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd import functional
from torch.func import grad, jvp, vjp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, sizes
from tracediff.collect.workloads.mlp import perceptron

TITLE = "a Hessian-vector product of a net's squared output"
SIZES = sizes("width depth batch", tiny=(256, 4, 32), small=(1024, 6, 128), full=(4096, 8, 512))
OWN = ("revrev", "fwdrev", "vhp")
VARIANTS = ("revrev", "fwdrev", "vhp")


def make(variant: Variant, device: str, width: int, depth: int, batch: int) -> Task:
    """The step: the Hessian at x times a direction."""
    model = perceptron(width, width, depth, width, nn.Tanh).to(device)
    x, direction = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    ways = {
        "revrev": lambda x, direction: vjp(grad(energy), x)[1](direction)[0],
        "fwdrev": lambda x, direction: jvp(grad(energy), (x,), (direction,))[1],
        "vhp": lambda x, direction: functional.vhp(energy, x, direction)[1],  # the Hessian is symmetric
    }
    return calling(variant, device, variant(ways[variant.choice(*OWN)]), x, direction, model=model)
