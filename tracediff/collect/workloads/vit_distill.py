"""Training a vision transformer with an expensive loss: distillation from a teacher's logits at several
temperatures, or the distance to a larger transformer, the expert.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, mse_loss, softmax

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import sizes, training
from tracediff.collect.workloads.vit import Vit
from tracediff.errors import TracediffError

TITLE = "training step of a vision transformer with an expensive loss: distillation, or a larger expert (Adam)"
SIZES = sizes(
    "image patch width depth heads classes batch expert",
    tiny=(32, 8, 96, 2, 3, 4096, 8, 6),
    small=(224, 16, 384, 12, 6, 21841, 32, 24),
    full=(224, 16, 768, 12, 12, 21841, 64, 24),
)
OWN = ("loss_eager", "loss_compiled", "one_graph", "distilled", "expert")
VARIANTS = ("eager", "compile+loss_eager", "compile+loss_compiled", "compile+one_graph")
TEMPERATURES = (1.0, 2.0, 4.0, 8.0)


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
    """A model and its loss as one module.

    Args:
        loss: of the model's logits, what they are compared with, and labels.
    """

    def __init__(self, model: Any, loss: Any) -> None:
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
    reference = 4 * torch.randn(batch, size["classes"], device=device)
    labels = torch.randint(0, size["classes"], (batch,), device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loss: Any = distillation
    if variant.choice("distilled", "expert") == "expert":
        loss, reference = Expert(expert, **size).to(device), images
    if compiled_part == "one_graph":
        forward = variant(WithLoss(model, loss), images, reference, labels)
    else:
        logits = variant(model, images)
        loss = variant(loss) if compiled_part == "loss_compiled" else loss

        def forward(images: Tensor, reference: Tensor, labels: Tensor) -> Tensor:
            return loss(logits(images), reference, labels)

    return training(variant, device, model, optimizer, forward, repeat((images, reference, labels)), batch)
