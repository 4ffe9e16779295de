"""sin(x)**2 + cos(x)**2: a chain of pointwise operations, of one large tensor or of a number many times."""

from __future__ import annotations

import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import sizes

TITLE = "the mean of sin(x)**2 + cos(x)**2 of a large tensor, or of many scalars one after another"
SIZES = sizes("side calls", tiny=(1000, 100), small=(2000, 1000), full=(10000, 100_000))
OWN = ("large", "scalar")
VARIANTS = ("eager", "compile")


def sum_of_squares(x: Tensor) -> Tensor:
    """One, in five operations."""
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def make(variant: Variant, device: str, side: int, calls: int) -> Task:
    """The step; the mean is outside the compiled function. With ``scalar`` it is what a call costs, ``calls`` times."""
    is_scalar = variant.choice(*OWN) == "scalar"
    x = torch.randn(() if is_scalar else (side, side), device=device)
    function = variant(sum_of_squares, x)

    def step() -> Tensor:
        with variant.autocast(device):
            return function(x).mean()

    def many_steps() -> Tensor:
        for _ in range(calls - 1):
            step()
        return step()

    return Task(many_steps if is_scalar else step)
