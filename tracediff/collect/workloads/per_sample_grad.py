"""Per-sample gradients of a convolutional net: one sample after another, or vmap over grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from tracediff.collect.variant import Task, Variant

TITLE = "per-sample gradients of a small convolutional net"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"image": 16, "width": 8, "batch": 8},
    "small": {"image": 28, "width": 32, "batch": 32},
    "full": {"image": 28, "width": 32, "batch": 256},
}
OWN = ("loop", "vmap")
VARIANTS = ("loop", "vmap", "vmap+compile")


def convnet(image: int, width: int) -> nn.Module:
    """Two convolutions and two linear layers, for digits."""
    convolutions = nn.Sequential(
        nn.Conv2d(1, width, 3), nn.ReLU(), nn.Conv2d(width, 2 * width, 3), nn.ReLU(), nn.MaxPool2d(2)
    )
    return nn.Sequential(
        convolutions, nn.Flatten(), nn.Linear(2 * width * (image // 2 - 2) ** 2, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def make(variant: Variant, device: str, image: int, width: int, batch: int) -> Task:
    """The step: each parameter's gradients, stacked over the samples."""
    model = convnet(image, width).to(device)
    images, labels = torch.randn(batch, 1, image, image, device=device), torch.randint(0, 10, (batch,), device=device)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters: Any, image: Tensor, label: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    def by_vmap(images: Tensor, labels: Tensor) -> list[Tensor]:
        return list(vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels).values())

    gradients: Callable[[Tensor, Tensor], list[Tensor]]
    if variant.choice("loop", "vmap") == "vmap":
        gradients = variant(by_vmap)
    else:
        forward = variant(model, images[:1])

        def gradients(images: Tensor, labels: Tensor) -> list[Tensor]:
            losses = [
                cross_entropy(forward(image[None]), label[None]) for image, label in zip(images, labels, strict=True)
            ]
            samples = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
            return [torch.stack(sample_gradients) for sample_gradients in zip(*samples, strict=True)]

    def step() -> list[Tensor]:
        with variant.autocast(device):
            return gradients(images, labels)

    return Task(step, model)
