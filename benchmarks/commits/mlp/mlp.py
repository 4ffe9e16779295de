"""A multilayer perceptron, compiled."""

from itertools import pairwise

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, width=256, hidden=512, layers=3):
        super().__init__()
        sizes = [width, *[hidden] * (layers - 1), width]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, values):
        for layer in self.layers[:-1]:
            values = activation(layer(values))
        return self.layers[-1](values) * self.scale


def activation(values):
    return torch.relu(values)


def loss_of(found, wanted):
    return ((found - wanted) ** 2).mean()


def parameters_in(model):
    return sum(parameter.numel() for parameter in model.parameters())
