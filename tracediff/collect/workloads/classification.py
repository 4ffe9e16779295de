"""The training step of classifiers whose batches come from an iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from tracediff.collect.variant import Variant


def training_step(
    variant: Variant, device: str, forward: Callable[[Tensor], Tensor], optimizer: Any, batches: Iterator[Any]
) -> Callable[[], Tensor]:
    """A step that fetches a batch (inputs and labels), and trains on it with cross-entropy."""
    update = variant.update(optimizer, device)

    def step() -> Tensor:
        x, labels = (part.to(device, non_blocking=True) for part in next(batches))
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            loss = cross_entropy(forward(x), labels)
        update(loss)
        return loss

    return step
