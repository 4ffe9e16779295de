"""`TracediffCallback` for `transformers.Trainer`."""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from tracediff.collect.callback import LoopRecorder


class TracediffCallback(TrainerCallback):
    """Records steps of each training of a `transformers.Trainer` as a run of the set ``out``.

    A step is one of the optimizer, whatever the number of batches that it accumulates. Each rank writes its own file.
    Nothing that goes wrong ends the training: it is a line on standard error.

    Args:
        out: folder of the set; use the same folder for runs of the same program.
        options: wait, warmup, active, record_shapes, with_stack, profile_memory, rank and provenance, as for
            `tracediff.record_steps`.

    Example:
        >>> Trainer(…, callbacks=[TracediffCallback("traces/before", wait=10)]).train()
    """

    def __init__(self, out: str | os.PathLike[str], **options: Any) -> None:
        self._loop = LoopRecorder(out, **options)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Called by the trainer."""
        self._loop.start()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Called by the trainer, once per step of the optimizer."""
        self._loop.step()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Called by the trainer."""
        self._loop.stop()
