"""A multi-layer perceptron, which every capture method supports: inference, or training on a dataset."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import classification, inference, loaded, sizes

TITLE = "inference or training step of a multi-layer perceptron (linear layers and ReLU; SGD)"
SIZES = sizes(
    "inputs width depth classes batch",
    tiny=(64, 512, 4, 10, 128),
    small=(784, 1024, 6, 10, 256),
    full=(784, 4096, 8, 1000, 1024),
)
OWN = ("inference", "training")
VARIANTS = ("eager", "script", "trace", "export")


def perceptron(
    inputs: int, width: int, depth: int, classes: int, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """``depth`` hidden layers with their activation, and a linear layer behind them."""
    widths = [inputs] + depth * [width]
    hidden = chain.from_iterable((nn.Linear(i, o), activation()) for i, o in pairwise(widths))
    return nn.Sequential(*hidden, nn.Linear(width, classes))


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The step; a training step fetches its batch from a dataset in memory, and all batches are the same."""
    model, inputs = perceptron(**size).to(device), size["inputs"]
    if variant.choice(*OWN) == "inference":
        return inference(variant, device, model.eval(), torch.randn(batch, inputs, device=device), batch)
    samples = TensorDataset(torch.randn(batch, inputs), torch.randint(0, size["classes"], (batch,)))
    batches = loaded(samples, batch, device, pin_memory=False)
    example = torch.randn(batch, inputs, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return classification(variant, device, model, optimizer, batches, example)
