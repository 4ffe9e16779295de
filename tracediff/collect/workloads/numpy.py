"""Functions written in NumPy: normalise, outer product, clip, exp; or batched outer products. Compiled, they run as
tensor code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import described


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
def numpy(variant: Variant, device: str, rows: int, columns: int, batch: int, width: int) -> Task:
    """The step. Eager, NumPy runs on the CPU; compiled, the same code runs on the device."""
    is_batched = variant.choice(*numpy.own) == "batched"
    function = outer_sums if is_batched else row_sums
    shapes = 2 * [(batch, width)] if is_batched else [(rows,), (columns,)]
    x, y = (torch.randn(shape, device=device) for shape in shapes)

    def in_numpy(x: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(function(x.cpu().numpy(), y.cpu().numpy())).to(device)

    sums = variant(torch.compiler.wrap_numpy(function)) if variant.compiles else in_numpy
    return Task(lambda: sums(x, y).abs().log())
