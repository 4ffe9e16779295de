"""Inference of an ensemble of perceptrons: one after another, or batched with vmap."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import sizes
from tracediff.collect.workloads.mlp import perceptron

TITLE = "inference of an ensemble of perceptrons"
SIZES = sizes(
    "models inputs width depth classes batch",
    tiny=(40, 64, 64, 2, 10, 8),
    small=(10, 784, 128, 2, 10, 64),
    full=(64, 784, 512, 2, 10, 64),
)
OWN = ("loop", "vmap", "different", "same")
VARIANTS = ("loop", "vmap", "vmap+compile")


def make(variant: Variant, device: str, models: int, batch: int, **size: Any) -> Task:
    """The inference step: each model has its own minibatch; with ``same`` all models share one."""
    members = nn.ModuleList(perceptron(**size) for _ in range(models)).to(device).eval()
    minibatches = torch.randn(models, batch, size["inputs"], device=device)
    same = variant.choice("different", "same") == "same"
    x = minibatches[0] if same else minibatches
    state = stack_module_state(members)
    template = copy.deepcopy(members[0]).to("meta")

    def predict(state: Any, x: Tensor) -> Tensor:
        return functional_call(template, state, (x,))

    def by_vmap(x: Tensor) -> Tensor:
        return vmap(predict, in_dims=(0, None if same else 0))(state, x)

    def by_loop(x: Tensor) -> Tensor:
        each = models * [x] if same else x
        return torch.stack([member(minibatch) for member, minibatch in zip(members, each, strict=True)])

    predictions = variant(by_vmap if variant.choice("loop", "vmap") == "vmap" else by_loop)

    def step() -> Tensor:
        with torch.no_grad(), variant.autocast(device):
            return predictions(x)

    return Task(step, members)
