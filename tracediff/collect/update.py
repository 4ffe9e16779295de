"""The part of a training step behind the loss: gradients and optimizer, with what a variant adds to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Update = Callable[[Any], None]
"""Given the loss, computes the gradients and steps the optimizer."""


def update_of(optimizer: Any, device: str, is_scaled: bool, is_compiled: bool) -> Update:
    """The update by ``optimizer``.

    Args:
        is_scaled: scale the loss, so that small gradients in float16 are not rounded to 0 (torch.amp.GradScaler).
        is_compiled: compile the step of the optimizer.
    """
    import torch

    if is_compiled:
        optimizer.step = torch.compile(optimizer.step)
    if not is_scaled:

        def update(loss: Any) -> None:
            loss.backward()
            optimizer.step()

        return update

    scaler = torch.amp.GradScaler(device.partition(":")[0], init_scale=SCALE)

    def scaled_update(loss: Any) -> None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return scaled_update


SCALE = 2.0**10
"""At first; torch's 2**16 makes the first gradients infinite, and steps that the optimizer omits are less work."""
