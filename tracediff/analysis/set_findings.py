"""The findings of one set: what bounds the step, what of it can be shortened, and which steps and ranks are unlike the
others (docs/analysis.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.analysis.finding import Finding
from tracediff.analysis.late_ranks import straggler
from tracediff.analysis.outlier_steps import outliers
from tracediff.formatting import part, time

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.analysis.analysis import Analysis

Weighted = tuple[float, Finding]
"""(µs per step that it concerns, finding)."""
PART_OF_STEP = 0.25
"""Smallest fraction of the step from which a state is a finding."""
BUSY_STATES = ("gpu_compute", "gpu_comm", "gpu_copy")
HOST_BOUND, GPU_BOUND = 0.5, 0.1
"""Smallest idle fraction of a host-bound step, largest of a GPU-bound one."""
ADVICE = {
    "data_loading": (
        "data-loading",
        "waiting for the DataLoader",
        "Load in worker processes, or tune workers, prefetching and storage.",
    ),
    "gpu_comm": (
        "exposed-communication",
        "exposed communication",
        "Overlap it with compute kernels, change the bucket size, or look for stragglers.",
    ),
    "synchronising": (
        "synchronisation",
        "synchronising while the GPU is idle",
        "Look for calls that read from the device.",
    ),
    "launching": (
        "launch-bound",
        "waiting for kernel launches",
        "Launch fewer, larger kernels, or use CUDA graphs.",
    ),
}
"""State → (code, what the state is, what to do if it is a large part of the step)."""


def find(analysis: Analysis) -> tuple[Finding, ...]:
    """Every finding, the largest part of the step first."""
    found = [
        *_bound(analysis),
        *_states(analysis),
        *_outlier_steps(analysis.side),
        *straggler(analysis.side, analysis.us(analysis.period)),
    ]
    return tuple(finding for _, finding in sorted(found, key=lambda f: (-f[0], f[1].code, f[1].title)))


def _bound(analysis: Analysis) -> list[Weighted]:
    """host-bound and gpu-bound."""
    if not analysis.side.has_gpu or not analysis.period:
        return []
    busy = sum(s.ns for s in analysis.states if s.name in BUSY_STATES)
    idle = analysis.period - busy
    times = {"GPU busy": analysis.us(busy), "GPU idle": analysis.us(idle)}
    evidence = tuple(f"{name}: {time(us)} per step" for name, us in times.items())
    idle_text = f"GPU idle for {part(idle, analysis.period)} of the step"
    if idle >= HOST_BOUND * analysis.period:
        title, detail = (
            f"the step is host-bound: {idle_text}",
            "Speed up the host; faster kernels shorten the step only where the host waits for them.",
        )
        return [(analysis.us(idle), Finding("host-bound", title, detail, evidence=evidence))]
    if idle <= GPU_BOUND * analysis.period:
        title, detail = (
            f"the step is GPU-bound: {idle_text}",
            "Speed up kernels: host savings will not shorten the step.",
        )
        return [(analysis.us(busy), Finding("gpu-bound", title, detail, evidence=evidence))]
    return []


def _states(analysis: Analysis) -> list[Weighted]:
    """States that make up a large part of the step and that can be shortened."""
    found = []
    for state in analysis.states:
        if state.name in ADVICE and state.ns >= PART_OF_STEP * analysis.period > 0:
            code, what, advice = ADVICE[state.name]
            us = analysis.us(state.ns)
            detail = f"This is {part(state.ns, analysis.period)} of the step. {advice}"
            found.append((us, Finding(code, f"{what}: {time(us)} per step", detail)))
    return found


def _outlier_steps(side: Side) -> list[Weighted]:
    """outlier-step: used steps far from their run's median."""
    odd = outliers(side.steps)
    if not odd:
        return []
    listed = "; ".join(
        f"{f'{o.run}, ' if side.runs > 1 else ''}step {o.step.number}: {time(o.step.period_ns / 1000)} "
        f"(median {time(o.median_ns / 1000)})"
        for o in odd[:3]
    )
    detail = (
        f"Period of {listed}{' …' if len(odd) > 3 else ''}. Outliers count in the mean, not in the median: "
        f"look at {'this step' if len(odd) == 1 else 'these steps'} in the timeline."
    )
    first, title = odd[0], f"{len(odd)} outlier steps in {side.label}"
    if len(odd) == 1:
        times = time(first.step.period_ns / 1000), time(first.median_ns / 1000)
        title = f"step {first.step.number} of {side.label} took {times[0]}, its run's median {times[1]}"
    return [(0.0, Finding("outlier-step", title, detail))]
