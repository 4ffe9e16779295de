"""The step times that the collector measured without the profiler: where they contradict the profiled ones, they are
believed, because the profiler's overhead differs from variant to variant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median

from tracediff.diff.statistics.runs import estimate
from tracediff.diff.verdict import (
    SAME_SENTENCE,
    Judging,
    Verdict,
    conclusion_of,
    far_apart,
    interval_us,
    is_different,
    lead,
    result_of,
)
from tracediff.ingest.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class Unprofiled:
    """Steps without the profiler; times in µs.

    Attributes:
        control_us, test_us: median over runs of the median step.
        result, conclusion, ci95_us, p_value: as of a `Verdict`.
        believed: whether the verdict's sentence and result are these: they contradict the profiled.
    """

    control_us: float
    test_us: float
    result: str
    conclusion: str
    ci95_us: tuple[float, float] | None
    p_value: float | None
    believed: bool

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
    found = estimate(
        [math.log(us) for us in control],
        [math.log(us) for us in test],
        paired=judging.paired,
        assumed_cv=judging.assume_run_cv,
    )
    base, result = median(control), result_of(found, judging.equivalence_band)
    unprofiled = Unprofiled(
        control_us=base,
        test_us=median(test),
        result=result,
        conclusion=conclusion_of(found, result, (len(control), len(test)), judging),
        ci95_us=interval_us(base, found),
        p_value=found.p,
        believed=False,
    )
    return replace(unprofiled, believed=contradict(verdict, unprofiled))


def contradict(verdict: Verdict, unprofiled: Unprofiled) -> bool:
    """Whether the changes of the medians with and without the profiler are far apart, or of opposite directions."""
    profiled = verdict.median_test_us / verdict.median_control_us - 1 if verdict.median_control_us else 0.0
    changes = profiled, unprofiled.change
    opposite = min(changes) < -SAME_SENTENCE and max(changes) > SAME_SENTENCE
    return far_apart(*changes) or opposite


def believing(verdict: Verdict, unprofiled: Unprofiled, label: str) -> Verdict:
    """``verdict`` with the sentence and the result of ``unprofiled``."""
    return replace(
        verdict,
        difference=f"{lead(unprofiled.result)}{label} {is_different(unprofiled.change)} without the profiler",
        conclusion=unprofiled.conclusion,
        result=unprofiled.result,
    )


def _medians(manifest: Manifest | None) -> list[float]:
    """The median step of each run without the profiler, in µs; empty if one is 0."""
    runs = manifest.runs if manifest else []
    medians = [median(step.wall_us for step in run.unprofiled_steps) for run in runs if run.unprofiled_steps]
    return medians if all(us > 0 for us in medians) else []
