"""Small functions: a chain of pointwise operations, and a multi-layer perceptron."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import classification, described, inference, loaded


def sum_of_squares(x: Tensor) -> Tensor:
    """One, in five operations."""
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@described(
    "the mean of sin(x)**2 + cos(x)**2 of a large tensor, or of many scalars one after another",
    "side calls",
    tiny=(1000, 100),
    small=(2000, 1000),
    full=(10000, 100_000),
    variants=("eager", "compile"),
    own=("large", "scalar"),
)
def sincos(variant: Variant, device: str, side: int, calls: int) -> Task:
    """The step; the mean is outside the compiled function. With ``scalar`` it is what a call costs, ``calls`` times."""
    is_scalar = variant.choice(*sincos.own) == "scalar"
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


def perceptron(
    inputs: int, width: int, depth: int, classes: int, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """``depth`` hidden layers with their activation, and a linear layer behind them."""
    widths = [inputs] + depth * [width]
    hidden = chain.from_iterable((nn.Linear(i, o), activation()) for i, o in pairwise(widths))
    return nn.Sequential(*hidden, nn.Linear(width, classes))


@described(
    "inference or training step of a multi-layer perceptron (linear layers and ReLU; SGD)",
    "inputs width depth classes batch",
    tiny=(64, 512, 4, 10, 128),
    small=(784, 1024, 6, 10, 256),
    full=(784, 4096, 8, 1000, 1024),
    variants=("eager", "script", "trace", "export"),
    own=("inference", "training"),
)
def mlp(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The step; a training step fetches its batch from a dataset in memory, and all batches are the same."""
    model, inputs = perceptron(**size).to(device), size["inputs"]
    if variant.choice(*mlp.own) == "inference":
        return inference(variant, device, model.eval(), torch.randn(batch, inputs, device=device), batch)
    samples = TensorDataset(torch.randn(batch, inputs), torch.randint(0, size["classes"], (batch,)))
    batches = loaded(samples, batch, device, pin_memory=False)
    example = torch.randn(batch, inputs, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return classification(variant, device, model, optimizer, batches, example)
