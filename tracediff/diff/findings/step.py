"""Findings of the step as a whole: what bounds it, exposed communication, and outlier steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.state_change import state_change
from tracediff.diff.reach import BUSY_STATES, GPU_BOUND, HOST_BOUND, idle_fractions
from tracediff.diff.typical_steps import Outlier, outliers
from tracediff.formatting import part, percents, signed_time, time

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison

ALL_OF_IT = 0.5
"""Part of the step's change from which outlier steps explain it."""
BOUNDS = {"host": kinds.HOST_BOUND, "GPU": kinds.GPU_BOUND}


def bound(comparison: Comparison) -> list[Finding]:
    """host-bound and gpu-bound: the step became bound by the other. On both sides alike it is context, no finding."""
    idle = idle_fractions(comparison)
    if idle is None:
        return []
    before, after = (bound_by(i) for i in idle)
    if before == after or not before or not after:
        return []
    us, step = comparison.us, comparison.step_time
    busy = step.within(BUSY_STATES)
    rest = us(step.control - busy[0]), us(step.test - busy[1])
    evidence = (Evidence("GPU idle", None, None, *rest),)
    title = f"the step was {before}-bound and is now {after}-bound: GPU idle for {percents(*idle)} of the step"
    return [Finding(BOUNDS[after], title, kinds.advice_of(BOUNDS[after]), evidence=evidence)]


def bound_by(idle: float) -> str:
    """host or GPU, whichever bounds a step in which the GPU is idle for a fraction ``idle``; empty for neither."""
    return "host" if idle >= HOST_BOUND else "GPU" if idle <= GPU_BOUND else ""


def exposed_communication(comparison: Comparison) -> list[Finding]:
    """exposed-communication: communication that no compute kernel overlaps."""
    found = state_change(comparison, ("gpu_comm",))
    if found is None:
        return []
    return [
        Finding(
            kinds.EXPOSED_COMMUNICATION,
            f"exposed communication {found.rose}",
            found.share + (f" {kinds.advice_of(kinds.EXPOSED_COMMUNICATION)}" if found.delta_us > 0 else ""),
            delta_us=found.delta_us,
            weight_us=found.typical_us,
            covers=frozenset(("gpu_comm",)),
        )
    ]


def outlier_steps(comparison: Comparison) -> list[Finding]:
    """outlier-step: used steps far from their run's median; how much of the step's change they are."""
    step = comparison.us(comparison.step_time.delta)
    caused = step - comparison.typical.delta
    found = []
    for side, (own, name) in enumerate(named_sides(comparison)):
        odd = [o for o in comparison.typical.outliers if o.side == side]
        if odd:
            found.append((odd, _outlier_finding(odd, own, name)))
    if found and caused * step > 0 and abs(caused) >= ALL_OF_IT * abs(step):
        odd, finding = max(found, key=lambda entry: sum(abs(o.excess) for o in entry[0]))
        steps = f"step {odd[0].step.number}" if len(odd) == 1 else f"{len(odd)} outlier steps"
        share = "all" if abs(caused) >= 0.9 * abs(step) else part(abs(caused), abs(step))
        title = f"{share} of the change of the mean comes from {steps} of {named_sides(comparison)[odd[0].side][1]}"
        detail = f"Without {'it' if len(odd) == 1 else 'them'} the step changed by {signed_time(step - caused)}. "
        return [Finding(kinds.OUTLIER_STEP, title, detail + finding.detail, delta_us=caused, weight_us=caused)]
    return [finding for _, finding in found]


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
    """The finding of one set, called ``name``."""
    odd = outliers(side.steps)
    return [_outlier_finding(odd, side, name)] if odd else []


def _outlier_finding(odd: list[Outlier], side: Side, name: str) -> Finding:
    listed = "; ".join(
        f"{f'{o.run}, ' if side.runs > 1 else ''}step {o.step.number}: {time(o.step.period_ns / 1000)} "
        f"(median {time(o.median_ns / 1000)})"
        for o in odd[:3]
    )
    detail = (
        f"Period of {listed}{' …' if len(odd) > 3 else ''}. Outliers count in the mean, not in the median: "
        f"look at {'this step' if len(odd) == 1 else 'these steps'} in the timeline."
    )
    first, title = odd[0], f"{len(odd)} outlier steps in {name}"
    if len(odd) == 1:
        times = time(first.step.period_ns / 1000), time(first.median_ns / 1000)
        title = f"step {first.step.number} of {name} took {times[0]}, its run's median {times[1]}"
    return Finding(kinds.OUTLIER_STEP, title, detail)


RULES = (bound, exposed_communication, outlier_steps)
