"""Operations by name: how often, how long, on both sides, with HTA's five classes on counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tracediff.aggregate.averages import OpAverage
from tracediff.aggregate.samples import Samples
from tracediff.diff.statistics.many import Tested, compare_many
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name
from tracediff.runtimes import CALL_CATEGORIES, DEVICE_CATEGORIES, counterparts

PAIRED = " → "
"""Between the calls of two vendors that do the same."""
GPU_WORK = DEVICE_CATEGORIES
HOST_WORK = ("cpu_op", *CALL_CATEGORIES)
GPU_CATEGORIES = (*GPU_WORK, "gpu_user_annotation")


@dataclass(frozen=True, kw_only=True)
class Op:
    """One operation on both sides, per step; counts and times are numerators over scale.

    Attributes:
        counted_as: name under which its spellings are counted; of calls of two vendors, one of each.
        raw_name: as recorded (its most frequent spelling).
        device: cpu or gpu. category: of the trace. family: kind of work.
        *_total: every occurrence, recursion at each level. *_self: time in no child of the same lane.
        time_change: faster, slower, same, unclear, or untested with fewer than three runs per side or little time.
        p_value, q_value: of its self time, None where untested. relative: its change beyond what all operators have in
            common, None where untested.
        counts_vary: whether its count differs from step to step on either side.
        interval: 95 % interval of the relative change of its self time, None where untested.
    """

    counted_as: str
    raw_name: str
    device: str
    category: str
    family: str
    control_count: int
    test_count: int
    control_total: int
    test_total: int
    control_self: int
    test_self: int
    time_change: str = "untested"
    p_value: float | None = None
    q_value: float | None = None
    relative: float | None = None
    counts_vary: bool = False
    interval: tuple[float, float] | None = None

    @cached_property
    def name(self) -> str:
        """Readable name."""
        return display_name(self.counted_as)

    @property
    def delta(self) -> int:
        """test − control self time on the CPU, where totals hold their children; total on the GPU, where the two are
        the same.
        """
        return self.test_self - self.control_self

    @property
    def total_delta(self) -> int:
        """test − control total time."""
        return self.test_total - self.control_total

    @property
    def count_change(self) -> str:
        """HTA's class: added, deleted, increased, decreased or unchanged."""
        if self.control_count == self.test_count:
            return "unchanged"
        if not self.control_count:
            return "added"
        if not self.test_count:
            return "deleted"
        return "increased" if self.test_count > self.control_count else "decreased"


def compare_ops(
    averages: tuple[OpAverage, OpAverage],
    samples: tuple[Samples, Samples],
    scale: int,
    family_of: Callable[[str, str], str],
    noise_floor: float,
) -> tuple[tuple[Op, ...], float]:
    """(all operations of either side on one ``scale``, largest change of self time first; the change that all tested
    ones have in common).

    Args:
        family_of: tells the family of an event by its category and name. noise_floor: see `compare_many`.
    """
    calls = _counterparts(averages)
    of_name = by_name(averages, scale, calls)
    tested = compare_samples(list(of_name), samples, noise_floor)
    ops = []
    for k, ((category, name), (raw, (control, test))) in enumerate(of_name.items()):
        varies = any((category, name) in side.varying for side in samples)
        word, p, q, relative = tested.line(k)
        paired = name in calls.values()
        if paired:  # several calls in one row, which were not sampled together
            word, p, q, relative = "untested", None, None, None
        counts, totals, self_times = zip(control, test, strict=True)
        op = Op(
            counted_as=_pair_name(averages, calls, name) if paired else name,
            raw_name=raw,
            device=gpu_or_cpu(category),
            category=category,
            family=family_of(category, raw),
            control_count=counts[0],
            test_count=counts[1],
            control_total=totals[0],
            test_total=totals[1],
            control_self=self_times[0],
            test_self=self_times[1],
        )
        ops.append(
            replace(
                op,
                time_change=word,
                p_value=p,
                q_value=q,
                relative=relative,
                counts_vary=varies,
                interval=None if paired else tested.interval(k),
            )
        )
    return tuple(sorted(ops, key=lambda op: (-abs(op.delta), op.category, op.raw_name))), math.expm1(tested.common)


def _counterparts(averages: tuple[OpAverage, OpAverage]) -> dict[str, str]:
    """Runtime call → what it does, if the sides' calls are of different vendors."""
    control, test = ({raw for category, raw in a.ops if category in CALL_CATEGORIES} for a in averages)
    return counterparts(control, test)


def _pair_name(averages: tuple[OpAverage, OpAverage], calls: Mapping[str, str], role: str) -> str:
    """``cudaLaunchKernel → hipLaunchKernel``: the most frequent call of each side that does the same."""
    names = []
    for average in averages:
        found = {raw: values[0] for (_, raw), values in average.ops.items() if calls.get(raw) == role}
        if found:
            names.append(max(found, key=lambda raw: (found[raw], raw)))
    return PAIRED.join(names)


def by_name(
    averages: Sequence[OpAverage], scale: int, calls: Mapping[str, str] = MappingProxyType({})
) -> dict[tuple[str, str], tuple[str, list[list[int]]]]:
    """(category, name) → its most frequent spelling, and count, total and self of each of ``averages``, numerators over
    ``scale``. Runtime calls that do the same by ``calls`` (name → what it does) are one row.
    """
    spellings: dict[tuple[str, str], Counter[str]] = {}
    sums: dict[tuple[str, str], list[list[int]]] = {}
    for side, average in enumerate(averages):
        factor = scale // average.denominator
        for (category, raw), values in average.ops.items():
            key = (CALL_CATEGORIES[0], calls[raw]) if raw in calls else (category, table_name(raw))
            spellings.setdefault(key, Counter())[raw] += factor * values[0]
            entry = sums.setdefault(key, [[0, 0, 0] for _ in averages])[side]
            for i, value in enumerate(values):
                entry[i] += factor * value
    return {
        key: (min(spellings[key].items(), key=lambda item: (-item[1], item[0]))[0], entry)
        for key, entry in sums.items()
    }


def gpu_or_cpu(category: str) -> str:
    """gpu or cpu."""
    return "gpu" if category in GPU_CATEGORIES else "cpu"


def compare_samples(keys: Sequence[Hashable], samples: tuple[Samples, Samples], noise_floor: float) -> Tested:
    """Test what was sampled of ``keys`` on both sides."""
    control, test = (np.array([side.values_of(key) for key in keys]).reshape(len(keys), side.runs) for side in samples)
    return compare_many(control, test, noise_floor)
