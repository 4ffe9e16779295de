"""Inference of a transformer on sequences whose length changes every step."""

from __future__ import annotations

from itertools import cycle

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.vit import Block

TITLE = "inference of a transformer; the sequence length changes every step, in a cycle of four"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 96, "depth": 2, "heads": 3, "batch": 8, "longest": 64},
    "small": {"width": 384, "depth": 6, "heads": 6, "batch": 16, "longest": 256},
    "full": {"width": 768, "depth": 12, "heads": 12, "batch": 32, "longest": 512},
}
OWN: tuple[str, ...] = ()
VARIANTS = ("eager", "compile", "compile:dynamic", "compile:dynamic=false")
FRACTIONS = (1.0, 0.5, 0.75, 0.875)
"""Sequence lengths as fractions of the longest; any four consecutive steps use each once."""


class Encoder(nn.Module):
    """Transformer blocks and a prediction of the input."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        return self.head(self.norm(self.blocks(x)))


def make(variant: Variant, device: str, width: int, depth: int, heads: int, batch: int, longest: int) -> Task:
    """The inference step."""
    model = Encoder(width, depth, heads).to(device).eval()
    sequences = [torch.randn(batch, int(fraction * longest), width, device=device) for fraction in FRACTIONS]
    forward = variant(model, sequences[0])
    batches = cycle(sequences)

    def step() -> Tensor:
        x = next(batches)
        with torch.no_grad(), variant.autocast(device):
            return forward(x)

    return Task(step, model)
