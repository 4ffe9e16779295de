"""Training ResNet-50: cross-entropy, SGD with momentum, fake data."""

from __future__ import annotations

from itertools import repeat

import torch

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import classification, sizes
from tracediff.collect.workloads.resnet import ResNet

TITLE = "training step of ResNet-50 (cross-entropy, SGD with momentum)"
SIZES = sizes(
    "image width depths batch",
    tiny=(64, 16, (1,), 4),
    small=(128, 64, (3, 4, 6, 3), 8),
    full=(224, 64, (3, 4, 6, 3), 64),
)
OWN = ()
VARIANTS = ("eager", "channels_last", "channels_last+amp", "compile+channels_last+amp")


def make(variant: Variant, device: str, image: int, width: int, depths: tuple[int, ...], batch: int) -> Task:
    """The training step."""
    model = ResNet(depths, bottlenecks=True, width=width).to(device)
    images, labels = torch.randn(batch, 3, image, image, device=device), torch.randint(0, 1000, (batch,), device=device)
    if variant.has("channels_last"):
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return classification(variant, device, model, optimizer, repeat((images, labels)), images)
