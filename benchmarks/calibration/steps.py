"""Two steps; each has a variant `@planted` with an additional operator of a given size.

`training` is a training step of a transformer block without cumsum; the planted variant has one. `inference` is the
inference of a convolutional network that ends in a small erf; in the planted variant the erf is larger. Results are
written to existing tensors: allocating megabytes changes the behaviour of malloc for all other operators, which made a
step with an operator of 2.3 ms only 0.9 ms slower.
"""

import os
from itertools import pairwise

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

SMALL = 1 << 14
"""Elements of the erf that `inference` always has."""


def training(variant, size):
    """A training step of a transformer block."""
    planted = _planted(variant)
    block = torch.nn.TransformerEncoderLayer(192, 4, 384, dropout=0.0, batch_first=True)
    optimizer = torch.optim.SGD(block.parameters(), 0.01)
    x, target, values = torch.randn(8, 64, 192), torch.randn(8, 64, 192), torch.rand(int(size))
    sums = torch.empty_like(values)
    forward = variant(block) if callable(variant) else block

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(forward(x), target).backward()
        optimizer.step()
        if planted:
            torch.cumsum(values, 0, out=sums)

    return step


def inference(variant, size):
    """The inference of a small convolutional network."""
    channels = (3, 32, 64, 64, 128)
    layers = [
        layer
        for a, b in pairwise(channels)
        for layer in (
            torch.nn.Conv2d(a, b, 3, padding=1),
            torch.nn.BatchNorm2d(b),
            torch.nn.ReLU(),
            torch.nn.AvgPool2d(2),
        )
    ]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(128 * 16, 10)).eval()
    x, values = torch.randn(4, 3, 64, 64), torch.rand(SMALL + (int(size) if _planted(variant) else 0))
    result = torch.empty_like(values)
    forward = variant(net) if callable(variant) else net

    @torch.no_grad()
    def step():
        forward(x)
        torch.erf(values, out=result)

    return step


def _planted(variant):
    return getattr(variant, "text", str(variant)).endswith("@planted")
