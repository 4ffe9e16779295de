"""The verdict: how the step time differs, and what can be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from tracediff.diff.step_time import StepTime
from tracediff.profile.average import StepAverage

SAME_SENTENCE = 0.005
"""Changes below half a per cent are worded as none."""


@dataclass(frozen=True)
class Verdict:
    """Times in µs.

    Attributes:
        result: faster, slower, same or inconclusive.
        sentence: what a reader should take away.
        control_us, test_us, delta_us, ratio: the step account's means; ratio = test / control.
        median_control_us, median_test_us: median over runs of the median period.
        ci95_us, p_value, min_detectable_us: null where untested.
        unit: what was sampled, run or step. n_control, n_test: how many.
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


def untested(labels: tuple[str, str], step_time: StepTime, scale: int, control: StepAverage, test: StepAverage) -> Verdict:
    """The verdict as long as nothing was tested: the means, and that is said."""
    means = [numerator / (scale * 1000) for numerator in (step_time.control, step_time.test)]
    medians = [_median_us(control), _median_us(test)]
    return Verdict(
        "inconclusive",
        _sentence(labels, means, len(test.runs)),
        means[0],
        means[1],
        step_time.delta / (scale * 1000),
        step_time.test / step_time.control if step_time.control else None,
        medians[0],
        medians[1],
        None,
        None,
        "run",
        len(control.runs),
        len(test.runs),
        None,
    )


def refused(labels: tuple[str, str], step_time: StepTime, scale: int, control: StepAverage, test: StepAverage) -> Verdict:
    """The verdict on sets that are not compared."""
    plain = untested(labels, step_time, scale, control, test)
    return Verdict(**{**vars(plain), "sentence": f"{labels[0]} and {labels[1]} cannot be compared"})


def _median_us(average: StepAverage) -> float:
    return median(median(step.period_ns for step in steps) for steps in average.runs.values()) / 1000


def _sentence(labels: tuple[str, str], means: list[float], runs: int) -> str:
    whose = f"{labels[1]}'s run was" if runs == 1 else f"{labels[1]}'s {runs} runs were"
    untested = "not tested: how much runs differ is unknown"
    if not means[0]:
        return f"{labels[0]} has no step time to compare with; {untested}"
    change = means[1] / means[0] - 1
    if abs(change) < SAME_SENTENCE:
        return f"{whose} as fast per step within {SAME_SENTENCE * 100:.1f} %; {untested}"
    if change > 1:
        how = f"{1 + change:.2f} times as long"
    else:
        how = f"{abs(change) * 100:.{0 if abs(change) >= 0.1 else 1}f} % {'slower' if change > 0 else 'faster'}"
    return f"{whose} {how} per step; {untested}"
