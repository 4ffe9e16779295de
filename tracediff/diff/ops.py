"""Operations by name: how often, how long, on both sides, with HTA's five classes on counts; they and families, tested
over runs.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tracediff.aggregate.averages import Average
from tracediff.aggregate.samples import Samples
from tracediff.diff.statistics.many import UNTESTED, Significance, Tested, compare_many
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name
from tracediff.runtimes import CALL_CATEGORIES, DEVICE_CATEGORIES, counterparts
from tracediff.structs import FrozenStruct, Pair, Timed

PAIRED = " → "
"""Between the calls of two vendors that do the same."""
GPU_WORK = DEVICE_CATEGORIES
HOST_WORK = ("cpu_op", *CALL_CATEGORIES)
GPU_CATEGORIES = (*GPU_WORK, "gpu_user_annotation")


class RecordedOperation(FrozenStruct, kw_only=True):
    """What is recorded of an operation.

    Attributes:
        raw_name: as recorded (its most frequent spelling).
        category: of the trace. family: kind of work.
    """

    raw_name: str
    category: str
    family: str

    @property
    def device(self) -> str:
        """gpu or cpu."""
        return gpu_or_cpu(self.category)


class Op(Timed, RecordedOperation, kw_only=True, dict=True):
    """One operation on both sides, per step; counts and times are numerators over scale.

    Attributes:
        counted_as: name under which its spellings are counted; of calls of two vendors, one of each.
        total: every occurrence, recursion at each level. self_time: time in no child of the same lane.
        significance: of its self time.
        counts_vary: whether its count differs from step to step on either side.
    """

    counted_as: str
    count: Pair[int]
    total: Pair[int]
    self_time: Pair[int]
    significance: Significance = UNTESTED
    counts_vary: bool = False

    @cached_property
    def name(self) -> str:
        """Readable name."""
        return display_name(self.counted_as)

    @property
    def time(self) -> Pair[int]:
        """The time that its change is of: its self time, since totals hold those of its children."""
        return self.self_time

    @property
    def count_change(self) -> str:
        """HTA's class: added, deleted, increased, decreased or unchanged."""
        if not self.count.delta:
            return "unchanged"
        if not self.count.control:
            return "added"
        if not self.count.test:
            return "deleted"
        return "increased" if self.count.delta > 0 else "decreased"


def compare_ops(
    averages: Pair[Average],
    samples: Pair[Samples],
    scale: int,
    family_of: Callable[[str, str], str],
    noise_floor: float,
) -> tuple[tuple[Op, ...], float]:
    """(all operations of either side on one ``scale``, largest change of self time first; the change that all tested
    ones have in common).

    Args:
        family_of: the family of an event by its category and name. noise_floor: see `compare_many`.
    """
    calls = _counterparts(averages)
    of_name = by_name(averages, scale, calls)
    tested = compare_samples(list(of_name), samples, noise_floor)
    ops = []
    for k, ((category, name), (raw, sides)) in enumerate(of_name.items()):
        paired = name in calls.values()  # several calls in one row, which were not sampled together
        count, times, self_times = (Pair(*both) for both in zip(*sides, strict=True))
        ops.append(
            Op(
                counted_as=_pair_name(averages, calls, name) if paired else name,
                raw_name=raw,
                category=category,
                family=family_of(category, raw),
                count=count,
                total=times,
                self_time=self_times,
                significance=UNTESTED if paired else tested.rows[k],
                counts_vary=any((category, name) in side.varying for side in samples),
            )
        )
    return sorted_ops(ops), math.expm1(tested.common)


def sorted_ops(ops: Iterable[Op]) -> tuple[Op, ...]:
    """``ops`` by the size of their change; those of equal size by category and name."""
    return tuple(sorted(ops, key=lambda op: (-abs(op.delta), op.category, op.raw_name)))


def largest_first(ops: Iterable[Op]) -> list[Op]:
    """``ops`` by the size of their change; those that did not change by their time."""
    return sorted(ops, key=lambda op: (-abs(op.delta), -sum(op.self_time), op.raw_name))


def _counterparts(averages: Pair[Average]) -> dict[str, str]:
    """Runtime call → what it does, if the sides' calls are of different vendors."""
    control, test = ({raw for category, raw in a.rows if category in CALL_CATEGORIES} for a in averages)
    return counterparts(control, test)


def _pair_name(averages: Pair[Average], calls: Mapping[str, str], role: str) -> str:
    """``cudaLaunchKernel → hipLaunchKernel``: the most frequent call of each side that does the same."""
    names = []
    for average in averages:
        time_of_call = {raw: values[0] for (_, raw), values in average.rows.items() if calls.get(raw) == role}
        if time_of_call:
            names.append(max(time_of_call, key=lambda raw: (time_of_call[raw], raw)))
    return PAIRED.join(names)


def by_name(
    averages: Sequence[Average], scale: int, calls: Mapping[str, str] = MappingProxyType({})
) -> dict[tuple[str, str], tuple[str, list[list[int]]]]:
    """(category, name) → its most frequent spelling, and count, total and self of each of ``averages``, numerators over
    ``scale``. Runtime calls that do the same by ``calls`` (name → what it does) are one row.
    """
    spellings: dict[tuple[str, str], Counter[str]] = {}
    sums: dict[tuple[str, str], list[list[int]]] = {}
    for side, average in enumerate(averages):
        factor = scale // average.denominator
        for (category, raw), values in average.rows.items():
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


def compare_samples(keys: Sequence[Hashable], samples: Pair[Samples], noise_floor: float) -> Tested:
    """Test what was sampled of ``keys`` on both sides."""
    control, test = (np.array([side.values_of(key) for key in keys]).reshape(len(keys), side.runs) for side in samples)
    return compare_many(control, test, noise_floor)


class TestedWork(FrozenStruct):
    """The work of one family, or below one operator; times are medians over steps, means over runs, in µs per step."""

    name: str
    us: Pair[float]
    significance: Significance


def compare_work(samples: Pair[Samples], noise_floor: float) -> tuple[TestedWork, ...]:
    """All work of either side, the largest change first."""
    names = sorted({str(key) for side in samples for key in side.values})
    tested = compare_samples(names, samples, noise_floor)
    rows = [
        TestedWork(name, Pair(*(float(side.values_of(name).mean()) for side in samples)), tested.rows[k])
        for k, name in enumerate(names)
    ]
    return tuple(sorted(rows, key=lambda r: (-abs(r.us.delta), r.name)))
