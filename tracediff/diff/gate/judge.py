"""The gate: the result of each limit, and of the whole check."""

import math
from collections.abc import Sequence
from datetime import date

from tracediff import bounds, thresholds
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.figures import (
    FEW_RUNS,
    Figure,
    Interval,
    figures,
    half_width,
    middle,
)
from tracediff.diff.gate.limits import STOPPING, GateSettings, Limit, Waiver, waiver_for
from tracediff.diff.preflight import REFUSED, Reason
from tracediff.diff.statistics.runs import runs_to_detect, runs_to_separate
from tracediff.formatting import signed_percent
from tracediff.structs import FrozenStruct

SINGLE_RUN = "single-run"
PASS, REGRESSION, INCONCLUSIVE, WAIVED, NOT_COMPARABLE = (
    "pass",
    "regression",
    "inconclusive",
    "waived",
    "not-comparable",
)
REMEDIES = {
    "kernels": "record both sides with ProfilerActivity.CUDA, or remove the limit",
    "memory": "collect both sides with `tracediff collect`, or remove the limit",
    "graph-breaks": "collect both sides compiled, or remove the limit",
}
"""Kind of subject → what to do if its numbers are missing."""
MORE_RUNS = f"more than {bounds.RECOMMENDED_RUNS:,}"
NEED_RUNS = f"record {thresholds.RANKED_RUNS} runs per side"
UNTESTED = f"decided by the figures alone ({SINGLE_RUN} is allowed): significance unknown"
EXIT_CODES = {PASS: 0, REGRESSION: 1, INCONCLUSIVE: 3, NOT_COMPARABLE: 3}


class Judged(FrozenStruct):
    """The result of one limit on one figure.

    Attributes:
        limit, figure: the limit and the numbers to which it applies.
        result: pass, regression, inconclusive or waived.
        why: the reason for the result, beyond the figure and the limit; may be empty.
        settle: what to do about an inconclusive result.
        waiver: the waiver of an exceeded limit, even if it has expired; None without one.
    """

    limit: Limit
    figure: Figure
    result: str
    why: str = ""
    settle: str = ""
    waiver: Waiver | None = None

    @property
    def bound(self) -> float | None:
        """The largest increase within the limit, in its unit; None if control is unknown."""
        return None if self.figure.control is None else self.limit.bound(self.figure.control)


class Gate(FrozenStruct):
    """The result of the whole check.

    Attributes:
        stopping: the cautions for which no limit is decided: the sides are not comparable, or have too few runs.
        judged: every limit, in the order given.
    """

    comparison: Comparison
    stopping: tuple[Reason, ...]
    judged: tuple[Judged, ...]

    @property
    def result(self) -> str:
        """pass, regression, inconclusive or not-comparable."""
        if self.stopping:
            return INCONCLUSIVE if all(reason.code == SINGLE_RUN for reason in self.stopping) else NOT_COMPARABLE
        return next((result for result in (REGRESSION, INCONCLUSIVE) if self.with_result(result)), PASS)

    @property
    def codes(self) -> str:
        """The codes of `stopping`, such as ``gpu, shapes``."""
        return _codes(self.stopping)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 inconclusive or not comparable."""
        return EXIT_CODES[self.result]

    def with_result(self, result: str) -> list[Judged]:
        """The limits with one result."""
        return [j for j in self.judged if j.result == result]


def check(comparison: Comparison, settings: GateSettings, today: date) -> Gate:
    """The result of all limits of ``settings``.

    Args:
        today: the date by which waivers have expired or not.

    Raises:
        TracediffError: a limit on an operator, kernel, family or state that neither side has.
    """
    stopping = _stopping(comparison, settings.allow)
    judge = _judge_without_test if SINGLE_RUN in settings.allow else _judge
    judged = [judge(limit, figure) for limit in settings.limits for figure in figures(limit, comparison)]
    if stopping:
        judged = [j.replace(result=INCONCLUSIVE, why=f"not decided: {_codes(stopping)}", settle="") for j in judged]
    else:
        judged = [_waived(j, settings.waivers, today) for j in judged]
    return Gate(comparison, stopping, tuple(judged))


def _codes(reasons: Sequence[Reason]) -> str:
    return ", ".join(dict.fromkeys(reason.code for reason in reasons))


def _stopping(comparison: Comparison, allow: frozenset[str]) -> tuple[Reason, ...]:
    reasons = [
        r
        for r in comparison.comparability.reasons
        if r.level == REFUSED or (r.code in STOPPING and r.code not in allow)
    ]
    if min(comparison.runs) < 2 and SINGLE_RUN not in allow:
        reasons.append(
            Reason(
                SINGLE_RUN,
                f"one run of a side does not tell whether a difference is significant: {NEED_RUNS}, "
                f"or --allow {SINGLE_RUN}",
                *map(str, comparison.runs),
            )
        )
    return tuple(reasons)


def _waived(judged: Judged, waivers: Sequence[Waiver], today: date) -> Judged:
    waiver = waiver_for(judged.figure.subject, waivers) if judged.result == REGRESSION else None
    if waiver is None:
        return judged
    return judged.replace(waiver=waiver, result=REGRESSION if waiver.has_expired(today) else WAIVED)


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
    if max(control, test) < thresholds.TESTED_US <= limit.absolute and limit.kind != "step":
        return Judged(limit, figure, PASS, why=figure.why)
    return Judged(limit, figure, INCONCLUSIVE, why=figure.why, settle=_settle_untested(limit, figure))


def _judge_without_test(limit: Limit, figure: Figure) -> Judged:
    """`_judge`, but a figure that has too few runs for an interval is taken as exact."""
    if figure.why != FEW_RUNS:
        return _judge(limit, figure)
    return _judge(limit, figure.replace(exact=True)).replace(why=UNTESTED)


def _judge_interval(limit: Limit, figure: Figure, control: float, interval: Interval) -> Judged:
    result, why, settle = on_interval(limit, control, interval), "", ""
    if result == INCONCLUSIVE:
        settle = _settle(limit, figure, control, interval)
    elif result == REGRESSION and figure.q is not None and figure.q > thresholds.SIGNIFICANCE:
        result, settle = INCONCLUSIVE, "limit this operator by its name, or record more runs"
        why = f"not significant among the operators that were tested (q = {figure.q:.2f})"
    return Judged(limit, figure, result, why, settle)


def on_interval(limit: Limit, control: float, interval: Interval) -> str:
    """regression if the whole interval of the relative change exceeds the limit, pass if none of it does, else
    inconclusive: the interval contains the limit.
    """
    bound = limit.bound(control)
    if interval[0] * control > bound:
        return REGRESSION
    return PASS if interval[1] * control <= bound else INCONCLUSIVE


def _settle(limit: Limit, figure: Figure, control: float, interval: Interval) -> str:
    """How many runs would decide: enough to detect a change as large as the limit or, if there are that many already,
    enough to separate the change from the limit.
    """
    bound = limit.bound(control) / control
    if bound <= 0:
        return "no number of runs can show that a time has not grown at all: set a limit above 0"
    if figure.spread is None:
        return NEED_RUNS
    within = f"{100 * bound:.3g} %"
    needed = runs_to_detect(figure.spread, math.log1p(bound))
    if needed is None:
        return f"{MORE_RUNS} runs per side would be needed to detect {within}: the runs are too noisy"
    if half_width(interval) >= math.log1p(bound):  # too wide to separate even no change from the limit
        return f"{needed} runs per side would detect {within}"
    change = middle(interval)
    needed = runs_to_separate(figure.spread, abs(change - math.log1p(bound)))
    runs = f"{needed:,}" if needed else MORE_RUNS
    return f"{runs} runs per side would separate {signed_percent(math.expm1(change))} from the limit of {within}"


def _settle_untested(limit: Limit, figure: Figure) -> str:
    if max(figure.control or 0, figure.test or 0) < thresholds.TESTED_US and limit.kind != "step":
        return f"set the absolute part of the limit to {thresholds.TESTED_US:g}us or more"
    if limit.kind == "step":
        return f"{NEED_RUNS}, or assume how much runs vary (--assume-run-cv)"
    return NEED_RUNS
