"""The two accounts of both sides, each closing with residual 0: of the step (every instant in one state) and of the
kernels (every GPU event in one group); and further tables, row by row.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from statistics import median

import numpy as np

from tracediff.aggregate.averages import KernelAverage, SetTable, StepAverage
from tracediff.diff.groups import WorkTime
from tracediff.diff.matching.items import Item
from tracediff.diff.statistics.many import UNTESTED, Significance, compare_many
from tracediff.diff.views import call_names, moved_lines
from tracediff.profile.events.step_states import BUSY_STATES
from tracediff.profile.kernels.families import uses_tensor_cores
from tracediff.profile.tables.schema import TableSchema
from tracediff.runtimes import KERNEL
from tracediff.structs import NONE, Amounts, FrozenStruct, Pair, Timed, total


class State(Timed, FrozenStruct):
    """One state's time per step, numerators in 1/scale ns, and the significance of its change."""

    name: str
    time: Pair[int]
    significance: Significance = UNTESTED


class StepTime(FrozenStruct):
    """Mean period per step and its states on both sides; numerators in 1/scale ns.

    Attributes:
        states: all states of either side, in order of precedence.
        foreign: part of the GPU states held only by events launched in no used step.
        draining: per run: how long the GPU ran earlier work before the first used steps; in no period.
    """

    period: Pair[int]
    states: tuple[State, ...]
    foreign: Pair[int]
    draining: Pair[int]

    @property
    def delta(self) -> int:
        """test − control."""
        return self.period.delta

    @property
    def busy(self) -> Pair[int]:
        """The time in which a GPU works."""
        return total(state.time for state in self.states if state.name in BUSY_STATES)

    @property
    def residual(self) -> int:
        """What the states leave unexplained of the change: 0."""
        return self.delta - sum(s.delta for s in self.states)


def compare_step_time(steps: Pair[StepAverage], scale: int, noise_floor: float) -> StepTime:
    """Both step accounts on one ``scale`` (a multiple of both denominators)."""

    def scaled(value: Callable[[StepAverage], int]) -> Pair[int]:
        return steps.map(lambda side: scale // side.denominator * value(side))

    names = list(dict.fromkeys([*steps.control.states, *steps.test.states]))
    samples = steps.map(lambda side: np.array([_medians(side, n) for n in names]))
    tested = compare_many(*samples, noise_floor)
    states = [
        State(name, Pair(*(scale // side.denominator * side.states.get(name, 0) for side in steps)), significance)
        for name, significance in zip(names, tested.rows, strict=True)
    ]
    return StepTime(
        period=scaled(lambda side: side.period),
        states=tuple(states),
        foreign=scaled(lambda side: side.foreign),
        draining=scaled(lambda side: side.draining),
    )


def _medians(average: StepAverage, state: str) -> list[float]:
    """One value per run, in µs: the median over its steps of the time in ``state``."""
    return [
        median(step.states.get(state, 0) for step in steps) / 1000 if steps else 0.0 for steps in average.runs.values()
    ]


class GpuTime(WorkTime):
    """GPU time per step on both sides; numerators over scale.

    Attributes:
        busy: union per GPU, summed over GPUs.
        spilled: events whose launch is not in the file. outside: events launched outside every step. Both are of the
            whole set: plain counts and ns.
    """

    busy: Pair[int] = NONE
    spilled: Amounts = Amounts()
    outside: Amounts = Amounts()

    @property
    def tensor_core_shares(self) -> Pair[float] | None:
        """`tensor_core_share` of each side; None if a side has no kernels."""
        members = zip(*(group.members for group in self.groups), strict=True)
        shares = [share for side in members if (share := tensor_core_share(chain(*side))) is not None]
        return Pair(*shares) if len(shares) == 2 else None


def tensor_core_share(members: Iterable[Item]) -> float | None:
    """The least fraction of kernel time on tensor cores (MFMA on AMD) by the kernels' names; None without kernels."""
    kernels = [m for m in members if m.category == KERNEL]
    time = sum(m.ns for m in kernels)
    return sum(m.ns for m in kernels if uses_tensor_cores(m.name)) / time if time else None


def compare_gpu_time(work: WorkTime, kernels: Pair[KernelAverage], scale: int) -> GpuTime:
    """The kernel account made of the matched ``work``, on one ``scale`` (a multiple of both denominators)."""
    return GpuTime(
        work.groups,
        work.unattributed,
        kernels.map(lambda side: scale // side.denominator * side.busy),
        Amounts(*map(Pair, *kernels.map(lambda side: side.spilled))),
        Amounts(*map(Pair, *kernels.map(lambda side: side.outside))),
    )


class TableDiff(FrozenStruct):
    """A table on both sides.

    Attributes:
        rows: key → a value per column of the schema, the largest change of the first column first; numerators over the
            comparison's scale, 0 where a side has no such row.
    """

    schema: TableSchema
    rows: dict[tuple[str, ...], tuple[Pair[int], ...]]


def compare_tables(control: dict[str, SetTable], test: dict[str, SetTable], scale: int) -> tuple[TableDiff, ...]:
    """The tables that both sets have, on ``scale``, a multiple of their denominators."""
    return tuple(compare_table(control[name], test[name], scale) for name in control if name in test)


def compare_table(control: SetTable, test: SetTable, scale: int) -> TableDiff:
    """One table of both sets, on ``scale``, a multiple of their denominators; lines of code that moved have one name,
    as have calls of two vendors that do the same.
    """
    schema = control.schema
    sides = Pair(control, test).map(
        lambda table: {key: [scale // table.denominator * n for n in row] for key, row in table.rows.items()}
    )
    names = sides.map(lambda rows: {text for key in rows for text in key})
    roles = call_names(chain(*names))
    shared = {roles.get(name) for name in names.control & names.test}
    calls = {name: role for name, role in roles.items() if role not in shared}
    sides = Pair(_renamed(sides.control, calls | moved_lines(*names)), _renamed(sides.test, calls))
    none = [0] * len(schema.columns)
    rows = [
        (key, tuple(map(Pair, sides.control.get(key, none), sides.test.get(key, none))))
        for key in {**sides.control, **sides.test}
    ]
    return TableDiff(schema, dict(sorted(rows, key=lambda row: (-abs(row[1][0].delta), -max(row[1][0]), row[0]))))


def _renamed(rows: Mapping[tuple[str, ...], list[int]], names: Mapping[str, str]) -> dict[tuple[str, ...], list[int]]:
    """``rows`` by the ``names`` of both sides; those of one name added up, as every column does."""
    out: dict[tuple[str, ...], list[int]] = {}
    for key, row in rows.items():
        name = tuple(names.get(text, text) for text in key)
        out[name] = [a + b for a, b in zip(out[name], row, strict=True)] if name in out else row
    return out
