"""Inference of a transformer on sequences whose length changes every step."""

from __future__ import annotations

from itertools import cycle

import torch
from torch import Tensor, nn

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import sizes
from tracediff.collect.workloads.transformer import Block

TITLE = "inference of a transformer; the sequence length changes every step, in a cycle of four"
SIZES = sizes(
    "width depth heads batch longest", tiny=(96, 2, 3, 8, 64), small=(384, 6, 6, 16, 256), full=(768, 12, 12, 32, 512)
)
OWN = ()
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
    forward, batches = variant(model, sequences[0]), cycle(sequences)

    def step() -> Tensor:
        x = next(batches)
        with torch.no_grad(), variant.autocast(device):
            return forward(x)

    return Task(step, model)
