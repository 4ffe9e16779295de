"""What stands out in one set. Thresholds are those of a comparison's findings (docs/findings.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.program import straggler_of
from tracediff.diff.findings.step import BUSY_STATES, GPU_BOUND, HOST_BOUND, PART_OF_CHANGE, outliers_of
from tracediff.formatting import part, time

if TYPE_CHECKING:
    from tracediff.analysis.analysis import Analysis

ADVICE = {
    "data_loading": (kinds.DATA_LOADING, "waiting for the DataLoader", "Look at workers, prefetch and storage."),
    "gpu_comm": (
        kinds.EXPOSED_COMMUNICATION,
        "communication that no kernel hides",
        "Overlap it, or look for the rank that comes late.",
    ),
    "synchronising": (
        kinds.SYNCHRONISATION,
        "the host waiting for the GPU while the GPU is idle",
        "Look for calls that read from the device.",
    ),
    "launching": (kinds.LAUNCH_BOUND, "waiting for launches", "Fewer, larger kernels or CUDA graphs shorten it."),
}
"""State → (kind, what it is, what to do), where it is a large part of the step."""


def find(analysis: Analysis) -> tuple[Finding, ...]:
    """Every finding, the largest part of the step first."""
    step = analysis.us(analysis.period)
    found = [
        *_bound(analysis),
        *_states(analysis),
        *outliers_of(analysis.side, analysis.side.label),
        *straggler_of(analysis.side, step, analysis.side.label),
    ]
    return tuple(sorted(found, key=lambda f: (-abs(f.weight_us), f.code, f.title)))


def _bound(analysis: Analysis) -> list[Finding]:
    """host-bound and gpu-bound."""
    if not analysis.side.has_gpu or not analysis.period:
        return []
    busy = sum(s.ns for s in analysis.states if s.name in BUSY_STATES)
    idle = analysis.period - busy
    evidence = (_one("GPU busy", analysis.us(busy)), _one("GPU idle", analysis.us(idle)))
    said = f"The GPU is idle {part(idle, analysis.period)} of the step."
    if idle >= HOST_BOUND * analysis.period:
        detail = f"{said} The step takes as long as the host needs: faster kernels would not shorten it."
        return [
            Finding(kinds.HOST_BOUND, "the host sets the pace", detail, weight_us=analysis.us(idle), evidence=evidence)
        ]
    if idle <= GPU_BOUND * analysis.period:
        detail = f"{said} What the host saves does not shorten it."
        return [
            Finding(kinds.GPU_BOUND, "the GPU sets the pace", detail, weight_us=analysis.us(busy), evidence=evidence)
        ]
    return []


def _states(analysis: Analysis) -> list[Finding]:
    """States that make up a large part of the step and that something can be done about."""
    found = []
    for state in analysis.states:
        if state.name in ADVICE and state.ns >= PART_OF_CHANGE * analysis.period > 0:
            kind, what, advice = ADVICE[state.name]
            us = analysis.us(state.ns)
            found.append(
                Finding(
                    kind,
                    f"{what}: {time(us)} a step",
                    f"That is {part(state.ns, analysis.period)} of the step. {advice}",
                    weight_us=us,
                )
            )
    return found


def _one(name: str, us: float) -> Evidence:
    """Evidence of one set: it has no other side."""
    return Evidence(f"{name}: {time(us)} a step")
