"""BERT: training as a masked language model on random tokens with AdamW, or inference of a short sentence."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import inference, sizes, training
from tracediff.collect.workloads.transformer import Attention, Mlp

TITLE = "training step of BERT as a masked language model (AdamW), or inference of a short sentence"
SIZES = sizes(
    "vocabulary width depth heads tokens batch",
    tiny=(1000, 64, 2, 2, 32, 4),
    small=(30522, 256, 4, 4, 128, 8),
    full=(30522, 768, 12, 12, 512, 16),
)
OWN = ("training", "inference")
VARIANTS = ("eager", "compile", "eager+amp", "compile+amp")
MASK, IGNORED = 103, -100
SENTENCE = 12
"""Tokens of the short sentence."""


class Layer(nn.Module):
    """Attention and MLP, each with dropout, a residual and a layer norm behind it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attn, self.norm1 = Attention(width, heads), nn.LayerNorm(width, eps=1e-12)
        self.mlp, self.norm2 = Mlp(width), nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        x = self.norm1(x + self.dropout(self.attn(x)))
        return self.norm2(x + self.dropout(self.mlp(x)))


class Bert(nn.Module):
    """BERT's encoder with its masked-token head, which shares the token embedding."""

    def __init__(self, vocabulary: int, width: int, depth: int, heads: int, tokens: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.segments = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.Sequential(*(Layer(width, heads, dropout) for _ in range(depth)))
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=1e-12))
        self.decoder = nn.Linear(width, vocabulary)
        for embedding in (self.words, self.positions, self.segments):
            nn.init.normal_(embedding.weight, std=0.02)
        self.decoder.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [batch, tokens] → logits [batch, tokens, vocabulary]."""
        x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.segments.weight[0]
        return self.decoder(self.transform(self.layers(self.dropout(self.norm(x)))))


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The step."""
    model, vocabulary = Bert(**size).to(device), size["vocabulary"]
    if variant.choice(*OWN) == "inference":
        ids = torch.randint(0, vocabulary, (1, SENTENCE), device=device)
        return inference(variant, device, model.eval(), ids, items=1)
    ids = torch.randint(0, vocabulary, (batch, size["tokens"]), device=device)
    masked = torch.rand(ids.shape, device=device) < 0.15
    labels, ids = ids.masked_fill(~masked, IGNORED), ids.masked_fill(masked, MASK)
    forward = variant(model, ids)

    def loss(ids: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(forward(ids).flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return training(variant, device, model, optimizer, loss, repeat((ids, labels)), batch)
