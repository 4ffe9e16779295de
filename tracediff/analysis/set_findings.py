"""The findings of one set. Thresholds are those of a comparison's findings (docs/findings.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.ranks import straggler_of
from tracediff.diff.findings.step import outliers_of
from tracediff.diff.reach import BUSY_STATES, GPU_BOUND, HOST_BOUND
from tracediff.formatting import part, time

if TYPE_CHECKING:
    from tracediff.analysis.analysis import Analysis

PART_OF_STEP = 0.25
"""Smallest fraction of the step from which a state is a finding."""
ADVICE = {
    "data_loading": (
        kinds.DATA_LOADING,
        "waiting for the DataLoader",
        "Load in worker processes, or tune workers, prefetching and storage.",
    ),
    "gpu_comm": (
        kinds.EXPOSED_COMMUNICATION,
        "exposed communication",
        "Overlap it with compute kernels, change the bucket size, or look for stragglers.",
    ),
    "synchronising": (
        kinds.SYNCHRONISATION,
        "synchronising while the GPU is idle",
        "Look for calls that read from the device.",
    ),
    "launching": (
        kinds.LAUNCH_BOUND,
        "waiting for kernel launches",
        "Launch fewer, larger kernels, or use CUDA graphs.",
    ),
}
"""State → (kind of finding, what the state is, what to do if it is a large part of the step)."""


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
    evidence = (_time_evidence("GPU busy", analysis.us(busy)), _time_evidence("GPU idle", analysis.us(idle)))
    idle_text = f"GPU idle for {part(idle, analysis.period)} of the step"
    if idle >= HOST_BOUND * analysis.period:
        title, detail = (
            f"the step is host-bound: {idle_text}",
            "Speed up the host; faster kernels shorten the step only where the host waits for them.",
        )
        return [Finding(kinds.HOST_BOUND, title, detail, weight_us=analysis.us(idle), evidence=evidence)]
    if idle <= GPU_BOUND * analysis.period:
        title, detail = (
            f"the step is GPU-bound: {idle_text}",
            "Speed up kernels: host savings will not shorten the step.",
        )
        return [Finding(kinds.GPU_BOUND, title, detail, weight_us=analysis.us(busy), evidence=evidence)]
    return []


def _states(analysis: Analysis) -> list[Finding]:
    """States that make up a large part of the step and that can be shortened."""
    found = []
    for state in analysis.states:
        if state.name in ADVICE and state.ns >= PART_OF_STEP * analysis.period > 0:
            kind, what, advice = ADVICE[state.name]
            us = analysis.us(state.ns)
            found.append(
                Finding(
                    kind,
                    f"{what}: {time(us)} per step",
                    f"This is {part(state.ns, analysis.period)} of the step. {advice}",
                    weight_us=us,
                )
            )
    return found


def _time_evidence(name: str, us: float) -> Evidence:
    """Evidence with a time of one set."""
    return Evidence(f"{name}: {time(us)} per step")
