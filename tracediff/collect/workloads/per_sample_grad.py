"""Per-sample gradients of a convolutional net: one sample after another, or vmap over grad."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import calling, sizes

TITLE = "per-sample gradients of a small convolutional net"
SIZES = sizes("image width batch", tiny=(16, 8, 8), small=(28, 32, 32), full=(28, 32, 256))
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

    if variant.choice(*OWN) == "vmap":
        return calling(variant, device, variant(by_vmap), images, labels, model=model)
    forward = variant(model, images[:1])

    def by_loop(images: Tensor, labels: Tensor) -> list[Tensor]:
        losses = [cross_entropy(forward(x[None]), label[None]) for x, label in zip(images, labels, strict=True)]
        samples = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
        return [torch.stack(gradients) for gradients in zip(*samples, strict=True)]

    return calling(variant, device, by_loop, images, labels, model=model)
