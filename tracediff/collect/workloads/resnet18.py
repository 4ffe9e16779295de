"""Inference of ResNet-18."""

from __future__ import annotations

import torch

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import inference, sizes
from tracediff.collect.workloads.resnet import ResNet

TITLE = "inference of ResNet-18"
SIZES = sizes(
    "image width depths batch",
    tiny=(64, 16, (1, 1), 8),
    small=(224, 64, (2, 2, 2, 2), 4),
    full=(224, 64, (2, 2, 2, 2), 128),
)
OWN = ()
VARIANTS = ("eager", "compile", "channels_last", "compile+channels_last")


def make(variant: Variant, device: str, image: int, width: int, depths: tuple[int, ...], batch: int) -> Task:
    """The inference step."""
    model = ResNet(depths, bottlenecks=False, width=width).to(device).eval()
    images = torch.randn(batch, 3, image, image, device=device)
    if variant.has("channels_last"):
        images = images.to(memory_format=torch.channels_last)
    return inference(variant, device, model, images, batch)
