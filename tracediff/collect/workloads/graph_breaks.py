"""A net whose forward breaks torch.compile's graph: ``.item()``, ``print``, ``float()`` of a NumPy scalar, an assert
with an f-string.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant

TITLE = "training or inference step of a net with four graph breaks (SGD)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 192, "batch": 64},
    "small": {"width": 1024, "batch": 256},
    "full": {"width": 4096, "batch": 1024},
}
OWN = ("breaks", "fixed", "training", "inference")
VARIANTS = ("eager", "compile", "compile+fixed")


class Part(nn.Module):
    """Linear, layer norm and GELU with a residual: something to fuse."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear, self.norm, self.act = nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        return x + self.act(self.norm(self.linear(x)))


class Breaks(nn.Module):
    """Five parts and, between them, what people write into a forward."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Part(width) for _ in range(5))
        self.seen: dict[str, Any] = {"mean": 0.0, "finite": True}

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        x = self.parts[0](x)
        self.seen["mean"] = x.mean().item()
        x = self.parts[1](x)
        print(end="")  # prints nothing, and breaks the graph as any print does
        x = self.parts[2](x)
        x = x / (1 + float(np.abs(x.detach().cpu().numpy()).max()))
        x = self.parts[3](x)
        bias = np.zeros(x.shape[1], np.float32)
        for row in x.detach()[:4].cpu().numpy():
            bias = bias + row
        x = x + torch.from_numpy(bias).to(x.device)
        assert x.isfinite().all(), f"not finite: {self.seen}"
        return self.parts[4](x)


class Fixed(Breaks):
    """The same arithmetic in tensors: what is to be logged or checked stays on the device."""

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, width] → the same shape."""
        x = self.parts[0](x)
        self.seen["mean"] = x.detach().mean()
        x = self.parts[2](self.parts[1](x))
        x = self.parts[3](x / (1 + x.detach().abs().max()))
        x = x + x.detach()[:4].sum(0)
        self.seen["finite"] = x.detach().isfinite().all()
        return self.parts[4](x)


def net(variant: Variant, width: int) -> nn.Module:
    """The net with or without breaks."""
    return Fixed(width) if variant.choice("breaks", "fixed") == "fixed" else Breaks(width)


def task(variant: Variant, device: str, model: nn.Module, batch: int, width: int) -> Task:
    """A training step of ``model``, or an inference step."""
    x = torch.randn(batch, width, device=device)
    model.to(device).train(variant.choice("training", "inference") == "training")
    forward = variant(model, x)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def infer() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return forward(x)

    def train() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            loss = forward(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Task(train if model.training else infer, model)


def make(variant: Variant, device: str, batch: int, width: int) -> Task:
    """The step."""
    return task(variant, device, net(variant, width), batch, width)
