"""The net with graph breaks behind an all-reduce of its batch statistics: in the process group of torchrun, else in one
of one rank.
"""

from __future__ import annotations

import os

import torch.distributed as dist
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads import graph_breaks

TITLE = "training or inference step of a net with an all-reduce and four graph breaks (SGD)"
SIZES, OWN, VARIANTS = graph_breaks.SIZES, graph_breaks.OWN, graph_breaks.VARIANTS


class Centred(nn.Module):
    """Takes off the mean over the batches of all ranks, then runs a net."""

    def __init__(self, width: int, net: nn.Module) -> None:
        super().__init__()
        self.first, self.net = graph_breaks.Part(width), net

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        x = self.first(x)
        mean = x.detach().mean(0)
        dist.all_reduce(mean)
        return self.net(x - mean / dist.get_world_size())


def make(variant: Variant, device: str, batch: int, width: int) -> Task:
    """The step; makes a process group where there is none."""
    if not dist.is_initialized():
        backend = "nccl" if device.startswith("cuda") else "gloo"
        alone = {} if "WORLD_SIZE" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
        dist.init_process_group(backend, **alone)
    return graph_breaks.task(variant, device, Centred(width, graph_breaks.net(variant, width)), batch, width)
