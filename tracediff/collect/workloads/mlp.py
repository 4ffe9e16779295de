"""Inference of a multi-layer perceptron, which every capture method supports."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant

TITLE = "inference of a multi-layer perceptron (linear layers and ReLU)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"inputs": 64, "width": 512, "depth": 4, "classes": 10, "batch": 128},
    "small": {"inputs": 784, "width": 1024, "depth": 6, "classes": 10, "batch": 256},
    "full": {"inputs": 784, "width": 4096, "depth": 8, "classes": 1000, "batch": 1024},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "script", "trace", "export")


def perceptron(
    inputs: int, width: int, depth: int, classes: int, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """``depth`` hidden layers with their activation, and a linear layer behind them."""
    widths = [inputs] + depth * [width]
    hidden = chain.from_iterable((nn.Linear(i, o), activation()) for i, o in pairwise(widths))
    return nn.Sequential(*hidden, nn.Linear(width, classes))


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The inference step."""
    model = perceptron(**size).to(device).eval()
    x = torch.randn(batch, size["inputs"], device=device)
    forward = variant(model, x)

    def step() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return forward(x)

    return Task(step, model)
