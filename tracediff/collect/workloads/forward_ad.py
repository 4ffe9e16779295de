"""A directional derivative in forward mode: dual numbers, or torch.func.jvp."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import jvp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "a directional derivative of a net in forward mode"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 256, "depth": 4, "batch": 32},
    "small": {"width": 1024, "depth": 6, "batch": 128},
    "full": {"width": 4096, "depth": 8, "batch": 512},
}
OWN = ("dual", "jvp")
VARIANTS = ("dual", "jvp")


def make(variant: Variant, device: str, width: int, depth: int, batch: int) -> Task:
    """The step: value and derivative of the net at x in a direction."""
    model = perceptron(width, width, depth, width, nn.Tanh).to(device)
    x, direction = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)

    def by_dual_numbers(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        with forward_ad.dual_level():
            value, tangent = forward_ad.unpack_dual(model(forward_ad.make_dual(x, direction)))
            return value, tangent

    def by_jvp(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        value, tangent = jvp(model, (x,), (direction,))
        return value, tangent

    derivative = variant({"dual": by_dual_numbers, "jvp": by_jvp}[variant.choice(*OWN)])

    def step() -> tuple[Tensor, Tensor]:
        with variant.autocast(device):
            value, tangent = derivative(x, direction)
        return value, tangent

    return Task(step, model)
