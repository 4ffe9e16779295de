"""A multi-layer perceptron, which every capture method supports: inference, or training on a dataset."""

from __future__ import annotations

from itertools import chain, pairwise, repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.classification import training_step

TITLE = "inference or training step of a multi-layer perceptron (linear layers and ReLU; SGD)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"inputs": 64, "width": 512, "depth": 4, "classes": 10, "batch": 128},
    "small": {"inputs": 784, "width": 1024, "depth": 6, "classes": 10, "batch": 256},
    "full": {"inputs": 784, "width": 4096, "depth": 8, "classes": 1000, "batch": 1024},
}
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
    """The step."""
    model = perceptron(**size).to(device)
    if variant.choice(*OWN) == "training":
        return training(variant, device, model, batch, size["inputs"], size["classes"])
    model.eval()
    x = torch.randn(batch, size["inputs"], device=device)
    forward = variant(model, x)

    def step() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return forward(x)

    return Task(step, model, batch)


def training(variant: Variant, device: str, model: nn.Module, batch: int, inputs: int, classes: int) -> Task:
    """A training step, including the fetch of a batch from a dataset in memory; all batches are the same."""
    samples = TensorDataset(torch.randn(batch, inputs), torch.randint(0, classes, (batch,)))
    batches = chain.from_iterable(repeat(DataLoader(samples, batch)))
    forward = variant(model, torch.randn(batch, inputs, device=device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Task(training_step(variant, device, forward, optimizer, batches), model, batch)
