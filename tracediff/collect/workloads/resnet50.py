"""Training ResNet-50: cross-entropy, SGD with momentum, fake data."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.resnet import ResNet

TITLE = "training step of ResNet-50 (cross-entropy, SGD with momentum)"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"image": 64, "width": 16, "depths": (1,), "batch": 4},
    "small": {"image": 128, "width": 64, "depths": (3, 4, 6, 3), "batch": 8},
    "full": {"image": 224, "width": 64, "depths": (3, 4, 6, 3), "batch": 64},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "channels_last", "channels_last+amp", "compile+channels_last+amp")


def make(variant: Variant, device: str, image: int, width: int, depths: tuple[int, ...], batch: int) -> Task:
    """The training step."""
    model = ResNet(depths, bottlenecks=True, width=width).to(device)
    images, labels = torch.randn(batch, 3, image, image, device=device), torch.randint(0, 1000, (batch,), device=device)
    if variant.has("channels_last"):
        images = images.to(memory_format=torch.channels_last)
    forward = variant(model, images)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    update = variant.update(optimizer, device)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            loss = nn.functional.cross_entropy(forward(images), labels)
        update(loss)
        return loss

    return Task(step, model, batch)
