"""Findings of the step account: what bounds the step, and which states changed."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import change, count, part, percents, plural, rose, signed_time, time
from tracediff.runtimes import CALL_CATEGORIES, is_synchronising, may_wait

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind

BUSY_STATES = ("gpu_compute", "gpu_comm", "gpu_copy")
HOST_BOUND, GPU_BOUND = 0.5, 0.1
"""Smallest idle fraction of a host-bound step, largest of a GPU-bound one, on both sides."""
PART_OF_CHANGE = 0.25
"""Smallest change of a state that explains the step's change, as a fraction of it."""
LEAST_CHANGE = 0.01
"""Smallest change of the step that is explained, as a fraction of the period."""
OUTLIER_SD = 5.0
"""Robust standard deviations from its run's median beyond which a step is an outlier."""
ALTERNATING = 0.5
"""Fraction of the GPU's busy time that the host spends waiting from which GPU time counts in a host-bound step."""


BUSY_HOST = "It hardly counts: speed up the host."
WAITING_HOST = "GPU time matters as well, because the host waits for the GPU: speed up the host, or synchronise less."


def bound(comparison: Comparison) -> list[Finding]:
    """host-bound and gpu-bound: the GPU is idle for most of the period, or for little of it, on both sides."""
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return []
    step, us = comparison.step_time, comparison.us
    if not step.control or not step.test:
        return []
    busy = step.within(BUSY_STATES)
    idle = [1 - busy[0] / step.control, 1 - busy[1] / step.test]
    idle_text = f"GPU idle for {collapsed(percents(*idle))} of the step"
    waiting = us(step.control - busy[0]), us(step.test - busy[1])
    evidence = (Evidence("GPU busy", None, None, us(busy[0]), us(busy[1])), Evidence("GPU idle", None, None, *waiting))
    if min(idle) >= HOST_BOUND:
        waits_for_gpu = any(w >= ALTERNATING * b for w, b in zip(_waits(comparison), busy, strict=True))
        detail = (
            f"GPU busy time per step: {collapsed(change(us(busy[0]), us(busy[1])))}. "
            f"{WAITING_HOST if waits_for_gpu else BUSY_HOST}"
        )
        return [
            Finding(
                kinds.HOST_BOUND,
                f"the step is host-bound on both sides: {idle_text}",
                detail,
                weight_us=us(step.delta),
                evidence=evidence,
            )
        ]
    if max(idle) <= GPU_BOUND:
        return [
            Finding(
                kinds.GPU_BOUND,
                f"the step is GPU-bound on both sides: {idle_text}",
                "Speed up kernels: host savings will not shorten the step.",
                weight_us=us(step.delta),
                evidence=evidence,
            )
        ]
    return []


def _state(comparison: Comparison, names: tuple[str, ...], kind: FindingKind, what: str, advice: str) -> list[Finding]:
    """The finding of states ``names`` if their change is a large part of the step's."""
    step, us = comparison.step_time, comparison.us
    control, test = step.within(names)
    delta = test - control
    if (
        not step.delta
        or abs(step.delta) < LEAST_CHANGE * max(step.control, step.test)
        or abs(delta) < PART_OF_CHANGE * abs(step.delta)
    ):
        return []
    step_change = f"change of the step ({signed_time(us(step.delta))})"
    if (delta > 0) != (step.delta > 0):
        share = f"This partly offsets the {step_change}."
    elif abs(delta) > abs(step.delta):
        share = f"This exceeds the whole {step_change}; other states offset it."
    else:
        share = f"This is {part(abs(delta), abs(step.delta))} of the {step_change}."
    title = f"{what} {rose(control, test)}: {change(us(control), us(test))} per step"
    return [
        Finding(
            kind,
            title,
            f"{share} {advice}",
            delta_us=us(delta),
            weight_us=us(delta),
            evidence=(Evidence(what, None, None, us(control), us(test)),),
        )
    ]


def _waits(comparison: Comparison) -> tuple[int, int]:
    """Time per side that the host spends in calls that wait for the GPU."""
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and may_wait(op.raw_name)]
    return sum(op.control_self for op in calls), sum(op.test_self for op in calls)


def host_time(comparison: Comparison) -> list[Finding]:
    """host-time: host work while the GPU is idle."""
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return []
    advice = "Kernels are not the reason: look at operators and Python functions on the host."
    return _state(comparison, ("op", "python"), kinds.HOST_TIME, "host work while the GPU is idle", advice)


def data_loading(comparison: Comparison) -> list[Finding]:
    """data-loading: waiting for the DataLoader."""
    advice = "Kernels are not the reason: tune workers, prefetching and storage."
    return _state(comparison, ("data_loading",), kinds.DATA_LOADING, "waiting for the DataLoader", advice)


def launch_bound(comparison: Comparison) -> list[Finding]:
    """launch-bound: the GPU waits for kernel launches."""
    return _state(
        comparison,
        ("launching", "gpu_queued"),
        kinds.LAUNCH_BOUND,
        "waiting for kernel launches",
        "Launch fewer, larger kernels, or use CUDA graphs.",
    )


def exposed_communication(comparison: Comparison) -> list[Finding]:
    """exposed-communication: communication that no compute kernel overlaps."""
    advice = "Overlap it with compute kernels, change the bucket size, or look for stragglers."
    return _state(comparison, ("gpu_comm",), kinds.EXPOSED_COMMUNICATION, "exposed communication", advice)


def new_sync(comparison: Comparison) -> list[Finding]:
    """new-sync: more or fewer calls per step that wait for the device."""
    number, us = comparison.number, comparison.us
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and is_synchronising(op.raw_name)]
    control, test = sum(op.control_count for op in calls), sum(op.test_count for op in calls)
    waits = [sum(op.control_total for op in calls), sum(op.test_total for op in calls)]
    if control == test or abs(number(test - control)) < 1:
        return []
    state = next((s for s in comparison.step_time.states if s.name == "synchronising"), None)
    delta = us(state.delta) if state else 0.0
    title = f"synchronising calls {rose(control, test)}: {count(number(control))} → {count(number(test))} per step"
    detail = f"They take {collapsed(change(us(waits[0]), us(waits[1])))} per step"
    detail += f"; the time in them with an idle GPU changed by {signed_time(delta)}. " if delta else ". "
    detail += "Look for `.item()`, `.cpu()` and printed tensors."
    evidence = tuple(
        Evidence(op.raw_name, number(op.control_count), number(op.test_count), us(op.control_total), us(op.test_total))
        for op in calls[:5]
    )
    return [Finding(kinds.NEW_SYNC, title, detail, delta_us=delta, weight_us=delta, evidence=evidence)]


def outlier_steps(comparison: Comparison) -> list[Finding]:
    """outlier-step: used steps far from their run's median."""
    return [finding for side, name in named_sides(comparison) for finding in outliers_of(side, name)]


def named_sides(comparison: Comparison) -> list[tuple[Side, str]]:
    """Control and test with their names: their labels if these differ."""
    sides = comparison.control, comparison.test
    return list(
        zip(
            sides,
            [s.label for s in sides] if sides[0].label != sides[1].label else ("control", "test"),
            strict=True,
        )
    )


def outliers_of(side: Side, name: str) -> list[Finding]:
    """The finding of one side, called ``name``."""
    outliers = [
        text
        for run, steps in side.steps.items()
        for text in _outliers(side, run, [(s.number, s.period_ns) for s in steps])
    ]
    if not outliers:
        return []
    detail = (
        f"Period of {'; '.join(outliers[:3])}{' …' if len(outliers) > 3 else ''}. "
        f"Outliers count in the mean, not in the median: "
        f"look at {'this step' if len(outliers) == 1 else 'these steps'} in the timeline."
    )
    return [
        Finding(
            kinds.OUTLIER_STEP,
            f"{plural(len(outliers), 'outlier step')} in {name}",
            detail,
        )
    ]


def _outliers(side: Side, run: str, steps: list[tuple[int, int]]) -> list[str]:
    """Steps more than OUTLIER_SD robust standard deviations from the run's median; none among fewer than five."""
    if len(steps) < 5:
        return []
    middle = median(period for _, period in steps)
    spread = 1.4826 * median(abs(period - middle) for _, period in steps)
    spread = max(spread, 0.005 * middle)
    where = f"{run}, " if side.runs > 1 else ""
    return [
        f"{where}step {n}: {time(p / 1000)} (median {time(middle / 1000)})"
        for n, p in steps
        if abs(p - middle) > OUTLIER_SD * spread
    ]


RULES = (bound, data_loading, host_time, launch_bound, exposed_communication, new_sync, outlier_steps)
