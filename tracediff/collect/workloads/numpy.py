"""A function written in NumPy: normalise, outer product, clip, exp. Compiled, it runs as tensor code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant

TITLE = "a NumPy function (normalise, outer product, clip, exp), between tensors"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"rows": 1000, "columns": 1000},
    "small": {"rows": 2000, "columns": 2000},
    "full": {"rows": 8192, "columns": 8192},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "compile")


def row_sums(x: Any, y: Any) -> Any:
    """Two vectors → exp of their normalised, clipped outer product, summed over the second."""
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return np.exp(np.clip(np.outer(x, y), -2, 2)).sum(1)


def make(variant: Variant, device: str, rows: int, columns: int) -> Task:
    """The step. Eager, NumPy runs on the CPU; compiled, the same code runs on the device."""
    x, y = torch.randn(rows, device=device), torch.randn(columns, device=device)

    def in_numpy(x: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(row_sums(x.cpu().numpy(), y.cpu().numpy())).to(device)

    sums = variant(torch.compiler.wrap_numpy(row_sums)) if variant.compiles else in_numpy

    def step() -> Tensor:
        return sums(x, y).log()

    return Task(step)
