"""Training a small convolutional network on images that the CPU preprocesses, with or without worker processes."""

from __future__ import annotations

from inspect import signature
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader, Dataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.classification import training_step
from tracediff.collect.workloads.resnet import ResNet

TITLE = "training step of a small ResNet on images that the CPU prepares (SGD)"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"raw": 256, "image": 32, "width": 8, "batch": 8},
    "small": {"raw": 512, "image": 128, "width": 16, "batch": 16},
    "full": {"raw": 1024, "image": 224, "width": 64, "batch": 64},
}
OWN = ("workers0", "workers4")
VARIANTS = ("workers0", "workers4")
BATCHES = 10_000
"""Batches per epoch: more than a measurement needs, so that no step restarts the loader."""

UNORDERED: dict[str, Any] = {"in_order": False} if "in_order" in signature(DataLoader).parameters else {}
"""In order, one step can unpack two batches and a later one none. The option exists since torch 2.6."""


class Images(Dataset[tuple[Tensor, int]]):
    """Raw images that are converted, brightened, resized and normalised on access; every batch has the same ones."""

    def __init__(self, raw: int, image: int, batch: int) -> None:
        self.raw = torch.randint(0, 256, (batch, 3, raw, raw), dtype=torch.uint8)
        self.image = image

    def __len__(self) -> int:
        """Number of images per epoch."""
        return BATCHES * len(self.raw)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The preprocessed image [3, h, w] and its label."""
        label = index % len(self.raw)
        pixels = self.raw[label].float().div(255).pow(0.8)
        scaled = interpolate(pixels[None], size=(self.image, self.image), mode="bilinear", antialias=True)[0]
        return (scaled - scaled.mean()) / scaled.std(), label


def make(variant: Variant, device: str, raw: int, image: int, width: int, batch: int) -> Task:
    """The training step, including the fetch of a batch."""
    model = ResNet((1, 1, 1, 1), bottlenecks=False, width=width).to(device)
    workers = 4 if variant.choice(*OWN) == "workers4" else 0
    images = Images(raw, image, batch)
    loader = DataLoader(
        images,
        batch,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device.startswith("cuda"),
        **UNORDERED,
    )
    batches = chain.from_iterable(repeat(loader))
    forward = variant(model, torch.randn(batch, 3, image, image, device=device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Task(training_step(variant, device, forward, optimizer, batches), model, batch)
