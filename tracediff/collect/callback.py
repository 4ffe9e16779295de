"""`LoopRecorder` records steps of a loop that a framework runs; the callbacks call it where a step ends."""

import os
from contextlib import ExitStack, suppress
from functools import partial
from inspect import signature
from typing import Any

from tracediff.collect.record import Recorder, record_steps, say


class LoopRecorder:
    """Records steps of each training as a run of a set, as `record_steps` does. It never raises: what goes wrong is a
    line on standard error, and the training goes on without it.

    Args:
        out, options: as for `record_steps`.
    """

    def __init__(self, out: str | os.PathLike[str], **options: Any) -> None:
        signature(record_steps).bind(out, **options)  # what is unknown is an error now, and not a line at the start
        self._record = partial(record_steps, out, **options)
        self._open = ExitStack()
        self._recorder: Recorder | None = None

    def start(self) -> None:
        """The training begins."""
        self.stop()
        try:
            self._recorder = self._open.enter_context(self._record())
        except Exception as error:
            self._give_up(error)

    def step(self) -> None:
        """A step of the optimizer has ended."""
        if self._recorder is None:
            return
        try:
            self._recorder.step()
        except Exception as error:
            self._give_up(error)
            return
        if self._recorder.steps == self._recorder.recorded.stop:
            self.stop()

    def stop(self) -> None:
        """The training ends, or all steps are recorded: the run is complete, or a line says why there is none."""
        if self._recorder is None:
            return
        self._recorder = None
        try:
            self._open.close()
        except Exception as error:
            say(f"warning: {error}")

    def _give_up(self, error: Exception) -> None:
        self._recorder = None
        with suppress(Exception):  # the error that ended the recording is the one to report
            self._open.close()
        say(f"warning: nothing is recorded: {error}")
