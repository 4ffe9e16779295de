"""Training a vision transformer: cross-entropy, Adam, fake data in memory or from a DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.classification import training_step

TITLE = "training step of a vision transformer (cross-entropy, Adam)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"image": 64, "patch": 8, "width": 192, "depth": 3, "heads": 3, "batch": 8},
    "small": {"image": 224, "patch": 16, "width": 384, "depth": 12, "heads": 6, "batch": 32},
    "full": {"image": 224, "patch": 16, "width": 768, "depth": 12, "heads": 12, "batch": 64},
}
OWN = ("in_memory", "workers0", "workers2")
VARIANTS = ("eager", "compile", "eager+amp", "compile+amp")


class Attention(nn.Module):
    """Multi-head self-attention through scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(attended.transpose(1, 2).reshape(batch, tokens, width))
        return out


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [..., width] → the same shape."""
        out: Tensor = self.fc2(self.act(self.fc1(x)))
        return out


class Block(nn.Module):
    """Attention and MLP, each behind a layer norm and with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


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
        out: Tensor = self.head(self.norm(self.blocks(x)).mean(1))
        return out


class FakeImages(Dataset[tuple[Tensor, int]]):
    """Random images, made on access; each index of a batch has its own, always the same."""

    def __init__(self, image: int, batch: int) -> None:
        self.image, self.batch = image, batch

    def __len__(self) -> int:
        """More than a measurement needs, so that no step restarts the loader."""
        return 10_000 * self.batch

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image [3, h, w] and its label."""
        generator = torch.Generator().manual_seed(index % self.batch)
        return torch.randn(3, self.image, self.image, generator=generator), index % 1000


def batches_of(source: str, device: str, image: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """One batch again and again (``in_memory``), or those of a DataLoader with 0 or 2 workers."""
    if source == "in_memory":
        images = torch.randn(batch, 3, image, image, device=device)
        return repeat((images, torch.randint(0, 1000, (batch,), device=device)))
    workers = int(source.removeprefix("workers"))
    loader = DataLoader(
        FakeImages(image, batch),
        batch,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device.startswith("cuda"),
    )
    return chain.from_iterable(repeat(loader))


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The training step."""
    model = Vit(**size).to(device)
    batches = batches_of(variant.choice(*OWN), device, size["image"], batch)
    forward = variant(model, torch.randn(batch, 3, size["image"], size["image"], device=device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Task(training_step(variant, device, forward, optimizer, batches), model, batch)
