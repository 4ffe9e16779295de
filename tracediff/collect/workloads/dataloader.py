"""Training a small convolutional network on images that the CPU preprocesses, with or without worker processes."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import Samples, classification, loaded, sizes
from tracediff.collect.workloads.resnet import ResNet

TITLE = "training step of a small ResNet on images that the CPU prepares (SGD)"
SIZES = sizes("raw image width batch", tiny=(256, 32, 8, 8), small=(512, 128, 16, 16), full=(1024, 224, 64, 64))
OWN = ("workers0", "workers4")
VARIANTS = ("workers0", "workers4")
UNORDERED: dict[str, Any] = {"in_order": False} if "in_order" in signature(DataLoader).parameters else {}
"""In order, one step can unpack two batches and a later one none. The option exists since torch 2.6."""


def prepared(raw: Tensor, image: int, index: int) -> tuple[Tensor, int]:
    """One of the ``raw`` images, converted, brightened, resized and normalised [3, h, w], and its label."""
    label = index % len(raw)
    pixels = raw[label].float().div(255).pow(0.8)
    scaled = interpolate(pixels[None], size=(image, image), mode="bilinear", antialias=True)[0]
    return (scaled - scaled.mean()) / scaled.std(), label


def make(variant: Variant, device: str, raw: int, image: int, width: int, batch: int) -> Task:
    """The training step, including the fetch of a batch; every batch has the same images."""
    model = ResNet((1, 1, 1, 1), bottlenecks=False, width=width).to(device)
    images = torch.randint(0, 256, (batch, 3, raw, raw), dtype=torch.uint8)
    workers = int(variant.choice(*OWN).removeprefix("workers"))
    batches = loaded(Samples(batch, partial(prepared, images, image)), batch, device, workers, **UNORDERED)
    example = torch.randn(batch, 3, image, image, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return classification(variant, device, model, optimizer, batches, example)
