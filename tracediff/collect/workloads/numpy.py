"""Functions written in NumPy: normalise, outer product, clip, exp; or batched outer products. Compiled, they run as
tensor code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant

TITLE = "a NumPy function (normalise, outer product, clip, exp; or batched outer products), between tensors"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"rows": 1000, "columns": 1000, "batch": 64, "width": 64},
    "small": {"rows": 2000, "columns": 2000, "batch": 1024, "width": 64},
    "full": {"rows": 8192, "columns": 8192, "batch": 1024, "width": 640},
}
OWN = ("vectors", "batched")
VARIANTS = ("eager", "compile")


def row_sums(x: Any, y: Any) -> Any:
    """Two vectors → exp of their normalised, clipped outer product, summed over the second."""
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return np.exp(np.clip(np.outer(x, y), -2, 2)).sum(1)


def outer_sums(x: Any, y: Any) -> Any:
    """Two matrices [batch, width] → the sum of the outer product of each pair of rows."""
    return np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1))


def make(variant: Variant, device: str, rows: int, columns: int, batch: int, width: int) -> Task:
    """The step. Eager, NumPy runs on the CPU; compiled, the same code runs on the device."""
    function: Any = row_sums
    shapes: tuple[tuple[int, ...], ...] = ((rows,), (columns,))
    if variant.choice(*OWN) == "batched":
        function, shapes = outer_sums, ((batch, width), (batch, width))
    x, y = (torch.randn(shape, device=device) for shape in shapes)

    def in_numpy(x: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(function(x.cpu().numpy(), y.cpu().numpy())).to(device)

    sums = variant(torch.compiler.wrap_numpy(function)) if variant.compiles else in_numpy

    def step() -> Tensor:
        return sums(x, y).abs().log()

    return Task(step)
