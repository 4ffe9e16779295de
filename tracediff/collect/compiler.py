"""torch.compile in a process that is measured: its graphs, breaks, recompilations and caches; and inductor, its
compiler, which a process may import later or never.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracediff.patterns import graph_break

RECOMPILED = re.compile(
    r"Recompiling function (?P<function>\S+) in (?P<file>(?:(?!Recompiling function ).)+?):(?P<line>\d+)"
)
LOGGERS = ("torch._dynamo.symbolic_convert.__graph_breaks", "torch._dynamo.guards.__recompiles")
INDUCTOR = "_inductor"
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
    config = sys.modules.get("torch._inductor.config")
    if config is not None:  # already imported: it no longer reads the environment
        config.cpp.enable_kernel_profile = True


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
