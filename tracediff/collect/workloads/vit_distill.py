"""Training a vision transformer with an expensive loss: distillation from a teacher's logits at several
temperatures, or the distance to a larger transformer, the expert.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, mse_loss, softmax

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.vit import Vit
from tracediff.errors import TracediffError

TITLE = "training step of a vision transformer with an expensive loss: distillation, or a larger expert (Adam)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"image": 32, "patch": 8, "width": 96, "depth": 2, "heads": 3, "classes": 4096, "batch": 8, "expert": 6},
    "small": {
        "image": 224,
        "patch": 16,
        "width": 384,
        "depth": 12,
        "heads": 6,
        "classes": 21841,
        "batch": 32,
        "expert": 24,
    },
    "full": {
        "image": 224,
        "patch": 16,
        "width": 768,
        "depth": 12,
        "heads": 12,
        "classes": 21841,
        "batch": 64,
        "expert": 24,
    },
}
OWN = ("loss_eager", "loss_compiled", "one_graph", "distilled", "expert")
VARIANTS = ("eager", "compile+loss_eager", "compile+loss_compiled", "compile+one_graph")
TEMPERATURES = (1.0, 2.0, 4.0, 8.0)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The student's logits, what they are compared with, and labels → the loss."""


def distillation(student: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, and a focal Jensen–Shannon divergence from the centred, sharpened teacher at each temperature."""
    loss = cross_entropy(student, labels)
    centred = teacher - teacher.mean(0, keepdim=True)
    for temperature in TEMPERATURES:
        log_q = log_softmax(student / temperature, -1)
        p, q = softmax(centred / (0.5 * temperature), -1), log_q.exp()
        log_middle = (0.5 * (p + q)).clamp_min(1e-9).log()
        divergence = 0.5 * (p * (p.clamp_min(1e-9).log() - log_middle) + q * (log_q - log_middle))
        focus = (p - q).abs().sqrt().detach()
        loss = loss + temperature**2 * (divergence * (1 + focus)).sum(-1).mean()
    return loss


class Expert(nn.Module):
    """A loss: the mean square distance of the student's logits to those of a larger transformer.

    Args:
        blocks: depth of that transformer, whose other sizes are the student's.
    """

    def __init__(self, blocks: int, **size: Any) -> None:
        super().__init__()
        self.expert = Vit(**{**size, "depth": blocks}).eval().requires_grad_(False)

    def forward(self, student: Tensor, images: Tensor, _: Tensor) -> Tensor:
        """Logits and the images that they are for → the loss."""
        return mse_loss(student, self.expert(images))


class WithLoss(nn.Module):
    """A model and its loss as one module."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, images: Tensor, reference: Tensor, labels: Tensor) -> Tensor:
        """Images, what the loss refers to, and labels → the loss."""
        return self.loss(self.model(images), reference, labels)


def make(variant: Variant, device: str, batch: int, expert: int, **size: Any) -> Task:
    """The training step; ``compile`` compiles the model, ``loss_compiled`` also the loss, ``one_graph`` both as one."""
    compiled_part = variant.choice("loss_eager", "loss_compiled", "one_graph")
    if compiled_part == "loss_compiled" and not variant.compiles:
        raise TracediffError(f"--variant {variant.text}", "loss_compiled needs compile", "write compile+loss_compiled")
    model = Vit(**size).to(device)
    images = torch.randn(batch, 3, size["image"], size["image"], device=device)
    teacher = 4 * torch.randn(batch, size["classes"], device=device)
    labels = torch.randint(0, size["classes"], (batch,), device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    update = variant.update(optimizer, device)
    loss: Loss = distillation
    reference = teacher
    if variant.choice("distilled", "expert") == "expert":
        loss, reference = Expert(expert, **size).to(device), images
    if compiled_part == "one_graph":
        forward = variant(WithLoss(model, loss), images, reference, labels)
    else:
        logits = variant(model, images)
        loss_function = variant(loss) if compiled_part == "loss_compiled" else loss

        def forward(images: Tensor, reference: Tensor, labels: Tensor) -> Tensor:
            return loss_function(logits(images), reference, labels)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            loss = forward(images, reference, labels)
        update(loss)
        return loss

    return Task(step, model, batch)
