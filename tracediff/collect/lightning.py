"""`TracediffCallback` for the Trainer of Lightning, from the package ``lightning`` or ``pytorch_lightning``."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tracediff.collect.callback import LoopRecorder

OLD_PACKAGE = "pytorch_lightning"
if TYPE_CHECKING or ("lightning" not in sys.modules and OLD_PACKAGE in sys.modules) or not find_spec("lightning"):
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback


class TracediffCallback(Callback):
    """Records steps of each training of a Lightning ``Trainer`` as a run of the set ``out``.

    A step ends with the batch in which an optimizer has stepped: with ``accumulate_grad_batches=4`` it has four. Each
    rank writes its own file. Nothing that goes wrong ends the training: it is a line on standard error.

    Args:
        out: folder of the set; use the same folder for runs of the same program.
        options: wait, warmup, active, record_shapes, with_stack, profile_memory, rank and provenance, as for
            `tracediff.record_steps`.

    Example:
        >>> Trainer(…, callbacks=[TracediffCallback("traces/before", wait=10)]).fit(model)
    """

    def __init__(self, out: str | os.PathLike[str], **options: Any) -> None:
        self._loop = LoopRecorder(out, **options)
        self._optimizer_steps = 0

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        """Called by the trainer."""
        self._optimizer_steps = trainer.global_step
        self._loop.start()

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Called by the trainer."""
        if trainer.global_step != self._optimizer_steps:  # it counts the steps of all optimizers
            self._optimizer_steps = trainer.global_step
            self._loop.step()

    def on_train_end(self, *_: Any) -> None:
        """Called by the trainer."""
        self._loop.stop()

    def on_exception(self, *_: Any) -> None:
        """Called by the trainer when the training fails or is interrupted."""
        self._loop.stop()
