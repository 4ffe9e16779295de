"""Inductor, the compiler behind torch.compile, which a process may import later or never."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NAME = "_inductor"
CUDA_GRAPHS = "TORCHINDUCTOR_CUDAGRAPHS"
"""The variable by which inductor uses CUDA graphs everywhere: a starting profiler reads it from inductor's settings."""


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
    is_asked_for = f"torch.{NAME}" in sys.modules or CUDA_GRAPHS in os.environ
    if is_asked_for or not isinstance(on_demand, set) or NAME not in on_demand:
        yield
        return
    on_demand.discard(NAME)
    try:
        yield
    finally:
        on_demand.add(NAME)
