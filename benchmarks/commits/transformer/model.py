"""A small language model."""

import torch
from layers import Block
from settings import CONTEXT, HEADS, LAYERS, VOCABULARY, WIDTH
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        hidden = self.tokens(tokens) + self.places[: tokens.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))

    def generate(self, tokens, count):
        """Never called by the training."""
        for _ in range(count):
            following = self(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], dim=1)
        return tokens
