"""Sentences about sides and the verdict, the same for every output format."""

from __future__ import annotations

from tracediff.aggregate.number_ranges import ranges
from tracediff.aggregate.side import Side
from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import SAME_SENTENCE, Verdict, change_text
from tracediff.formatting import change, percents, plural, time_unit
from tracediff.ingest.unread import unread_devices

TESTED_RUNS = 3
"""Runs per side from which changes are tested."""


def facts(comparison: Comparison) -> str:
    """One line on what was compared: devices, runs, ranks, steps."""
    c, t = comparison.control, comparison.test
    parts = [_same(hardware(c), hardware(t)), _same(plural(c.runs, "run"), plural(t.runs, "run"))]
    parts[-1] += " per side" if c.runs == t.runs else ""
    if max(len(c.ranks), len(t.ranks)) > 1 or c.ranks != t.ranks:
        parts.append(_same(_ranks(c), _ranks(t)))
    parts.append(_same(steps_used(c), steps_used(t)))
    return " · ".join(parts)


def _same(control: str, test: str) -> str:
    return control if control == test else f"{control} → {test}"


def hardware(side: Side) -> str:
    """The GPUs of a set; of one without any GPU event, why there is none, as far as the traces say."""
    named = ", ".join(filter(None, side.devices))
    if side.has_gpu:
        return named or "GPU unknown"
    if side.unrecorded_launches:
        return f"{named}: {not_recorded(side)}" if named else not_recorded(side)
    if unread_devices(side.notes):
        return "host only"
    return f"{named}, no GPU events" if named else "CPU"


def not_recorded(side: Side) -> str:
    """``GPU activity was not recorded (420 launches)``."""
    launches = side.unrecorded_launches
    return f"GPU activity was not recorded ({launches:,} {'launch' if launches == 1 else 'launches'})"


def _ranks(side: Side) -> str:
    listed = ranges(side.ranks)
    return f"rank {listed}" if len(side.ranks) == 1 else f"ranks {listed} (step: the slowest, work: the mean)"


def steps_used(side: Side) -> str:
    """``steps 3–6 (recorded: 2–6)``."""
    if side.whole_file:
        return "the whole file as one step"
    used = ranges(side.steps_used)
    recorded = "" if side.steps_used == side.steps_recorded else f" (recorded: {ranges(side.steps_recorded)})"
    return f"{'step' if len(side.steps_used) == 1 else 'steps'} {used}{recorded}"


def other_step_time(comparison: Comparison) -> str | None:
    """The step times that the verdict does not state: those without the profiler, or where it states these, those with
    it; None where the collector did not measure both.
    """
    found, verdict = comparison.unprofiled, comparison.verdict
    if found is None:
        return None
    if not found.believed:
        how = change_text(found.change) if abs(found.change) >= SAME_SENTENCE else "as long"
        return f"without the profiler: median {change(found.control_us, found.test_us)} per step ({how})"
    profiled = verdict.median_control_us, verdict.median_test_us
    without = found.control_us, found.test_us
    longer = percents(*(with_it / us - 1 for with_it, us in zip(profiled, without, strict=True)))
    return f"the tables are of profiled steps, {longer} longer: median {change(*profiled)}"


def is_tested(comparison: Comparison) -> bool:
    """Whether both sides have runs enough for tests."""
    return min(comparison.control.runs, comparison.test.runs) >= TESTED_RUNS


def asides(comparison: Comparison) -> list[str]:
    """The sentences below the verdict."""
    return [text for text in (draining(comparison), same_gpu_work(comparison), other_step_time(comparison)) if text]


def draining(comparison: Comparison) -> str | None:
    """What the GPU ran before the first steps, if that would have changed the step time that is stated."""
    step, us = comparison.step_time, comparison.us
    if all(
        us(ns) < SAME_SENTENCE * us(period) for ns, period in zip(step.draining, (step.control, step.test), strict=True)
    ):
        return None
    drained = change(*map(us, step.draining))
    return f"plus {drained} before the first step, in which the GPU drains earlier work: not compared"


def same_gpu_work(comparison: Comparison) -> str | None:
    """That only the host's timing differs, and may differ by chance; None if it is otherwise, or was tested."""
    gpu, step = comparison.gpu_time, comparison.step_time
    same = gpu.groups and all(group.level == "exact" for group in gpu.groups)
    if not same or is_tested(comparison) or abs(gpu.delta) > SAME_SENTENCE * max(step.control, step.test):
        return None
    return (
        "The GPU does the same work in the same time, and one run per side does not tell a change of the host from "
        "variation: record more runs"
    )


def headline(comparison: Comparison, remedy: str = " (--force compares anyway)") -> str:
    """The verdict's sentence with its step times; for a refused comparison, the reasons and ``remedy``."""
    verdict = comparison.verdict
    if comparison.was_refused:
        reasons = [r.message for r in comparison.comparability.reasons if r.level == "refused"]
        return f"{verdict.difference}: {'; '.join(reasons)}{remedy}"
    found = comparison.unprofiled
    if found is not None and found.believed:
        return f"{verdict.difference}: median {change(found.control_us, found.test_us)}; {verdict.conclusion}"
    figures = change(verdict.control_us, verdict.test_us)
    medians = change(verdict.median_control_us, verdict.median_test_us)
    if figures != medians:
        figures = f"mean {figures} (median {medians})"
    return f"{verdict.difference}: {figures}; {verdict.conclusion}"


def interval(verdict: Verdict) -> str:
    """The confidence interval of the change of the median step as a sentence; may be empty."""
    if verdict.ci95_us is None:
        if verdict.within_runs_us is None:
            return ""
        low, high = verdict.within_runs_us
        unit = time_unit([low, high])
        return (
            f"Within these two runs the median step changed by {unit.signed(low)} to {unit.signed(high)} "
            f"{unit.name} (95 %); other runs may differ."
        )
    low, high = verdict.ci95_us
    unit = time_unit([low, high])
    text = f"95 % interval of the change of the median step: {unit.signed(low)} to {unit.signed(high)} {unit.name}"
    if verdict.min_detectable_us is not None:
        detectable = f"{unit.plain(verdict.min_detectable_us)} {unit.name}"
        text += f"; detectable change (in 80 % of cases): {detectable}"
    return f"{text}."
