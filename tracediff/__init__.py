"""tracediff: why a training step got faster or slower.

Two sets of PyTorch profiler traces go in; what comes out names every microsecond of the difference. Data goes one way
through the stages:
collect → ingest → profile → diff → charts → report. This module imports nothing heavy: each name is loaded when first
used (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracediff.version import VERSION

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import TraceSet as TraceSet
    from tracediff.api import Diff as Diff
    from tracediff.api import SetAnalysis as SetAnalysis
    from tracediff.api import analyze as analyze
    from tracediff.api import compare as compare
    from tracediff.api import load as load
    from tracediff.collect.record import record_steps as record_steps
    from tracediff.errors import TracediffError as TracediffError

__version__ = VERSION
__all__ = [
    "Diff",
    "SetAnalysis",
    "TraceSet",
    "TracediffError",
    "__version__",
    "analyze",
    "compare",
    "load",
    "record_steps",
]

_HOMES = {
    "analyze": "tracediff.api",
    "SetAnalysis": "tracediff.api",
    "compare": "tracediff.api",
    "load": "tracediff.api",
    "record_steps": "tracediff.collect.record",
    "Diff": "tracediff.api",
    "TraceSet": "tracediff.aggregate.traceset",
    "TracediffError": "tracediff.errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tracediff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
