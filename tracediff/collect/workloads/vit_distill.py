"""Training a vision transformer with an expensive loss: distillation from a teacher's logits at several
temperatures.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, softmax

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.vit import Vit
from tracediff.errors import TracediffError

TITLE = "training step of a vision transformer with an expensive distillation loss (Adam)"
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"image": 32, "patch": 8, "width": 96, "depth": 2, "heads": 3, "classes": 4096, "batch": 8},
    "small": {"image": 224, "patch": 16, "width": 384, "depth": 12, "heads": 6, "classes": 21841, "batch": 32},
    "full": {"image": 224, "patch": 16, "width": 768, "depth": 12, "heads": 12, "classes": 21841, "batch": 64},
}
OWN = ("loss_eager", "loss_compiled", "one_graph")
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


class WithLoss(nn.Module):
    """A model and its loss as one module."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
        """Images, the teacher's logits and labels → the loss."""
        return distillation(self.model(images), teacher, labels)


def make(variant: Variant, device: str, batch: int, **size: Any) -> Task:
    """The training step; ``compile`` compiles the model, ``loss_compiled`` also the loss, ``one_graph`` both as one."""
    compiled_part = variant.choice(*OWN)
    if compiled_part == "loss_compiled" and not variant.compiles:
        raise TracediffError(f"--variant {variant.text}", "loss_compiled needs compile", "write compile+loss_compiled")
    model = Vit(**size).to(device)
    images = torch.randn(batch, 3, size["image"], size["image"], device=device)
    teacher = 4 * torch.randn(batch, size["classes"], device=device)
    labels = torch.randint(0, size["classes"], (batch,), device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    if compiled_part == "one_graph":
        forward = variant(WithLoss(model), images, teacher, labels)
    else:
        logits = variant(model, images)
        loss_function = variant(distillation) if compiled_part == "loss_compiled" else distillation

        def forward(images: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
            return loss_function(logits(images), teacher, labels)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            loss = forward(images, teacher, labels)
        loss.backward()
        optimizer.step()
        return loss

    return Task(step, model)
