"""Small functions: a chain of pointwise operations; functions written in NumPy, which run as tensor code if compiled;
and a multi-layer perceptron.
"""

from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, classification, current_device, described, inference, loaded


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
def sincos(variant: Variant, side: int, calls: int) -> Task:
    """The step; the mean is outside the compiled function. With ``scalar`` it is what a call costs, ``calls`` times."""
    is_scalar = variant.choice(*sincos.own) == "scalar"
    x = torch.randn(() if is_scalar else (side, side))
    function = variant(sum_of_squares, x)
    one = calling(variant, lambda: function(x).mean())

    def many_steps() -> Tensor:
        for _ in range(calls - 1):
            one.step()
        return one.step()

    return Task(many_steps) if is_scalar else one


def row_sums(x: Any, y: Any) -> Any:
    """Two vectors → exp of their normalised, clipped outer product, summed over the second."""
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return np.exp(np.clip(np.outer(x, y), -2, 2)).sum(1)


def outer_sums(x: Any, y: Any) -> Any:
    """Two matrices [batch, width] → the sum of the outer product of each pair of rows."""
    return np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1))


@described(
    "a NumPy function (normalise, outer product, clip, exp; or batched outer products), between tensors",
    "rows columns batch width",
    tiny=(1000, 1000, 64, 64),
    small=(2000, 2000, 1024, 64),
    full=(8192, 8192, 1024, 640),
    variants=("eager", "compile"),
    own=("vectors", "batched"),
)
def numpy(variant: Variant, rows: int, columns: int, batch: int, width: int) -> Task:
    """The step. Eager, NumPy runs on the CPU; compiled, the same code runs on the device."""
    is_batched = variant.choice(*numpy.own) == "batched"
    function = outer_sums if is_batched else row_sums
    shapes = 2 * [(batch, width)] if is_batched else [(rows,), (columns,)]
    x, y = (torch.randn(shape) for shape in shapes)
    device = current_device()

    def in_numpy(x: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(function(x.cpu().numpy(), y.cpu().numpy())).to(device)

    sums = variant(torch.compiler.wrap_numpy(function)) if variant.compiles else in_numpy
    return Task(lambda: sums(x, y).abs().log())


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
def mlp(variant: Variant, batch: int, **size: Any) -> Task:
    """The step; a training step fetches its batch from a dataset in memory, and all batches are the same."""
    model, inputs = perceptron(**size), size["inputs"]
    if variant.choice(*mlp.own) == "inference":
        return inference(variant, model.eval(), torch.randn(batch, inputs), batch)
    samples = TensorDataset(
        torch.randn(batch, inputs, device="cpu"), torch.randint(0, size["classes"], (batch,), device="cpu")
    )
    batches = loaded(samples, batch, pin_memory=False)
    example = torch.randn(batch, inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return classification(variant, model, optimizer, batches, example)
