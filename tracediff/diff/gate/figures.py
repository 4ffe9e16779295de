"""Figures: the numbers of a comparison to which a limit applies, and how many runs per side would decide it."""

import math
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from statistics import median
from textwrap import shorten

from tracediff import bounds, thresholds
from tracediff.aggregate.summary import Side
from tracediff.diff.comparison import OPERATOR, Comparison
from tracediff.diff.gate.limits import NAMED, Limit
from tracediff.diff.ops import Op, TestedWork
from tracediff.diff.statistics.runs import reach
from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.ingest.manifest import Manifest
from tracediff.profile.events.step_states import STATES
from tracediff.runtimes import KERNEL
from tracediff.structs import FrozenStruct, total

Interval = tuple[float, float]
"""The ends of a 95 % interval of a relative change."""


def spread_of_interval(interval: Interval, n: int, m: int) -> float:
    """Standard deviation of the logarithm of a run, from an ``interval``."""
    return half_width(interval) / (reach(n + m - 2) * math.sqrt(1 / n + 1 / m))


def middle(interval: Interval) -> float:
    """Logarithm of the ratio in the middle of ``interval``."""
    return (math.log1p(interval[0]) + math.log1p(interval[1])) / 2


def half_width(interval: Interval) -> float:
    """Half the width of ``interval``, in logarithms."""
    return (math.log1p(interval[1]) - math.log1p(interval[0])) / 2


FEW_RUNS = "too few runs: significance unknown"
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")


class Figure(FrozenStruct):
    """One number per side.

    Attributes:
        subject: the limit's subject; for an op its name instead of the pattern.
        control, test: in the limit's unit, None where unknown.
        interval: 95 % interval of the relative change, None where untested.
        exact: the number does not vary between runs, so every difference is significant.
        spread: standard deviation of the logarithm of a run, None where unknown.
        q: of an op whose pattern matches several, else None.
        why: why there is no interval; empty if there is one.
        statistic: what the numbers are, where the subject does not say it.
    """

    subject: str
    control: float | None
    test: float | None
    interval: Interval | None = None
    exact: bool = False
    spread: float | None = None
    q: float | None = None
    why: str = ""
    statistic: str = ""

    @property
    def change(self) -> float | None:
        """test − control; None if a side is unknown."""
        return None if self.control is None or self.test is None else self.test - self.control

    @property
    def ratio(self) -> float | None:
        """test / control; None where control is 0 or a side is unknown."""
        return self.test / self.control if self.control and self.test is not None else None


def figures(limit: Limit, comparison: Comparison) -> list[Figure]:
    """The figures to which ``limit`` applies: one, or for a pattern of ops one for each op that it matches.

    Raises:
        TracediffError: neither side has such an operator, kernel, family or state.
    """
    if limit.kind == "step":
        return [_step(comparison)]
    if comparison.was_refused and limit.kind in NAMED:
        return [Figure(limit.subject, 0.0, 0.0)]  # it has no operators to find; nothing is decided
    if limit.kind in ("state", "family"):
        return [_part(limit, comparison)]
    if limit.kind == "op":
        return _ops(limit, comparison)
    if limit.kind == "gpu-below":
        return _below(limit, comparison)
    if limit.kind == "kernels":
        return [_kernels(comparison)]
    manifests = comparison.control.manifest, comparison.test.manifest
    if limit.kind == "memory":
        control, test = peak_memory(*manifests)
        return [Figure("memory", control, test, exact=True, why="a side has no manifest with the peak memory")]
    control, test = _graph_breaks(comparison.control), _graph_breaks(comparison.test)
    why = "a side has no manifest of a compiled run, and no torch log"
    return [Figure("graph-breaks", control, test, exact=True, why=why)]


def _step(comparison: Comparison) -> Figure:
    """The medians that the verdict's result is about."""
    tested = comparison.tested
    (base, test), ci = tested.medians, tested.ci95_us
    interval = (ci[0] / base, ci[1] / base) if ci and base > 0 else None
    without = " without the profiler" if comparison.believed_unprofiled else ""
    return Figure(
        "step",
        base,
        test,
        interval=interval,
        spread=tested.spread if base > 0 else None,
        why="" if interval else FEW_RUNS,
        statistic=f"median{without}",
    )


def _part(limit: Limit, comparison: Comparison) -> Figure:
    """The time of a state or a family; of a state that no step was in, none."""
    parts = comparison.families
    if limit.kind == "state":
        states = comparison.step_time.states
        parts = tuple(TestedWork(state.name, state.time.map(comparison.us), state.significance) for state in states)
    for part in parts:
        if part.name == limit.name:
            return _time(limit.subject, *part.us, part.significance.interval, comparison)
    if limit.kind == "state" and limit.name in STATES:
        return Figure(limit.subject, 0.0, 0.0)
    raise _unknown(limit, f"a {limit.kind}", [part.name for part in parts])


def _ops(limit: Limit, comparison: Comparison) -> list[Figure]:
    ops = [op for op in comparison.ops if op.category not in ANNOTATIONS]
    matches = [op for op in ops if _matches(op, limit.name)]
    if not matches:
        names = sorted((name for op in ops for name in (op.name, op.raw_name)), key=len)  # operators before kernels
        raise _unknown(limit, "an operator or kernel", names, "a pattern matches whole names, as 'op:*gemm*' does; ")
    return [_op(op, comparison, len(matches) > 1) for op in matches]


def _below(limit: Limit, comparison: Comparison) -> list[Figure]:
    """GPU time of what each operator launches, also through others. Of an operator that only test has it is exact."""
    work_of_name = {work.name: work for work in comparison.launched_work}
    ops = [op for op in comparison.ops if op.category == OPERATOR and op.counted_as in work_of_name]
    matches = [op for op in ops if _matches(op, limit.name)]
    if not matches:
        names = sorted((op.name for op in ops), key=len)
        raise _unknown(limit, "an operator that launches GPU work", names)
    several, out = len(matches) > 1, []
    for op in matches:
        work = work_of_name[op.counted_as]
        figure = _time(f"gpu-below:{op.name}", *work.us, work.significance.interval, comparison)
        out.append(figure.replace(exact=_is_added(op, comparison), q=work.significance.q_value if several else None))
    return out


def _is_added(op: Op, comparison: Comparison) -> bool:
    """Whether only test has ``op``, in every step."""
    return op.count_change == "added" and not op.counts_vary and op.count.test >= comparison.scale


def _unknown(limit: Limit, what: str, names: Sequence[str], form: str = "") -> TracediffError:
    """The error of a limit that matches nothing; a name that contains it is as near as one that is spelt alike, with
    its namespace or without. Without a near name it says in what ``form`` names are given, and lists some.
    """
    part = limit.name.strip("*").lower()
    containing = sorted({name for name in names if part and part in name.lower()}, key=lambda name: (len(name), name))
    listed = shorten(", ".join(dict.fromkeys(names)), bounds.REASON, placeholder=" …")
    there_are = f"{form}there are {listed}" if listed else "there are none"
    name_without = {name.rpartition("::")[2].lower(): name for name in reversed(names)}  # its namespace
    near = containing[:1] or [name_without[match] for match in get_close_matches(part, name_without, n=1)]
    remedy = f"did you mean {near[0]}?" if near else did_you_mean(part, names, there_are)
    return TracediffError(f"limit on {quoted(limit.subject)}", f"neither side has such {what}", remedy)


def _matches(op: Op, pattern: str) -> bool:
    return fnmatchcase(op.name, pattern) or fnmatchcase(op.raw_name, pattern)


def _op(op: Op, comparison: Comparison, several: bool) -> Figure:
    """Self time. An op that only test has, in every step, is exact: it was added."""
    control, test = op.self_time.map(comparison.us)
    statistic = "host self time" if comparison.has_gpu and op.device == "cpu" else ""
    if _is_added(op, comparison):
        return Figure(f"op:{op.name}", control, test, exact=True, statistic=statistic)
    figure = _time(f"op:{op.name}", control, test, op.significance.interval, comparison)
    return figure.replace(q=op.significance.q_value if several else None, statistic=statistic)


def _time(subject: str, control: float, test: float, interval: Interval | None, comparison: Comparison) -> Figure:
    spread = spread_of_interval(interval, *comparison.runs) if interval else None
    return Figure(
        subject,
        control,
        test,
        interval=interval,
        spread=spread,
        why="" if interval else _why_untested(control, test, comparison.runs),
    )


def _why_untested(control: float, test: float, runs: tuple[int, int]) -> str:
    if min(runs) < thresholds.TESTED_RUNS:
        return FEW_RUNS
    if max(control, test) < thresholds.TESTED_US:
        return f"times below {thresholds.TESTED_US:g} µs per step are not tested"
    return "in some run, fewer than half of the steps have it"


def _kernels(comparison: Comparison) -> Figure:
    """Kernels per step, without copies."""
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return Figure("kernels", None, None, exact=True, why="a side has no GPU events")
    kernels = [op for op in comparison.ops if op.category == KERNEL]
    return Figure("kernels", *total(op.count for op in kernels).map(comparison.number), exact=True)


def peak_memory(*manifests: Manifest | None) -> tuple[float | None, ...]:
    """Peak bytes of the median run of each side: of the device if all sides recorded it, else of the host."""
    for place in ("device", "host"):
        peaks = tuple(_median_peak(manifest, place) for manifest in manifests)
        if None not in peaks:
            return peaks
    return (None,) * len(manifests)


def _median_peak(manifest: Manifest | None, place: str) -> float | None:
    runs = manifest.runs if manifest else []
    peaks: list[int] = [peak for run in runs if (peak := getattr(run.peak_memory_bytes, place)) is not None]
    return float(median(peaks)) if peaks else None


def _graph_breaks(side: Side) -> float | None:
    """Breaks of the run with the most."""
    runs = side.manifest.runs if side.manifest else []
    counts = [len(run.compile.graph_breaks) for run in runs if run.compile]
    if not counts and side.torch_log:
        return float(len(side.torch_log.graph_breaks))
    return float(max(counts)) if counts else None
