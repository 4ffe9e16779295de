"""Findings of the step account: what bounds the step, and which state its change lies in."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import change, count, part, percents, plural, rose, time
from tracediff.runtimes import CALL_CATEGORIES, is_synchronising, may_wait

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.kinds import FindingKind

BUSY_STATES = ("gpu_compute", "gpu_comm", "gpu_copy")
HOST_BOUND, GPU_BOUND = 0.5, 0.1
"""Idle part of the period from which, up to which, on both sides."""
PART_OF_CHANGE = 0.25
"""Part of the step's change that a state must make up to explain it."""
LEAST_CHANGE = 0.01
"""Part of the period below which a change of the step is none to explain."""
OUTLIER_SD = 5.0
TURNS = 0.5
"""Part of the GPU's busy time that the host waits for it, from which the two take turns."""


def bound(comparison: Comparison) -> list[Finding]:
    """host-bound and gpu-bound: how much of the period the GPU has nothing to do, on both sides."""
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return []
    step, us = comparison.step_time, comparison.us
    if not step.control or not step.test:
        return []
    busy = step.within(BUSY_STATES)
    idle = [1 - busy[0] / step.control, 1 - busy[1] / step.test]
    shown = f"The GPU is idle {percents(*idle)} of the step"
    waiting = us(step.control - busy[0]), us(step.test - busy[1])
    evidence = (Evidence("GPU busy", None, None, us(busy[0]), us(busy[1])), Evidence("GPU idle", None, None, *waiting))
    if min(idle) >= HOST_BOUND:
        counts = f"GPU work changed {change(us(busy[0]), us(busy[1]))}"
        if any(w >= TURNS * b for w, b in zip(_waits(comparison), busy, strict=True)):
            counts += ", and counts: the host waits for it, the two take turns"
        else:
            counts += " and hardly counts"
        detail = f"{shown}: the step takes as long as the host needs. {counts}."
        return [
            Finding(
                kinds.HOST_BOUND,
                "the host sets the pace on both sides",
                detail,
                weight_us=us(step.delta),
                evidence=evidence,
            )
        ]
    if max(idle) <= GPU_BOUND:
        detail = f"{shown}: the step takes as long as the GPU works. What the host saves does not shorten it."
        return [
            Finding(
                kinds.GPU_BOUND,
                "the GPU sets the pace on both sides",
                detail,
                weight_us=us(step.delta),
                evidence=evidence,
            )
        ]
    return []


def _state(comparison: Comparison, names: tuple[str, ...], kind: FindingKind, what: str, advice: str) -> list[Finding]:
    """A state whose change is a large part of the step's."""
    step, us = comparison.step_time, comparison.us
    control, test = step.within(names)
    delta = test - control
    if (
        not step.delta
        or abs(step.delta) < LEAST_CHANGE * max(step.control, step.test)
        or abs(delta) < PART_OF_CHANGE * abs(step.delta)
    ):
        return []
    same_way = (delta > 0) == (step.delta > 0)
    much = "more than all" if abs(delta) > abs(step.delta) else part(abs(delta), abs(step.delta))
    whole = (
        f"{much} of the change of the step ({time(us(step.delta))})"
        if same_way
        else f"against the change of the step ({time(us(step.delta))})"
    )
    title = f"{what} {rose(control, test)}: {change(us(control), us(test))} a step"
    return [
        Finding(
            kind,
            title,
            f"That is {whole}. {advice}",
            delta_us=us(delta),
            weight_us=us(delta),
            evidence=(Evidence(what, None, None, us(control), us(test)),),
        )
    ]


def _waits(comparison: Comparison) -> tuple[int, int]:
    """Time that the host spends in calls that wait for the GPU, on both sides."""
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and may_wait(op.raw_name)]
    return sum(op.control_self for op in calls), sum(op.test_self for op in calls)


def host_time(comparison: Comparison) -> list[Finding]:
    """host-time: the host's own work while the GPU has nothing to do."""
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return []
    advice = "Kernels are not the reason: look at the operators and Python functions of the host."
    return _state(comparison, ("op", "python"), kinds.HOST_TIME, "the host's own work while the GPU is idle", advice)


def data_loading(comparison: Comparison) -> list[Finding]:
    """data-loading: waiting for the DataLoader."""
    advice = "Kernels are not the reason: look at workers, prefetch and storage."
    return _state(comparison, ("data_loading",), kinds.DATA_LOADING, "waiting for the DataLoader", advice)


def launch_bound(comparison: Comparison) -> list[Finding]:
    """launch-bound: the GPU waits while work is being launched."""
    return _state(
        comparison,
        ("launching", "gpu_queued"),
        kinds.LAUNCH_BOUND,
        "waiting for launches",
        "Fewer, larger kernels or CUDA graphs shorten it.",
    )


def exposed_communication(comparison: Comparison) -> list[Finding]:
    """exposed-communication: communication that nothing overlaps."""
    advice = "It is communication that no kernel overlaps; a rank that comes late makes the others wait in it."
    what = "communication not overlapped by kernels"
    return _state(comparison, ("gpu_comm",), kinds.EXPOSED_COMMUNICATION, what, advice)


def new_sync(comparison: Comparison) -> list[Finding]:
    """new-sync: more or fewer calls that wait for the device."""
    number, us = comparison.number, comparison.us
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and is_synchronising(op.raw_name)]
    control, test = sum(op.control_count for op in calls), sum(op.test_count for op in calls)
    waits = [sum(op.control_total for op in calls), sum(op.test_total for op in calls)]
    if control == test or abs(number(test - control)) < 1:
        return []
    state = next((s for s in comparison.step_time.states if s.name == "synchronising"), None)
    delta = us(state.delta) if state else 0.0
    title = f"waiting for the device {count(number(control))} → {count(number(test))} times a step"
    idle = f"{time(abs(delta))} {'more' if delta > 0 else 'less'} of the step"
    detail = (
        f"The host waits {change(us(waits[0]), us(waits[1]))} in synchronising calls; the GPU is idle meanwhile "
        f"for {idle}."
    )
    evidence = tuple(
        Evidence(op.raw_name, number(op.control_count), number(op.test_count), us(op.control_total), us(op.test_total))
        for op in calls[:5]
    )
    return [Finding(kinds.NEW_SYNC, title, detail, delta_us=delta, weight_us=delta, evidence=evidence)]


def outlier_steps(comparison: Comparison) -> list[Finding]:
    """outlier-step: used steps far from their run's median."""
    return [finding for side, name in named_sides(comparison) for finding in outliers_of(side, name)]


def named_sides(comparison: Comparison) -> list[tuple[Side, str]]:
    """Control and test, and what to call them: their labels where these differ."""
    sides = comparison.control, comparison.test
    return list(
        zip(
            sides,
            [s.label for s in sides] if sides[0].label != sides[1].label else ("the control", "the test"),
            strict=True,
        )
    )


def outliers_of(side: Side, name: str) -> list[Finding]:
    """The finding of one side, called ``name``."""
    named = [
        text
        for run, steps in side.steps.items()
        for text in _outliers(side, run, [(s.number, s.period_ns) for s in steps])
    ]
    if not named:
        return []
    detail = (
        f"{name}: {'; '.join(named[:3])}{' …' if len(named) > 3 else ''}. They are kept, and count in the mean "
        f"but not in the median."
    )
    return [
        Finding(
            kinds.OUTLIER_STEP,
            f"{plural(len(named), 'step')} of {name} took far longer or shorter than its others",
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
        f"{where}step {n} {time(p / 1000)} (median {time(middle / 1000)})"
        for n, p in steps
        if abs(p - middle) > OUTLIER_SD * spread
    ]


RULES = (bound, data_loading, host_time, launch_bound, exposed_communication, new_sync, outlier_steps)
