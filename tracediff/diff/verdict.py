"""The verdict: how the step time differs, and what can be said of it (docs/statistics.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from tracediff.aggregate.averages import StepAverage
from tracediff.diff.statistics.runs import Estimate, estimate, within_runs
from tracediff.diff.step_time import StepTime
from tracediff.formatting import PERCENT, percent

SAME_SENTENCE = 0.005
"""Changes below half a per cent are worded as none."""
OTHER_STORY = 0.05
"""Difference between the changes of mean and median from which the sentence names both."""


@dataclass(frozen=True)
class Judging:
    """How strictly to judge.

    Attributes:
        paired: run k of both sides was taken together.
        assumed_run_cv: spread of runs that the user vouches for (0.02 for 2 %), None to measure it.
        equivalence_band: relative change within which the sides are the same.
        noise_floor: relative change of an operator below which it is never flagged.
    """

    paired: bool = False
    assumed_run_cv: float | None = None
    equivalence_band: float = 0.05
    noise_floor: float = 0.01


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict:
    """Times in µs.

    Attributes:
        result: faster, slower, same or inconclusive.
        sentence: what a reader should take away.
        control_us, test_us, delta_us, ratio: the step account's means; ratio = test / control.
        median_control_us, median_test_us: median over runs of the median period.
        ci95_us: interval of the change of the median; p_value, min_detectable_us: null where untested.
        within_runs_us: interval of the change within one run a side, which says nothing of others; null where there are
            more runs or too few steps.
        method: none, t, ranks, prediction, paired or assumed.
        unit: what was sampled. n_control, n_test: how many.
    """

    result: str
    sentence: str
    control_us: float
    test_us: float
    delta_us: float
    ratio: float | None
    median_control_us: float
    median_test_us: float
    ci95_us: tuple[float, float] | None
    p_value: float | None
    unit: str
    n_control: int
    n_test: int
    min_detectable_us: float | None
    method: str = "none"
    within_runs_us: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"<Verdict {self.result}: {self.sentence}>"


def judge(
    labels: tuple[str, str],
    step_time: StepTime,
    scale: int,
    *,
    control: StepAverage,
    test: StepAverage,
    judging: Judging,
) -> Verdict:
    """Test the runs' medians, and word what came of it."""
    means = step_time.control / (scale * 1000), step_time.test / (scale * 1000)
    logs = _logs(control), _logs(test)
    found = (
        estimate(*logs, paired=judging.paired, assumed_cv=judging.assumed_run_cv)
        if logs[0] and logs[1]
        else Estimate(0.0)
    )
    base = _median_us(control)
    tested = found.low is not None and found.high is not None
    inside = _within(control, test, base) if not tested and len(control.runs) == len(test.runs) == 1 else None
    medians = base, _median_us(test)
    result = _result(found, judging.equivalence_band)
    return Verdict(
        result=result,
        sentence=_sentence(
            labels,
            means=means,
            medians=medians,
            found=found,
            result=result,
            runs=(len(control.runs), len(test.runs)),
            judging=judging,
        ),
        control_us=means[0],
        test_us=means[1],
        delta_us=step_time.delta / (scale * 1000),
        ratio=step_time.test / step_time.control if step_time.control else None,
        median_control_us=medians[0],
        median_test_us=medians[1],
        ci95_us=_as_change(base, found.low, found.high) if found.low is not None and found.high is not None else None,
        p_value=found.p,
        unit="run",
        n_control=len(control.runs),
        n_test=len(test.runs),
        min_detectable_us=base * math.expm1(found.detectable) if found.detectable is not None else None,
        method=found.method,
        within_runs_us=inside,
    )


def refused(
    labels: tuple[str, str], step_time: StepTime, scale: int, control: StepAverage, test: StepAverage
) -> Verdict:
    """The verdict on sets that are not compared."""
    means = step_time.control / (scale * 1000), step_time.test / (scale * 1000)
    ratio = step_time.test / step_time.control if step_time.control else None
    medians = _median_us(control), _median_us(test)
    sentence = f"{labels[0]} and {labels[1]} cannot be compared"
    counts = len(control.runs), len(test.runs)
    return Verdict(
        result="inconclusive",
        sentence=sentence,
        control_us=means[0],
        test_us=means[1],
        delta_us=step_time.delta / (scale * 1000),
        ratio=ratio,
        median_control_us=medians[0],
        median_test_us=medians[1],
        ci95_us=None,
        p_value=None,
        unit="run",
        n_control=counts[0],
        n_test=counts[1],
        min_detectable_us=None,
    )


def _logs(average: StepAverage) -> list[float]:
    """One logarithm of the median period a run; none where a period is no time at all."""
    medians = [median(step.period_ns for step in steps) for steps in average.runs.values() if steps]
    return [math.log(m) for m in medians] if all(m > 0 for m in medians) else []


def _median_us(average: StepAverage) -> float:
    return median(median(step.period_ns for step in steps) for steps in average.runs.values()) / 1000


def _within(control: StepAverage, test: StepAverage, base: float) -> tuple[float, float] | None:
    steps = [[step.period_ns for of in average.runs.values() for step in of] for average in (control, test)]
    if any(ns <= 0 for of in steps for ns in of):
        return None
    found = within_runs([math.log(ns) for ns in steps[0]], [math.log(ns) for ns in steps[1]])
    return _as_change(base, *found) if found else None


def _as_change(base_us: float, low: float, high: float) -> tuple[float, float]:
    """Logarithms of a ratio as changes in µs of ``base_us``."""
    return base_us * math.expm1(low), base_us * math.expm1(high)


def _result(found: Estimate, band: float) -> str:
    if found.low is None or found.high is None:
        return "inconclusive"
    edge = math.log1p(band)
    if -edge < found.low and found.high < edge:
        return "same"
    if found.low > 0 or found.high < 0:
        return "slower" if found.effect > 0 else "faster"
    return "inconclusive"


def _sentence(
    labels: tuple[str, str],
    *,
    means: tuple[float, float],
    medians: tuple[float, float],
    found: Estimate,
    result: str,
    runs: tuple[int, int],
    judging: Judging,
) -> str:
    """What differs; a semicolon; what may be concluded."""
    whose = f"{labels[1]}'s run was" if runs[1] == 1 else f"{labels[1]}'s {runs[1]} runs were"
    if not means[0]:
        return f"{labels[0]} has no step time to compare with; not tested: how much runs differ is unknown"
    change = means[1] / means[0] - 1
    how = (
        f"as fast per step within {SAME_SENTENCE * 100:.1f} %"
        if abs(change) < SAME_SENTENCE
        else f"{change_text(change)} per step"
    )
    by_median = medians[1] / medians[0] - 1 if medians[0] else change
    if abs(by_median - change) > OTHER_STORY or (
        abs(change) >= SAME_SENTENCE and abs(by_median) >= SAME_SENTENCE and (by_median > 0) != (change > 0)
    ):
        how += f" in the mean, {change_text(by_median)} in the median"
    return f"{whose} {how}; {_conclusion(found, result, runs, judging)}"


def _conclusion(found: Estimate, result: str, runs: tuple[int, int], judging: Judging) -> str:
    if found.low is None or found.high is None or found.detectable is None:
        return "not tested: how much runs differ is unknown"
    low, high = math.expm1(found.low), math.expm1(found.high)
    interval = f"95 % interval {_signed(low)} to {_signed(high)}"
    basis = f"{runs[0]} and {runs[1]} runs"
    if found.method == "assumed":
        basis = f"if runs spread by {100 * (judging.assumed_run_cv or 0):g} %, which is assumed, not measured"
    if found.method == "prediction":
        basis = f"one run against {max(runs)}, taking it that its kind spreads as they do"
    if result == "same":
        return f"that is no change beyond ±{100 * judging.equivalence_band:g} % ({interval}; {basis})"
    if result == "inconclusive":
        if found.detectable > math.log(2):
            return f"that may be chance ({basis}, which differ too much among themselves to show less than a doubling)"
        detectable = f"these would show a change of {PERCENT.text(math.expm1(found.detectable))} or more"
        return f"that may be chance ({interval}; {basis}: {detectable})"
    return f"more than chance ({interval}; {basis})"


def _signed(x: float) -> str:
    return f"{PERCENT.signed(x)} %"


def change_text(change: float) -> str:
    """``24 % faster``, ``1.9 % slower``, ``2.50 times as long``."""
    if change > 1:
        return f"{1 + change:.2f} times as long"
    return f"{percent(abs(change))} {'slower' if change > 0 else 'faster'}"
