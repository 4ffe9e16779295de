"""The verdict: how the step time differs, and whether the difference is significant (docs/statistics.md); where step
times measured without the profiler contradict it, they are what counts.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Annotated

from msgspec import Meta
from msgspec.structs import force_setattr

from tracediff import thresholds
from tracediff.aggregate.averages import StepAverage
from tracediff.diff.accounts import StepTime
from tracediff.diff.statistics.runs import Estimate, detectable, estimate, interval_us, within_runs
from tracediff.errors import TracediffError
from tracediff.formatting import PERCENT, joined, number, percent, plural
from tracediff.ingest.manifest import Manifest
from tracediff.structs import FrozenStruct, Pair

RESULTS = "faster", "slower", "same", "inconclusive", "untested", "refused"
STEP, WHOLE_FILE, BY_MEDIAN = "per step", "over the whole file", " by the median"
"""What times are of, in the verdict's sentence."""


class Judging(FrozenStruct):
    """The settings of the significance tests.

    Attributes:
        paired: run k of both sides was recorded together.
        assume_run_cv: spread of runs assumed by the user (0.02 for 2 %), None to measure it.
        equivalence_band: relative change that counts as none.
        noise_floor: relative change of an operator below which it is never flagged.
    """

    paired: bool = False
    assume_run_cv: float | None = None
    equivalence_band: float = thresholds.EQUIVALENCE_BAND
    noise_floor: float = thresholds.NOISE_FLOOR

    def __post_init__(self) -> None:
        """Raises a TracediffError where a part is negative or no number, or two tests are asked for."""
        if self.paired and self.assume_run_cv is not None:
            both, reason = "--paired and --assume-run-cv", "pairs measure how much runs vary, which the other assumes"
            raise TracediffError(both, reason, "give one of them")
        for name in ("assume_run_cv", "equivalence_band", "noise_floor"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise TracediffError(f"{name}={value}", "is negative, or no number", "give a part of the whole")


Result = Annotated[str, Meta(extra_json_schema={"enum": list(RESULTS)})]
PValue = Annotated[float | None, Meta(description="p-value of the change; null where untested")]


class DiffVerdict(FrozenStruct, kw_only=True):
    """How the step time differs, and whether the difference is significant."""

    result: Result
    """result of the significance test over runs"""
    sentence: str
    """the verdict in a sentence"""
    control_us: float
    """µs per step"""
    test_us: float
    """µs per step"""
    delta_us: float
    """test − control, µs per step"""
    ratio: float | None
    """test / control; null where control is 0"""
    median_control_us: float
    """median over runs of the median step of control, in µs"""
    median_test_us: float
    """median over runs of the median step of test, in µs"""
    ci95_us: tuple[float, float] | None
    """95 % confidence interval of the change of the median, in µs; null where untested"""
    p_value: PValue
    unit: Annotated[str, Meta(extra_json_schema={"enum": ["run", "step"]})]
    """unit of sampling"""
    n_control: int
    """number of samples of control"""
    n_test: int
    """number of samples of test"""
    min_detectable_us: float | None
    """smallest change that these runs would detect in 80 % of cases, in µs; null where untested"""
    method: Annotated[str, Meta(extra_json_schema={"enum": ["none", "t", "ranks", "prediction", "paired", "assumed"]})]
    """statistical procedure (docs/statistics.md)"""
    within_runs_us: tuple[float, float] | None
    """95 % interval of the change, from the steps of one run per side, in µs; other runs may differ. null with several
    runs or too few steps
    """


class Verdict(DiffVerdict, kw_only=True):
    """The result for the step time, and what its sentence is made of.

    Attributes:
        difference: how their times differ, in words, after “inconclusive” if that was tested and is not significant.
        settings: what else the sides differ in that times alone do not tell, in words; empty if nothing.
        conclusion: whether it is significant, in words; empty if the sides were not compared.
        other_work: how the work differs, in words; empty if it does not.
        is_of_medians: whether it is stated by the medians, as the means contradict what is tested, which these are
            nearer to.
        spread: standard deviation of the logarithm of a run's median; None where untested.
    """

    difference: str
    conclusion: str
    settings: str = ""
    other_work: str = ""
    is_of_medians: bool = False
    spread: float | None = None

    def __post_init__(self) -> None:
        """The sentence: how the step differs, on which other work, and whether that is significant."""
        parts = joined(joined(self.difference, self.settings), self.conclusion, by="; ")
        force_setattr(self, "sentence", self.reason_of_other_work + parts)

    @property
    def medians(self) -> Pair[float]:
        """The medians over runs of the median step, in µs."""
        return Pair(self.median_control_us, self.median_test_us)

    @property
    def way(self) -> int:
        """1 where test is stated to take longer, −1 shorter, 0 as long, or where that is unknown."""
        control, test = self.medians if self.is_of_medians else (self.control_us, self.test_us)
        return 0 if abs(test - control) < thresholds.NO_DIFFERENCE * control else 1 if test > control else -1

    @property
    def ratio_of_medians(self) -> float | None:
        """test / control by the medians, by the means where these are unknown; None where both are."""
        return self.median_test_us / self.median_control_us if self.median_control_us else self.ratio

    @property
    def reason_of_other_work(self) -> str:
        """How the work differs, as a sentence before the result; empty if it does not."""
        return f"{self.other_work[0].upper()}{self.other_work[1:]}. " if self.other_work else ""

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
    whole_files: bool = False,
) -> Verdict:
    """The verdict on two sides: their runs' median periods tested, and the result in words; of sides without steps
    (``whole_files``) it is on their files.

    Raises:
        TracediffError: the runs are to be tested in pairs, and are too few or not as many on both sides.
    """
    means = step_time.period.map(lambda ns: ns / (scale * 1000))
    runs = len(control.runs), len(test.runs)
    if judging.paired:
        _check_pairs(labels, runs)
    periods = [[median(step.period_ns for step in steps) for steps in side.runs.values()] for side in (control, test)]
    difference = _estimated(periods[0], periods[1], judging)
    medians = median(periods[0]) / 1000, median(periods[1]) / 1000
    base = medians[0]
    inside = _within(control, test, base) if not difference.interval and runs == (1, 1) else None
    result = difference.result(judging.equivalence_band)
    by_mean = means[1] / means[0] - 1 if means[0] else 0.0
    by_median = medians[1] / medians[0] - 1 if medians[0] else by_mean
    is_of_medians = _is_of_medians(by_mean, by_median, difference)
    difference_text = f"{labels[0]} has no step time to compare with"
    if means[0]:
        basis = WHOLE_FILE if whole_files else STEP
        how = how_long(by_median, basis + BY_MEDIAN) if is_of_medians else how_long(by_mean, basis)
        difference_text = stated(result, labels[1], how)
    return Verdict(
        result=result,
        sentence="",
        difference=difference_text,
        conclusion=conclusion_of(difference, result, runs, judging, by_median if is_of_medians else by_mean),
        control_us=means[0],
        test_us=means[1],
        delta_us=step_time.delta / (scale * 1000),
        ratio=step_time.period.test / step_time.period.control if step_time.period.control else None,
        median_control_us=medians[0],
        median_test_us=medians[1],
        ci95_us=interval_us(base, difference.interval),
        p_value=difference.p,
        unit="run",
        n_control=runs[0],
        n_test=runs[1],
        min_detectable_us=base * math.expm1(difference.detectable) if difference.detectable is not None else None,
        method=difference.method,
        within_runs_us=inside,
        is_of_medians=is_of_medians,
        spread=_spread(difference, *runs),
    )


def _check_pairs(labels: tuple[str, str], runs: tuple[int, int]) -> None:
    if runs[0] != runs[1] or runs[0] < thresholds.RANKED_RUNS:
        counts = " and ".join(
            f"{label} has {plural(number, 'run')}" for label, number in zip(labels, runs, strict=True)
        )
        remedy = f"record {thresholds.RANKED_RUNS} runs or more of each, or leave out --paired"
        raise TracediffError("--paired", f"as many runs of each are needed, and enough, but {counts}", remedy)


def _spread(difference: Estimate, n: int, m: int) -> float | None:
    """Standard deviation of the logarithm of a run's median, of ``n`` and ``m`` runs; None where untested."""
    if difference.detectable is None:
        return None
    df = {"paired": n - 1.0, "prediction": max(n, m) - 1.0, "assumed": math.inf}.get(difference.method, n + m - 2.0)
    return difference.detectable / (detectable(df) * math.sqrt(1 / n + 1 / m))


def interval_per_item(verdict: DiffVerdict, items: float) -> tuple[float, float] | None:
    """95 % confidence interval of test / control for each of the items of a step, of which test has ``items`` times as
    many; None where untested.
    """
    if verdict.ci95_us is None:
        return None
    low, high = (1 + us / verdict.median_control_us for us in verdict.ci95_us)
    return low / items, high / items


def refused(verdict: Verdict, labels: tuple[str, str]) -> Verdict:
    """``verdict`` of two sets that the preflight refused to compare: their times, and nothing that compares them."""
    return verdict.replace(
        result="refused",
        difference=f"{labels[0]} and {labels[1]} cannot be compared",
        conclusion="",
        ci95_us=None,
        p_value=None,
        min_detectable_us=None,
        method="none",
        within_runs_us=None,
    )


def _estimated(control: Sequence[float], test: Sequence[float], judging: Judging) -> Estimate:
    """The test of one time per run, in any unit; none where one is 0."""
    if min(*control, *test) <= 0:
        return Estimate(0.0)
    logs = (list(map(math.log, side)) for side in (control, test))
    return estimate(*logs, paired=judging.paired, assumed_cv=judging.assume_run_cv)


def _within(control: StepAverage, test: StepAverage, base: float) -> tuple[float, float] | None:
    periods = [[step.period_ns for steps in average.runs.values() for step in steps] for average in (control, test)]
    if any(ns <= 0 for side in periods for ns in side):
        return None
    return interval_us(base, within_runs(*(list(map(math.log, side)) for side in periods)))


def _is_of_medians(by_mean: float, by_median: float, difference: Estimate) -> bool:
    """Whether the mean contradicts the change that is tested, or is outside of its interval, and the median is nearer
    to it.
    """
    tested, (low, high) = math.expm1(difference.effect), difference.interval or (-math.inf, math.inf)
    mean = math.log1p(by_mean) if by_mean > -1 else -math.inf
    return (not low <= mean <= high or contradicting(by_mean, tested)) and _apart(by_median, tested) < _apart(
        by_mean, tested
    )


def contradicting(change: float, other: float) -> bool:
    """Whether two measures of a relative change are far apart, or of opposite directions; alike for swapped sides."""
    return _apart(change, other) > thresholds.CONTRADICTION or opposed(change, other)


def _apart(change: float, other: float) -> float:
    """How far apart two relative changes are, as the logarithm of a ratio."""
    ratios = 1 + change, 1 + other
    return abs(math.log(ratios[0] / ratios[1])) if min(ratios) > 0 else math.inf


def opposed(change: float, other: float) -> bool:
    """Whether two measures of a relative change have opposite directions."""
    return min(change, other) < -thresholds.NO_DIFFERENCE and max(change, other) > thresholds.NO_DIFFERENCE


def how_long(change: float, basis: str = STEP) -> str:
    """``24 % less time per step``, or that there is no difference."""
    if abs(change) < thresholds.NO_DIFFERENCE:
        return f"the same time {basis} (within {thresholds.NO_DIFFERENCE * 100:.1f} %)"
    return f"{change_text(change)} {basis}"


def conclusion_of(difference: Estimate, result: str, runs: tuple[int, int], judging: Judging, change: float) -> str:
    """Whether the difference is significant, in words, with its interval, and what this is around if that is not the
    ``change`` that is stated; or what change would have been.
    """
    basis = _run_counts(runs)
    if difference.interval is None or difference.detectable is None:
        return f"{basis}: significance unknown"
    least = _least_significant(difference)
    if (
        result == "inconclusive"
        and difference.method in ("t", "ranks", "paired")
        and abs(math.log1p(change)) + thresholds.SAME_RATIO < least
    ):
        return f"not significant ({basis} resolve only {_more_than(math.copysign(least, change))})"
    in_times = change > 1  # as the change itself
    low, high, effect = (
        number(math.exp(log)) if in_times else PERCENT.signed_text(math.expm1(log))
        for log in (*difference.interval, difference.effect)
    )
    times = " times" if in_times else ""
    interval = f"95 % interval {low} to {high}{times}"
    if not difference.interval[0] <= math.log1p(change) <= difference.interval[1]:
        interval = f"the runs' medians {effect}{times}, {interval}"
    if difference.method == "assumed":
        basis = f"assuming, not measuring, that runs vary by {100 * (judging.assume_run_cv or 0):g} %"
    if difference.method == "prediction":
        basis = f"one run against {max(runs)}, assuming that both sides vary equally"
    what = "not significant" if result == "inconclusive" else "significant"
    if result == "same":
        what = f"no change beyond ±{100 * judging.equivalence_band:g} %"
    return f"{what} ({interval}; {basis})"


def _least_significant(difference: Estimate) -> float:
    """The effect from which a difference with intervals this wide would be significant."""
    low, high = difference.interval or (0.0, 0.0)
    return difference.effect - low if difference.effect > 0 else high - difference.effect


def _more_than(effect: float) -> str:
    """``changes of 23 % or more``, ``a factor of 2.1 or more``, in the direction of ``effect``."""
    if abs(effect) > math.log(2):
        return f"a factor of {number(math.exp(abs(effect)))} or more"
    return f"changes of {percent(abs(math.expm1(effect)))} or more"


def of_no_steady_state(verdict: Verdict, label: str) -> Verdict:
    """``verdict`` on steps of ``label`` whose change would have the other direction in longer recordings."""
    if verdict.result not in ("faster", "slower"):
        return verdict
    difference = stated("inconclusive", label, verdict.difference.removeprefix(f"{label} takes "))
    return verdict.replace(result="inconclusive", difference=difference, conclusion="not in longer recordings")


def stated(result: str, label: str, difference: str) -> str:
    """``label takes 24 % less time``; ``took`` where that is what was measured, and not significant or not tested."""
    lead = "inconclusive: " if result == "inconclusive" else ""
    return f"{lead}{label} {'takes' if result in ('faster', 'slower') else 'took'} {difference}"


def _run_counts(runs: tuple[int, int]) -> str:
    """``one run per side``, ``5 runs per side``, ``1 and 2 runs``."""
    if runs[0] != runs[1]:
        return f"{runs[0]} and {runs[1]} runs"
    return "one run per side" if runs[0] == 1 else f"{runs[0]} runs per side"


def change_text(change: float) -> str:
    """``24 % less time``, ``1.9 % longer``, ``2.50 times as long``."""
    if change > 1 or percent(-change) == percent(1):  # what takes time never takes 100 % less
        return f"{number(1 + change)} times as long"
    return f"{percent(abs(change))} {'longer' if change > 0 else 'less time'}"


class DiffUnprofiled(FrozenStruct, kw_only=True):
    """The steps that the collector measured without the profiler, and the test of their change."""

    control_us: float
    """median over runs of the median step of control, in µs"""
    test_us: float
    """median over runs of the median step of test, in µs"""
    result: Result
    """result of the significance test over runs"""
    ci95_us: tuple[float, float] | None
    """95 % confidence interval of the change of the median, in µs; null where untested"""
    p_value: PValue
    believed: bool
    """whether the sentence, the result and the p-value of the verdict are about these steps, because they were tested
    and contradict the profiled ones; all other numbers are of profiled steps
    """


class Unprofiled(DiffUnprofiled, kw_only=True):
    """The same, with the `conclusion` of a verdict on it, and the `spread` of runs."""

    conclusion: str
    spread: float | None = None

    @property
    def medians(self) -> Pair[float]:
        """The medians over runs of the median step, in µs."""
        return Pair(self.control_us, self.test_us)

    @property
    def change(self) -> float:
        """test / control − 1."""
        return self.test_us / self.control_us - 1


def judge_unprofiled(
    verdict: Verdict, manifests: tuple[Manifest | None, Manifest | None], judging: Judging
) -> Unprofiled | None:
    """The test of the unprofiled steps; None where a side has none."""
    control, test = (_medians(manifest) for manifest in manifests)
    if not control or not test:
        return None
    difference = _estimated(control, test, judging)
    base, result = median(control), difference.result(judging.equivalence_band)
    change = median(test) / base - 1
    profiled = verdict.median_test_us / verdict.median_control_us - 1 if verdict.median_control_us else 0.0
    return Unprofiled(
        control_us=base,
        test_us=median(test),
        result=result,
        conclusion=conclusion_of(difference, result, (len(control), len(test)), judging, change),
        ci95_us=interval_us(base, difference.interval),
        p_value=difference.p,
        spread=_spread(difference, len(control), len(test)),
        believed=contradicting(profiled, change),
    )


def believing(verdict: Verdict, unprofiled: Unprofiled, label: str) -> Verdict:
    """``verdict`` with the sentence, the result and the p-value of ``unprofiled``."""
    return verdict.replace(
        difference=stated(unprofiled.result, label, how_long(unprofiled.change, f"{STEP} without the profiler")),
        conclusion=unprofiled.conclusion,
        result=unprofiled.result,
        p_value=unprofiled.p_value,
    )


def _medians(manifest: Manifest | None) -> list[float]:
    """The median step of each run without the profiler, in µs; empty if one is 0."""
    medians = manifest.run_medians_us if manifest else []
    return medians if all(us > 0 for us in medians) else []
