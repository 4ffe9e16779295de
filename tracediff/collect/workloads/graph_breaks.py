"""A net whose forward breaks torch.compile's graph: ``.item()``, ``print``, ``float()`` of a NumPy scalar, an assert
with an f-string.
"""

import os
from collections.abc import Collection
from itertools import repeat
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import current_device, described, inference, on_device, training

BREAKS = ("item", "print", "numpy", "assert")


class NetPart(nn.Module):
    """Linear, layer norm and GELU with a residual: something to fuse."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear, self.norm, self.act = nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        return x + self.act(self.norm(self.linear(x)))


class Breaks(nn.Module):
    """Five parts and, between them, what people write into a forward.

    Args:
        fixed: names of the breaks (``item``, ``print``, ``numpy``, ``assert``) that are written in tensors instead: the
            same arithmetic, and what is to be logged or checked stays on the device.
    """

    def __init__(self, width: int, fixed: Collection[str] = ()) -> None:
        super().__init__()
        self.parts = nn.ModuleList(NetPart(width) for _ in range(5))
        self.seen: dict[str, Any] = {"mean": 0.0, "finite": True}
        self.fixed = frozenset(fixed)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        x = self.parts[0](x)
        self.seen["mean"] = x.detach().mean() if "item" in self.fixed else x.mean().item()
        x = self.parts[1](x)
        if "print" not in self.fixed:
            print(end="")  # prints nothing, and breaks the graph as any print does
        x = self.parts[2](x)
        if "numpy" in self.fixed:
            x = x / (1 + x.detach().abs().max())
        else:
            x = x / (1 + float(np.abs(x.detach().cpu().numpy()).max()))
        x = self.parts[3](x)
        x = x + self.bias(x)
        if "assert" in self.fixed:
            self.seen["finite"] = x.detach().isfinite().all()
        else:
            assert x.isfinite().all(), f"not finite: {self.seen}"
        return self.parts[4](x)

    def bias(self, x: Tensor) -> Tensor:
        """The sum of the first rows, by a loop over NumPy, which breaks no graph."""
        bias = np.zeros(x.shape[1], np.float32)
        for row in x.detach()[:4].cpu().numpy():
            bias = bias + row
        return torch.from_numpy(bias).to(x.device)


class Fixed(Breaks):
    """All of them fixed; the bias in tensors, too."""

    def __init__(self, width: int) -> None:
        super().__init__(width, BREAKS)

    def bias(self, x: Tensor) -> Tensor:
        """The sum of the first rows."""
        return x.detach()[:4].sum(0)


def net(variant: Variant, width: int) -> nn.Module:
    """The net with the breaks that the variant leaves in it."""
    if variant.has("fixed"):
        return Fixed(width)
    return Breaks(width, [name for name in BREAKS if variant.has(f"fixed_{name}")])


def task(variant: Variant, model: nn.Module, batch: int, width: int) -> Task:
    """A training step of ``model``, or an inference step."""
    x = torch.randn(batch, width)
    if variant.choice("training", "inference") == "inference":
        return inference(variant, model.eval(), x)
    forward = variant(model, x)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return training(variant, model, optimizer, lambda x: forward(x).square().mean(), repeat((x,)))


@described(
    "training or inference step of a net with four graph breaks (SGD)",
    "width batch",
    tiny=(192, 64),
    small=(1024, 256),
    full=(4096, 1024),
    variants=("eager", "compile", "compile+fixed"),
    own=("breaks", "fixed", *(f"fixed_{name}" for name in BREAKS), "training", "inference"),
)
def graph_breaks(variant: Variant, batch: int, width: int) -> Task:
    """The step."""
    return task(variant, net(variant, width), batch, width)


class Centred(nn.Module):
    """Takes off the mean over the batches of all ranks, then runs a net."""

    def __init__(self, width: int, net: nn.Module) -> None:
        super().__init__()
        self.first, self.net = NetPart(width), net

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        x = self.first(x)
        mean = x.detach().mean(0)
        dist.all_reduce(mean)
        return self.net(x - mean / dist.get_world_size())


def with_allreduce(variant: Variant, batch: int, width: int) -> Task:
    """The step; makes a process group where there is none."""
    if not dist.is_initialized():
        backend = "nccl" if current_device().startswith("cuda") else "gloo"
        alone = {} if "WORLD_SIZE" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
        dist.init_process_group(backend, **alone)
    return task(variant, Centred(width, net(variant, width)), batch, width)


graph_breaks_allreduce = graph_breaks._replace(
    title="training or inference step of a net with an all-reduce and four graph breaks (SGD)",
    make=on_device(with_allreduce),
)
