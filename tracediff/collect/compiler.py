"""torch.compile in a process that is measured: its graphs, breaks, recompilations and caches; its own log
(``TORCH_TRACE``) beside the trace, with the lines of code of each kernel; and inductor, its compiler, which a process
may import later or never.
"""

import gzip
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracediff.patterns import graph_break
from tracediff.process.temporary import temporary_file
from tracediff.write import make_folder

RECOMPILED = re.compile(
    r"Recompiling function (?P<function>\S+) in (?P<file>(?:(?!Recompiling function ).)+?):(?P<line>\d+)"
)
LOGGERS = ("torch._dynamo.symbolic_convert.__graph_breaks", "torch._dynamo.guards.__recompiles")
INDUCTOR, CONFIG = "_inductor", "torch._inductor.config"
CUDA_GRAPHS = "TORCHINDUCTOR_CUDAGRAPHS"
"""The variable by which inductor uses CUDA graphs everywhere: a starting profiler reads it from inductor's settings."""


class CompileLog(logging.Handler):
    """A log handler that records graph breaks and recompilations; attach it before anything is compiled.

    Attributes:
        graph_breaks: file name, line and reason of each distinct break.
        recompiles: function, file name, line and reason of each recompilation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph_breaks: list[dict[str, Any]] = []
        self.recompiles: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Start recording; torch no longer prints these messages."""
        import torch

        torch._logging.set_logs(graph_breaks=True, recompiles=True)
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.handlers[:] = [self]
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Record the graph break or recompilation of a log message; called by logging."""
        text = record.getMessage()
        if break_fields := graph_break(text):
            described = dict(zip(("file", "line", "reason"), break_fields, strict=True))
            if described not in self.graph_breaks:
                self.graph_breaks.append(described)
        recompile_match = RECOMPILED.search(text)
        if recompile_match:
            reason = next((line.strip(" -") for line in text.splitlines() if line.strip().startswith("- ")), "")
            self.recompiles.append(
                {
                    "function": recompile_match["function"],
                    "file": Path(recompile_match["file"]).name,
                    "line": int(recompile_match["line"]),
                    "reason": reason[:300],
                }
            )

    def summary(self) -> dict[str, Any]:
        """The statistics, as a dictionary for the manifest; times in seconds."""
        from torch._dynamo.utils import counters, get_compilation_metrics

        metrics = list(get_compilation_metrics())
        inductor = dict(counters["inductor"])
        return {
            "graph_count": int(counters["stats"].get("unique_graphs", 0)),
            "graph_breaks": self.graph_breaks,
            "recompiles": self.recompiles,
            "cudagraph_skips": int(inductor.get("cudagraph_skips", 0)),
            "cache_hits": int(inductor.get("fxgraph_cache_hit", 0)),
            "cache_misses": int(inductor.get("fxgraph_cache_miss", 0)),
            "compile_s": sum(getattr(m, "entire_frame_compile_time_s", None) or 0.0 for m in metrics),
            "backend_compile_s": sum(getattr(m, "backend_compile_time_s", None) or 0.0 for m in metrics),
            "guards": sum(getattr(m, "guard_count", None) or 0 for m in metrics),
        }


def show_compiled_kernels() -> None:
    """Record CPU kernels compiled from now on; otherwise their time is self time of the compiled region."""
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
    if CONFIG in sys.modules:  # already imported: it no longer reads the environment
        sys.modules[CONFIG].cpp.enable_kernel_profile = True


@contextmanager
def without_importing_inductor() -> Iterator[None]:
    """Start a profiler in this context: it asks whether torch has inductor, and asking imports it, for seconds.

    A program that compiles has imported it before; for that, for CUDA graphs by the environment, and for a torch that
    imports it in another way, this changes nothing.
    """
    on_demand = getattr(sys.modules.get("torch"), "_lazy_modules", None)
    is_asked_for = f"torch.{INDUCTOR}" in sys.modules or CUDA_GRAPHS in os.environ
    if is_asked_for or not isinstance(on_demand, set) or INDUCTOR not in on_demand:
        yield
        return
    on_demand.discard(INDUCTOR)
    try:
        yield
    finally:
        on_demand.add(INDUCTOR)


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
    trace = getattr(sys.modules.get(CONFIG), "trace", None)
    return getattr(trace, "provenance_tracking_level", None)


def _set_level(level: int) -> None:
    sys.modules[CONFIG].trace.provenance_tracking_level = level
