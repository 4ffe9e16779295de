"""Blocks of the model."""

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, hidden):
        batch, length, width = hidden.shape
        parts = self.inputs(hidden).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width, factor=4):
        super().__init__()
        self.up = nn.Linear(width, factor * width)
        self.down = nn.Linear(factor * width, width)

    def forward(self, hidden):
        return self.down(activation(self.up(hidden)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width)

    def forward(self, hidden):
        hidden = hidden + self.attention(self.first(hidden))
        return hidden + self.feed_forward(self.second(hidden))


def activation(hidden):
    return functional.gelu(hidden)


def rotated(hidden):
    """An alternative that nothing uses."""
    half = hidden.shape[-1] // 2
    return torch.cat([-hidden[..., half:], hidden[..., :half]], dim=-1)
