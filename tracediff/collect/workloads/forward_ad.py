"""A directional derivative in forward mode: dual numbers as inputs or parameters, torch.func.jvp, an own rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, jvp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.mlp import perceptron

TITLE = "a directional derivative of a net in forward mode"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 256, "depth": 4, "batch": 32},
    "small": {"width": 1024, "depth": 6, "batch": 128},
    "full": {"width": 4096, "depth": 8, "batch": 512},
}
OWN = ("dual", "jvp", "custom", "dual_parameters", "jvp_parameters")
VARIANTS = ("dual", "jvp", "custom")


class Tanh(torch.autograd.Function):
    """The hyperbolic tangent with a rule of its own for forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Tensor → its tanh."""
        ctx.y = torch.tanh(x)
        return ctx.y

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        """The tangent of the result: (1 − tanh²) times that of the argument."""
        return (1 - ctx.y.square()) * tangent

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """The gradient of the argument, by the same rule."""
        return (1 - ctx.y.square()) * gradient


class OwnTanh(nn.Module):
    """`Tanh` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        """Tensor → its tanh."""
        return Tanh.apply(x)


def make(variant: Variant, device: str, width: int, depth: int, batch: int) -> Task:
    """The step: value and derivative of the net, in a direction of its input or of its parameters."""
    way = variant.choice(*OWN)
    model = perceptron(width, width, depth, width, OwnTanh if way == "custom" else nn.Tanh).to(device)
    x, direction = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    directions = {name: torch.randn_like(parameter) for name, parameter in parameters.items()}

    def by_dual_numbers(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        with forward_ad.dual_level():
            value, tangent = forward_ad.unpack_dual(model(forward_ad.make_dual(x, direction)))
            return value, tangent

    def by_dual_parameters(x: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        with forward_ad.dual_level():
            duals = {name: forward_ad.make_dual(parameters[name], directions[name]) for name in parameters}
            value, tangent = forward_ad.unpack_dual(functional_call(model, duals, (x,)))
            return value, tangent

    def by_jvp(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        value, tangent = jvp(model, (x,), (direction,))
        return value, tangent

    def by_jvp_of_parameters(x: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        value, tangent = jvp(lambda p: functional_call(model, p, (x,)), (parameters,), (directions,))
        return value, tangent

    ways = {
        "dual": by_dual_numbers,
        "jvp": by_jvp,
        "custom": by_dual_numbers,
        "dual_parameters": by_dual_parameters,
        "jvp_parameters": by_jvp_of_parameters,
    }
    derivative = variant(ways[way])

    def step() -> tuple[Tensor, Tensor]:
        with variant.autocast(device):
            value, tangent = derivative(x, direction)
        return value, tangent

    return Task(step, model)
