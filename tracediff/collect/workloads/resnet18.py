"""Inference of ResNet-18."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.resnet import ResNet

TITLE = "inference of ResNet-18"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"image": 64, "width": 16, "depths": (1, 1), "batch": 8},
    "small": {"image": 224, "width": 64, "depths": (2, 2, 2, 2), "batch": 4},
    "full": {"image": 224, "width": 64, "depths": (2, 2, 2, 2), "batch": 128},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "compile", "channels_last", "compile+channels_last")


def make(variant: Variant, device: str, image: int, width: int, depths: tuple[int, ...], batch: int) -> Task:
    """The inference step."""
    model = ResNet(depths, bottlenecks=False, width=width).to(device).eval()
    images = torch.randn(batch, 3, image, image, device=device)
    if variant.has("channels_last"):
        images = images.to(memory_format=torch.channels_last)
    forward = variant(model, images)

    def step() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return forward(images)

    return Task(step, model, batch)
