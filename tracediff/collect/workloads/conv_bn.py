"""Inference of convolutions with batch norms, which FX can fold into them."""

from __future__ import annotations

from itertools import chain, pairwise

import torch
from torch import nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import inference, sizes

TITLE = "inference of convolution, batch norm, ReLU in a row"
SIZES = sizes("image width depth batch", tiny=(32, 32, 6, 8), small=(112, 64, 8, 8), full=(224, 64, 16, 64))
OWN = ()
VARIANTS = ("eager", "fx_fused")


def make(variant: Variant, device: str, image: int, width: int, depth: int, batch: int) -> Task:
    """The inference step."""
    layers = ((nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()) for i, o in pairwise([3] + depth * [width]))
    model = nn.Sequential(*chain.from_iterable(layers)).to(device)
    images = torch.randn(batch, 3, image, image).to(device)
    with torch.no_grad():
        model(images)  # so that the running statistics are not trivial
    return inference(variant, device, model.eval(), images, batch)
