"""The gate: every limit judged, and what follows for CI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date

from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.config import STOPPING, Settings
from tracediff.diff.gate.figures import Figure, figures
from tracediff.diff.gate.limits import Limit
from tracediff.diff.gate.sample_size import MOST_RUNS, Interval, middle, reach, runs_to_detect, runs_to_part
from tracediff.diff.gate.waivers import Waiver, waiver_for
from tracediff.diff.preflight import REFUSED, Reason
from tracediff.diff.statistics.many import LEAST_RUNS, LEAST_US
from tracediff.diff.statistics.runs import LEVEL
from tracediff.formatting import signed_percent

PASS, REGRESSION, INCONCLUSIVE, WAIVED, NOT_COMPARABLE = (
    "pass",
    "regression",
    "inconclusive",
    "waived",
    "not-comparable",
)
REMEDIES = {
    "kernels": "record both sides with ProfilerActivity.CUDA, or drop the limit",
    "memory": "collect both sides with `tracediff collect`, or drop the limit",
    "graph-breaks": "collect both sides compiled, or drop the limit",
}
"""What to do where a limit's numbers are missing."""
EXIT_CODES = {PASS: 0, REGRESSION: 1, INCONCLUSIVE: 3, NOT_COMPARABLE: 3}


@dataclass(frozen=True)
class Judged:
    """One limit on one figure.

    Attributes:
        limit, figure: what was judged.
        result: pass, regression, inconclusive or waived.
        why: what the result rests on beyond the figure and its bound; may be empty.
        settle: of an inconclusive one, what would settle it.
        waiver: the one about it, also where it has expired; None where it is not broken.
    """

    limit: Limit
    figure: Figure
    result: str
    _: KW_ONLY
    why: str = ""
    settle: str = ""
    waiver: Waiver | None = None

    @property
    def bound(self) -> float | None:
        """The largest growth that does not break the limit, in its unit; None where control is unknown."""
        return None if self.figure.control is None else self.limit.bound(self.figure.control)


@dataclass(frozen=True)
class Gate:
    """The whole check.

    Attributes:
        result: pass, regression, inconclusive or not-comparable.
        stopping: the cautions under which nothing is decided.
        judged: every limit, in the order given.
    """

    comparison: Comparison
    result: str
    stopping: tuple[Reason, ...]
    judged: tuple[Judged, ...]

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 inconclusive or not comparable."""
        return EXIT_CODES[self.result]

    def of(self, result: str) -> list[Judged]:
        """The limits of one result."""
        return [j for j in self.judged if j.result == result]


def check(comparison: Comparison, settings: Settings, today: date) -> Gate:
    """Judge all limits of ``settings``.

    Args:
        today: the day on which waivers hold or have expired.

    Raises:
        TracediffError: a limit on a family that there is not.
    """
    stopping = _stopping(comparison, settings.allow)
    judged = [_judge(limit, figure) for limit in settings.all_limits for figure in figures(limit, comparison)]
    if stopping:
        codes = ", ".join(r.code for r in stopping)
        judged = [replace(j, result=INCONCLUSIVE, why=f"not judged: {codes}", settle="") for j in judged]
        return Gate(comparison, NOT_COMPARABLE, stopping, tuple(judged))
    judged = [_waived(j, settings.waivers, today) for j in judged]
    results = {j.result for j in judged}
    return Gate(comparison, next((r for r in (REGRESSION, INCONCLUSIVE) if r in results), PASS), (), tuple(judged))


def _stopping(comparison: Comparison, allow: frozenset[str]) -> tuple[Reason, ...]:
    reasons = [
        r
        for r in comparison.comparability.reasons
        if r.level == REFUSED or (r.code in STOPPING and r.code not in allow)
    ]
    runs = comparison.control.runs, comparison.test.runs
    if min(runs) < 2 and "single-run" not in allow:
        reasons.append(
            Reason(
                "single-run",
                "a single run a side says nothing of how much runs differ: take three or more",
                str(runs[0]),
                str(runs[1]),
            )
        )
    return tuple(reasons)


def _waived(judged: Judged, waivers: Sequence[Waiver], today: date) -> Judged:
    waiver = waiver_for(judged.figure.subject, waivers) if judged.result == REGRESSION else None
    if waiver is None:
        return judged
    return replace(judged, waiver=waiver, result=REGRESSION if waiver.has_expired(today) else WAIVED)


def _judge(limit: Limit, figure: Figure) -> Judged:
    control, test = figure.control, figure.test
    if control is None or test is None:
        return Judged(limit, figure, INCONCLUSIVE, why=figure.why, settle=REMEDIES[limit.kind])
    if figure.exact:
        return Judged(limit, figure, REGRESSION if test - control > limit.bound(control) else PASS)
    if figure.interval is not None:
        return _judge_interval(limit, figure, control, figure.interval)
    if limit.kind != "step" and (test == 0 or control == test):
        return Judged(limit, figure, PASS)
    if max(control, test) < LEAST_US <= limit.absolute and limit.kind != "step":
        return Judged(limit, figure, PASS, why=figure.why)
    return Judged(limit, figure, INCONCLUSIVE, why=figure.why, settle=_settle_untested(limit, figure))


def _judge_interval(limit: Limit, figure: Figure, control: float, interval: Interval) -> Judged:
    result = on_interval(limit, control, interval)
    if result == REGRESSION and figure.q is not None and figure.q > LEVEL:
        why = f"one of many may change as much by chance (q = {figure.q:.2f})"
        return Judged(limit, figure, INCONCLUSIVE, why=why, settle="limit this one by its name, or take more runs")
    return Judged(
        limit, figure, result, settle=_settle(limit, figure, control, interval) if result == INCONCLUSIVE else ""
    )


def on_interval(limit: Limit, control: float, interval: Interval) -> str:
    """regression where all of the interval of the relative change is beyond both parts of the limit, pass where none
    is, else inconclusive.
    """
    bound = limit.bound(control)
    if interval[0] * control > bound:
        return REGRESSION
    return PASS if interval[1] * control <= bound else INCONCLUSIVE


def _settle(limit: Limit, figure: Figure, control: float, interval: Interval) -> str:
    """How many runs would decide: those that detect a change as large as the bound, or, where these were taken, those
    that part it from the bound.
    """
    bound = limit.bound(control) / control
    if bound <= 0:
        return "no number of runs shows that a time has not grown at all: give a bound above 0"
    if figure.spread is None:
        return f"{LEAST_RUNS} runs a side are the least that tell"
    within = f"{100 * bound:.3g} %"
    needed = runs_to_detect(figure.spread, math.log1p(bound))
    if needed is None:
        return f"more than {MOST_RUNS:,} runs a side would be needed to detect {within}: runs differ too much"
    if reach(interval) >= math.log1p(bound):  # so wide that it could not even tell no change from the bound
        return f"{needed} runs a side would detect {within}"
    change = middle(interval)
    needed = runs_to_part(figure.spread, abs(change - math.log1p(bound)))
    few = f"{needed:,}" if needed else f"more than {MOST_RUNS:,}"
    return f"{few} runs a side would tell {signed_percent(math.expm1(change))} from the bound of {within}"


def _settle_untested(limit: Limit, figure: Figure) -> str:
    if max(figure.control or 0, figure.test or 0) < LEAST_US and limit.kind != "step":
        return f"give an absolute part of {LEAST_US:g}us or more"
    if limit.kind == "step":
        return f"{LEAST_RUNS} runs a side are the least that tell, or vouch for the spread with --assume-run-cv"
    return f"{LEAST_RUNS} runs a side are the least that tell"
