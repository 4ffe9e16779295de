"""tracediff: why a training step got faster or slower.

Two sets of PyTorch profiler traces go in; the result accounts for every microsecond of the difference. Five names do
most:

- ``with record_steps(path) as p:`` records the steps of a loop, which calls ``p.step()``, as a set of traces.
- ``compare(control, test)`` compares two sets, and ``print(diff)`` shows the answer:
  ``diff = tracediff.compare("before/", "after/")``.
- ``diff.verdict`` says whether the step got faster, ``diff.because`` why, in a sentence.
- ``diff.explanation`` has the causes, which add up: ``print(diff.explanation)``, or ``.to_frame()``.
- ``check(control, test, max_regression="3%")`` is the gate for CI.

`load` gives a set with options (steps, ranks, tables), `analyze` looks at one set, `matrix` compares many.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tracediff.collect as collect
    from tracediff.aggregate.traceset import TraceSet as TraceSet
    from tracediff.analysis import Finding as Finding
    from tracediff.api.diff import Diff as Diff
    from tracediff.api.functions import (
        analyze as analyze,
        check as check,
        compare as compare,
        load as load,
        matrix as matrix,
        snapshot as snapshot,
    )
    from tracediff.api.results import Check as Check, Matrix as Matrix, SetAnalysis as SetAnalysis
    from tracediff.collect.record import on_trace_ready as on_trace_ready, record_steps as record_steps
    from tracediff.diff.verdict import Verdict as Verdict
    from tracediff.errors import NotATrace as NotATrace, TracediffError as TracediffError

__version__ = "0.1.0"
_HOMES = {
    "Check": "tracediff.api.results",
    "Diff": "tracediff.api.diff",
    "Finding": "tracediff.analysis",
    "Matrix": "tracediff.api.results",
    "NotATrace": "tracediff.errors",
    "SetAnalysis": "tracediff.api.results",
    "TraceSet": "tracediff.aggregate.traceset",
    "TracediffError": "tracediff.errors",
    "Verdict": "tracediff.diff.verdict",
    "analyze": "tracediff.api.functions",
    "check": "tracediff.api.functions",
    "compare": "tracediff.api.functions",
    "load": "tracediff.api.functions",
    "matrix": "tracediff.api.functions",
    "on_trace_ready": "tracediff.collect.record",
    "record_steps": "tracediff.collect.record",
    "snapshot": "tracediff.api.functions",
}
"""Public name → the module that defines it."""

__all__ = ["__version__", "collect", *_HOMES]


# Nothing heavy is imported here: each name is loaded when it is first used (PEP 562).
def __getattr__(name: str) -> Any:
    if name == "collect":  # the package itself, which can be called
        return import_module("tracediff.collect")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tracediff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
