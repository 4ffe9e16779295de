"""torch.compile's own log (``TORCH_TRACE``), beside the trace that is recorded: the lines of code of each kernel."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracediff.process.temporary import temporary_file
from tracediff.write import make_folder

FOLDER = "torch_trace"
"""The folder beside a trace whose logs are read with it."""
LOGGER = logging.getLogger("torch.__trace")
PHASES_AGAIN = "chromium_event"
"""Records that repeat others, with times, for a trace viewer: half of a log."""
LEVEL = "INDUCTOR_PROVENANCE"
"""The variable that inductor, once imported, takes its level of provenance from."""


class CompileTrace(logging.Handler):
    """Records what torch compiles; see `compile_trace`.

    Attributes:
        path: the file that `keep` writes.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._partial = temporary_file(path.parent.parent, ".log")
        self._process = os.getpid()
        self._file: Any = None

    def emit(self, record: logging.LogRecord) -> None:
        """Record a message; called by logging."""
        if os.getpid() != self._process:  # a child's handler is a copy of this one
            return
        if PHASES_AGAIN in getattr(record, "metadata", ()):
            return
        try:
            if self._file is None:
                make_folder(self._partial.parent)
                self._file = self._partial.open("w", encoding="utf-8", errors="replace")
            self._file.write(f"{self.format(record)}\n")
        except Exception:  # a log that cannot be written does not stop what is compiled
            self.close()

    def keep(self) -> None:
        """Write what was recorded so far, whole, and record no more; without a file if nothing was compiled."""
        LOGGER.removeHandler(self)
        if self._file is None:
            return
        packed = self._partial.with_suffix(".gz")
        try:
            self._file.close()
            make_folder(self.path.parent)
            with self._partial.open("rb") as plain, gzip.open(packed, "wb", 6) as out:
                shutil.copyfileobj(plain, out)
            os.replace(packed, self.path)
        finally:
            packed.unlink(missing_ok=True)
            self._forget()

    def close(self) -> None:
        """Record no more; what was not kept is gone."""
        LOGGER.removeHandler(self)
        self._forget()
        super().close()

    def _forget(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                self._partial.unlink(missing_ok=True)
            self._file = None


@contextmanager
def compile_trace(path: Path) -> Iterator[CompileTrace]:
    """Have torch log what it compiles, with the lines of code of each kernel, until the log is kept or this ends.

    Compiling takes a few percent longer; what is compiled is the same. A torch without such a log writes none.
    """
    log = CompileTrace(path)
    with suppress(ImportError, TypeError):  # torch has no public way to add a log
        from torch._logging._internal import TorchLogsFormatter

        log.setFormatter(TorchLogsFormatter(trace=True))
        LOGGER.addHandler(log)
    with _lines_of_kernels():
        try:
            yield log
        finally:
            log.close()


@contextmanager
def _lines_of_kernels() -> Iterator[None]:
    """Have inductor, which may be imported only later, record which lines of code each kernel is of, unless the
    environment says whether to.
    """
    if LEVEL in os.environ:
        yield
        return
    before = _level()
    os.environ[LEVEL] = "1"
    if before == 0:
        _set_level(1)
    try:
        yield
    finally:
        os.environ.pop(LEVEL, None)
        if not before and _level() == 1:
            _set_level(0)


def _level() -> int | None:
    """Inductor's level, None where it is not imported or has none."""
    trace = getattr(sys.modules.get("torch._inductor.config"), "trace", None)
    return getattr(trace, "provenance_tracking_level", None)


def _set_level(level: int) -> None:
    sys.modules["torch._inductor.config"].trace.provenance_tracking_level = level
