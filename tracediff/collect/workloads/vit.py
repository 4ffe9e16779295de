"""Training a vision transformer: cross-entropy, Adam, fake data in memory or from a DataLoader."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import Samples, classification, loaded, moved, sizes
from tracediff.collect.workloads.transformer import Block

TITLE = "training step of a vision transformer (cross-entropy, Adam)"
SIZES = sizes(
    "image patch width depth heads batch",
    tiny=(64, 8, 192, 3, 3, 8),
    small=(224, 16, 384, 12, 6, 32),
    full=(224, 16, 768, 12, 12, 64),
)
OWN = ("in_memory", "workers0", "workers2")
VARIANTS = ("eager", "compile", "eager+amp", "compile+amp")


class Vit(nn.Module):
    """A vision transformer with mean pooling."""

    def __init__(self, image: int, patch: int, width: int, depth: int, heads: int, classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, 3, h, w] → logits [batch, classes]."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


def fake_image(image: int, batch: int, index: int) -> tuple[Tensor, int]:
    """A random image [3, h, w], always the same at an index of a batch, and its label."""
    generator = torch.Generator().manual_seed(index % batch)
    return torch.randn(3, image, image, generator=generator), index % 1000


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The training step."""
    model, image, source = Vit(**size).to(device), size["image"], variant.choice(*OWN)
    if source == "in_memory":
        images = torch.randn(batch, 3, image, image, device=device)
        batches = moved(repeat((images, torch.randint(0, 1000, (batch,), device=device))), device)
    else:
        samples = Samples(batch, partial(fake_image, image, batch))
        batches = loaded(samples, batch, device, workers=int(source.removeprefix("workers")))
    example = torch.randn(batch, 3, image, image, device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return classification(variant, device, model, optimizer, batches, example)
