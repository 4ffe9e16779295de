"""A directional derivative in forward mode: dual numbers as inputs or parameters, torch.func.jvp, an own rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.func import functional_call, jvp

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, sizes
from tracediff.collect.workloads.mlp import perceptron

TITLE = "a directional derivative of a net in forward mode"
SIZES = sizes("width depth batch", tiny=(256, 4, 32), small=(1024, 6, 128), full=(4096, 8, 512))
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

    backward = jvp  # the derivative is symmetric


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

    def of_parameters(parameters: Any) -> Tensor:
        return functional_call(model, parameters, (x,))

    def dual(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        with dual_level():
            return tuple(unpack_dual(model(make_dual(x, direction))))

    def dual_parameters(_: Tensor, __: Tensor) -> tuple[Tensor, Tensor]:
        with dual_level():
            duals = {name: make_dual(parameters[name], directions[name]) for name in parameters}
            return tuple(unpack_dual(of_parameters(duals)))

    ways = {
        "dual": dual,
        "custom": dual,
        "jvp": lambda x, direction: jvp(model, (x,), (direction,)),
        "dual_parameters": dual_parameters,
        "jvp_parameters": lambda *_: jvp(of_parameters, (parameters,), (directions,)),
    }
    return calling(variant, device, variant(ways[way]), x, direction, model=model)
