"""sin(x)**2 + cos(x)**2: a chain of pointwise operations."""

from __future__ import annotations

import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant

TITLE = "the mean of sin(x)**2 + cos(x)**2 of a large tensor"
SIZES: dict[str, dict[str, int]] = {"tiny": {"side": 1000}, "small": {"side": 2000}, "full": {"side": 10000}}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "compile")


def sum_of_squares(x: Tensor) -> Tensor:
    """One, in five operations."""
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def make(variant: Variant, device: str, side: int) -> Task:
    """The step; the mean is outside the compiled function."""
    x = torch.randn(side, side, device=device)
    function = variant(sum_of_squares, x)

    def step() -> Tensor:
        with variant.autocast(device):
            return function(x).mean()

    return Task(step)
