"""Inference of convolutions with batch norms, which FX can fold into them."""

from __future__ import annotations

from itertools import chain, pairwise

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant

TITLE = "inference of convolution, batch norm, ReLU in a row"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"image": 32, "width": 32, "depth": 6, "batch": 8},
    "small": {"image": 112, "width": 64, "depth": 8, "batch": 8},
    "full": {"image": 224, "width": 64, "depth": 16, "batch": 64},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "fx_fused")


def make(variant: Variant, device: str, image: int, width: int, depth: int, batch: int) -> Task:
    """The inference step."""
    channels = [3] + depth * [width]
    model = nn.Sequential(
        *chain.from_iterable(
            (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()) for i, o in pairwise(channels)
        )
    )
    model, images = model.to(device), torch.randn(batch, 3, image, image).to(device)
    with torch.no_grad():
        model(images)  # so that the running statistics are not trivial
    model.eval()
    forward = variant(model, images)

    def step() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return forward(images)

    return Task(step, model, batch)
