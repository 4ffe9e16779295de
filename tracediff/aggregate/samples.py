"""Samples: one value per run of every operator, family and state, for tests. A run's value is the median over its steps
of the step's sum, in µs.

Of several ranks it is the mean of their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracediff.aggregate.call_tree import CallTree, Work, work_keys
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Floats, Int64, combined, distinct, sums
from tracediff.profile.events.work import KEY
from tracediff.profile.kernels.match_names import table_name
from tracediff.profile.model.profile import Profile
from tracediff.profile.placement.calls import OP


class Samples(Struct):
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

    def sampled(profile: Profile) -> Sampled:
        table = profile.ops

        def keys() -> tuple[list[Hashable], Int64]:
            return _keys(table.category, table.name, lambda c, n: (profile.categories[c], table_name(profile.names[n])))

        decisive = (table.category, table.name, profile.names, profile.categories)
        return Sampled(table.step, table.self_ns, table.count, keys, decisive)

    return _samples(traces, sampled)


def family_samples(traces: TraceSet, gpu: bool, family_of: Callable[[str, str | None], str]) -> Samples:
    """Work by family: GPU events, or without ``gpu`` the self time of operators."""

    def sampled(profile: Profile) -> Sampled:
        table, calls = profile.kernels if gpu else profile.host_work, profile.calls

        def keys() -> tuple[list[Hashable], Int64]:
            known = len(calls.kind) > 0
            inside = (table.node >= 0) & (calls.kind[table.node] == OP) if known else np.zeros(len(table.node), bool)
            op = np.where(inside, calls.name[table.node] if known else -1, -1)
            return _keys(table.name, op, lambda n, o: family_of(profile.names[n], profile.names[o] if o >= 0 else None))

        decisive = (table.name, table.node, calls.kind, calls.name, profile.names)
        return Sampled(table.step, table.total_ns, table.count, keys, decisive)

    return _samples(traces, sampled)


def _keys(a: Int64, b: Int64, key: Callable[[int, int], Hashable]) -> tuple[list[Hashable], Int64]:
    """(the keys of all rows' pairs of values, int64[n] which of them each row has); every pair is asked for once."""
    code, first = combined(a, b)
    keys: dict[Hashable, int] = {}
    of_code = [keys.setdefault(key(x, y), len(keys)) for x, y in zip(a[first].tolist(), b[first].tolist(), strict=True)]
    return list(keys), np.array(of_code, np.int64)[code]


class Sampled(Struct, frozen=True):
    """What is sampled of one file, n rows.

    Attributes:
        step, ns, count: int64[n].
        keys: computes the keys, and int64[n] which of them each row has. decisive: what they depend on.
    """

    step: Int64
    ns: Int64
    count: Int64
    keys: Callable[[], tuple[list[Hashable], Int64]]
    decisive: tuple[object, ...]


class Grid(Struct):
    """Keys by used steps, of ranks whose files have the same rows.

    Attributes:
        keys: those that occur. varies: bool[keys] whether its count differs between steps.
        rows: of each file, those in used steps. cell: of all files' rows, its place among keys × steps.
        medians: float64[keys] sum over ranks of the median over steps, in ns; whole or half ones, hence exact.
    """

    keys: list[Hashable]
    varies: NDArray[np.bool_]
    steps: int
    rows: list[NDArray[np.intp]]
    cell: NDArray[np.intp]
    medians: Floats

    def add(self, files: list[Sampled]) -> None:
        """Add the medians of another rank."""
        ns = np.concatenate([part.ns[rows] for part, rows in zip(files, self.rows, strict=True)])
        by_step = np.sort(_summed(self.cell, ns, len(self.keys), self.steps), axis=1)
        self.medians += (by_step[:, (self.steps - 1) // 2] + by_step[:, self.steps // 2]) / 2


def _samples(traces: TraceSet, sampled: Callable[[Profile], Sampled]) -> Samples:
    samples = Samples(len(traces.runs))
    for r, run in enumerate(traces.runs):
        grids: dict[tuple[object, ...], Grid] = {}
        for files in run.ranks.values():
            parts = [sampled(profile) for profile in files]
            used = [np.flatnonzero(traces.selection.used(profile)) for profile in files]
            key = (
                *(id(column) for part in parts for column in (part.step, part.count, *part.decisive)),
                *(positions.tobytes() for positions in used),
            )
            if key not in grids:
                grids[key] = _grid(parts, used)
            grids[key].add(parts)
        for grid in grids.values():
            for k, ns, varies in zip(grid.keys, grid.medians.tolist(), grid.varies.tolist(), strict=True):
                samples.values.setdefault(k, np.zeros(samples.runs))[r] += ns / len(run.ranks) / 1000
                if varies:
                    samples.varying.add(k)
    return samples


def _grid(files: list[Sampled], used: list[NDArray[np.intp]]) -> Grid:
    """The empty grid of one rank's files with their ``used`` steps."""
    place: dict[Hashable, int] = {}
    held, cells, counts = [], [], []
    steps, before = sum(map(len, used)), 0
    for part, positions in zip(files, used, strict=True):
        keys, code = part.keys()
        rows = np.flatnonzero(np.isin(part.step, positions))
        places = np.full(len(keys), -1)
        for k in distinct(code[rows]).tolist():
            places[k] = place.setdefault(keys[k], len(place))
        held.append(rows)
        cells.append(places[code[rows]] * steps + before + np.searchsorted(positions, part.step[rows]))
        counts.append(part.count[rows])
        before += len(positions)
    cell = np.concatenate(cells)
    by_step = _summed(cell, np.concatenate(counts), len(place), steps)
    varies = (by_step != by_step[:, :1]).any(axis=1)
    return Grid(list(place), varies, steps, held, cell, np.zeros(len(place)))


def _summed(cell: NDArray[np.intp], values: Int64, keys: int, steps: int) -> Floats:
    """float64[keys, steps]: the sums of ``values``, exact below 2⁵³."""
    sums: Floats = np.bincount(cell, weights=values, minlength=keys * steps).astype(np.float64, copy=False)
    return sums.reshape(keys, steps)


class StepSum(Struct, frozen=True):
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
        columns = [getattr(table, name) for name in KEY]
        code, first = combined(*columns)
        mine = np.array([key in wanted for key in work_keys(profile, places, [c[first] for c in columns])], bool)
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
    counts, times = (sums(step, values, len(profile.step_numbers)) for values in (count, ns))
    for position in np.flatnonzero(traces.selection.used(profile)).tolist():
        yield StepSum(run, rank, int(profile.step_numbers[position]), int(counts[position]), int(times[position]))


def _rows_of(profile: Profile, category: str, name: str) -> NDArray[np.intp]:
    """The rows of its operator table of one (category, table name) that are inside steps."""
    if category not in profile.categories:
        return np.zeros(0, np.intp)
    table = profile.ops
    rows = np.flatnonzero((table.category == profile.categories.index(category)) & (table.step >= 0))
    codes = [code for code in distinct(table.name[rows]).tolist() if table_name(profile.names[code]) == name]
    return rows[np.isin(table.name[rows], codes)]
