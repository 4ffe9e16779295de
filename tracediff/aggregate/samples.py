"""Samples: one value per run of every operator, family and state, for tests. A run's value is the median over its steps
of the step's sum, in µs.

Of several ranks it is the mean of their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracediff.aggregate.call_tree import CallTree, Work, work_keys
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.kernels.match_names import table_name
from tracediff.profile.model import Profile
from tracediff.profile.placement.calls import OP

Floats = NDArray[np.float64]


@dataclass
class Samples:
    """What was sampled of one side.

    Attributes:
        runs: how many.
        values: key → float64[runs] µs per step; 0 in runs that do not have it.
        varying: keys whose count differs between steps.
    """

    runs: int
    values: dict[Hashable, Floats] = field(default_factory=dict)
    varying: set[Hashable] = field(default_factory=set)

    def values_of(self, key: Hashable) -> Floats:
        """The values of ``key``, zeros where it never occurred."""
        return self.values.get(key, np.zeros(self.runs))


def op_samples(traces: TraceSet) -> Samples:
    """Self time by (category, table name)."""

    def rows(profile: Profile) -> tuple[list[Hashable], Int64, Int64, Int64, Int64]:
        table = profile.ops
        keys, code = _keys(
            table.category, table.name, lambda c, n: (profile.categories[c], table_name(profile.names[n]))
        )
        return keys, code, table.step, table.self_ns, table.count

    return _samples(traces, rows)


def family_samples(traces: TraceSet, gpu: bool, family_of: Callable[[str, str | None], str]) -> Samples:
    """Work by family: GPU events, or without ``gpu`` the self time of operators."""

    def rows(profile: Profile) -> tuple[list[Hashable], Int64, Int64, Int64, Int64]:
        table = profile.kernels if gpu else profile.host_work
        calls = profile.calls
        inside = (
            (table.node >= 0) & (calls.kind[table.node] == OP) if len(calls.kind) else np.zeros(len(table.node), bool)
        )
        op = np.where(inside, calls.name[table.node] if len(calls.name) else -1, -1)
        keys, code = _keys(
            table.name, op, lambda n, o: family_of(profile.names[n], profile.names[o] if o >= 0 else None)
        )
        return keys, code, table.step, table.total_ns, table.count

    return _samples(traces, rows)


def _keys(a: Int64, b: Int64, key: Callable[[int, int], Hashable]) -> tuple[list[Hashable], Int64]:
    """(the keys of all rows' pairs of values, int64[n] which of them each row has); every pair is asked for once."""
    code, first = combined(a, b)
    keys: dict[Hashable, int] = {}
    of_code = [keys.setdefault(key(x, y), len(keys)) for x, y in zip(a[first].tolist(), b[first].tolist(), strict=True)]
    return list(keys), np.array(of_code, np.int64)[code]


Rows = Callable[[Profile], tuple[list[Hashable], Int64, Int64, Int64, Int64]]
"""Profile → (keys, key of each row, step, ns, count)."""


def _samples(traces: TraceSet, rows: Rows) -> Samples:
    samples = Samples(len(traces.runs))
    for r, run in enumerate(traces.runs):
        for files in run.ranks.values():
            for key, ns, varies in _medians(traces, files, rows):
                samples.values.setdefault(key, np.zeros(samples.runs))[r] += ns / len(run.ranks) / 1000
                if varies:
                    samples.varying.add(key)
    return samples


def _medians(traces: TraceSet, files: list[Profile], rows: Rows) -> Iterator[tuple[Hashable, float, bool]]:
    """(key, median ns over the used steps of one rank, whether its count varies from step to step)."""
    place: dict[Hashable, int] = {}
    blocks, steps = [], 0
    for profile in files:
        used = np.flatnonzero(traces.selection.used(profile))
        keys, code, step, ns, count = rows(profile)
        held = np.isin(step, used)
        row = np.array([place.setdefault(key, len(place)) for key in keys], np.int64)[code[held]]
        blocks.append((row, steps + np.searchsorted(used, step[held]), ns[held], count[held]))
        steps += len(used)
    sums = np.zeros((2, len(place), steps))
    for row, column, *values in blocks:
        for table, amount in zip(sums, values, strict=True):
            np.add.at(table, (row, column), amount)
    times, counts = sums
    occurs, varies = np.count_nonzero(counts, axis=1), np.count_nonzero(counts != counts[:, :1], axis=1)
    median = np.median(times, axis=1) if steps else np.zeros(len(place))
    for key, k in place.items():
        if occurs[k]:
            yield key, float(median[k]), bool(varies[k])


@dataclass(frozen=True)
class StepSum:
    """What some work took in one used step: occurrences, and self time in ns."""

    run: str
    rank: int
    step: int
    count: int
    ns: int


def per_step(traces: TraceSet, category: str, name: str) -> list[StepSum]:
    """Self time of a (category, table name) in every used step of every file, in the set's order; 0 in steps without
    it.
    """

    def rows(profile: Profile) -> tuple[Int64, Int64, Int64]:
        table, which = profile.ops, _rows_of(profile, category, name)
        return table.step[which], table.count[which], table.self_ns[which]

    return [
        step_sum
        for run, rank, profile in _files(traces)
        for step_sum in _by_step(traces, run, rank, profile, rows(profile))
    ]


def work_per_step(traces: TraceSet, tree: CallTree, gpu: bool, works: Iterable[Work]) -> list[StepSum]:
    """The same of ``works``.

    Args:
        tree: the set's own, made of the steps that are used (`call_tree` with the same ``gpu``). works: some of its
            work.
    """
    wanted = {work.key for work in works}
    out: list[StepSum] = []
    for (run, rank, profile), places in zip(_files(traces), tree.places, strict=True):
        table = profile.kernels if gpu else profile.host_work
        keys = [table.node, table.category, table.name, table.launch_shape, table.ordinal]
        code, first = combined(*keys)
        mine = np.array([key in wanted for key in work_keys(profile, places, [column[first] for column in keys])], bool)
        which = np.flatnonzero(mine[code] & (table.step >= 0))
        rows = table.step[which], table.count[which], table.total_ns[which]
        out += _by_step(traces, run, rank, profile, rows)
    return out


def _files(traces: TraceSet) -> Iterator[tuple[str, int, Profile]]:
    """(run, rank, profile) of every file, in the set's order."""
    return ((run.name, rank, profile) for run in traces.runs for rank, files in run.ranks.items() for profile in files)


def _by_step(
    traces: TraceSet, run: str, rank: int, profile: Profile, rows: tuple[Int64, Int64, Int64]
) -> Iterator[StepSum]:
    """The sums of ``rows`` (step, count, ns) in each used step of a file."""
    step, count, ns = rows
    sums = np.zeros((2, len(profile.step_numbers)), np.int64)
    for total, values in zip(sums, (count, ns), strict=True):
        np.add.at(total, step, values)
    for position in np.flatnonzero(traces.selection.used(profile)).tolist():
        yield StepSum(run, rank, int(profile.step_numbers[position]), int(sums[0, position]), int(sums[1, position]))


def _rows_of(profile: Profile, category: str, name: str) -> NDArray[np.intp]:
    """The rows of its operator table of one (category, table name) that are inside steps."""
    if category not in profile.categories:
        return np.zeros(0, np.intp)
    table = profile.ops
    rows = np.flatnonzero((table.category == profile.categories.index(category)) & (table.step >= 0))
    codes = [code for code in np.unique(table.name[rows]).tolist() if table_name(profile.names[code]) == name]
    return rows[np.isin(table.name[rows], codes)]
