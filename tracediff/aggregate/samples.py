"""Samples: one value per run of every operator, family and state, for tests. A run's value is the median over its steps
of the step's sum, in µs.

Of several ranks it is the mean of their medians.
"""

from collections.abc import Callable, Hashable, Iterable

import numpy as np
from msgspec import Struct

from tracediff.aggregate.call_tree import CallTree, Work, work_keys
from tracediff.aggregate.traceset import Numbering, TraceSet, rows_named
from tracediff.arrays import (
    Bools,
    Floats,
    Int64,
    combined,
    concatenated,
    sums,
    with_ancestors,
)
from tracediff.profile.events.work import KEY
from tracediff.profile.kernels.match_names import table_name
from tracediff.profile.model.profile import Profile
from tracediff.profile.placement.calls import OP
from tracediff.structs import FrozenStruct


class Samples(Struct):
    """What was sampled of one side.

    Attributes:
        runs: how many.
        values: key → float64[runs] µs per step; 0 in runs that do not have it.
        varying: keys whose count differs between steps.
    """

    runs: int
    values: dict[Hashable, Floats] = {}
    varying: set[Hashable] = set()

    def values_of(self, key: Hashable) -> Floats:
        """The values of ``key``, zeros where it never occurred."""
        return self.values.get(key, np.zeros(self.runs))


Rows = tuple[Int64, Int64, Int64, Int64]
"""Of rows of a table: position of the step, number of the key, count, ns; int64[n] each."""


def op_samples(traces: TraceSet) -> Samples:
    """Self time by (category, table name)."""
    keys = Numbering[Hashable]()

    def rows(profile: Profile) -> Rows:
        table, names, categories = profile.ops, profile.names, profile.categories
        key = keys.of(
            tuple(map(id, (table.category, table.name, names, categories))),
            lambda: (table.category, table.name),
            lambda category, name: (categories[category], table_name(names[name])),
        )
        return table.step, key, table.count, table.self_ns

    return _samples(traces, rows, keys)


def family_samples(traces: TraceSet, gpu: bool, family_of: Callable[[str, str | None], str]) -> Samples:
    """Work by family: GPU events, or without ``gpu`` the self time of operators."""
    keys = Numbering[Hashable]()

    def rows(profile: Profile) -> Rows:
        table, calls, names = profile.kernels if gpu else profile.host_work, profile.calls, profile.names
        op = np.append(np.where(calls.kind == OP, calls.name, -1), -1)[table.node]
        key = keys.of(
            tuple(map(id, (table.name, table.node, calls.kind, calls.name, names))),
            lambda: (table.name, op),
            lambda name, code: family_of(names[name], names[code] if code >= 0 else None),
        )
        return table.step, key, table.count, table.total_ns

    return _samples(traces, rows, keys)


def launched_samples(traces: TraceSet) -> Samples:
    """GPU work by the table name of each operator that launches it, also through other operators."""
    keys = Numbering[Hashable]()

    def rows(profile: Profile) -> Rows:
        table, calls, names = profile.kernels, profile.calls, profile.names
        key = keys.of(
            tuple(map(id, (calls.kind, calls.name, names))),
            lambda: (np.where(calls.kind == OP, calls.name, -1),),
            lambda name: table_name(names[name]) if name >= 0 else "",
        )
        work, node = with_ancestors(calls.parent, table.node)
        launches = np.flatnonzero(calls.kind[node] == OP)
        work, key = work[launches], key[node[launches]]
        once = combined(work, key)[1]
        work, key = work[once], key[once]
        return table.step[work], key, table.count[work], table.total_ns[work]

    return _samples(traces, rows, keys)


def _samples(traces: TraceSet, rows: Callable[[Profile], Rows], keys: Numbering[Hashable]) -> Samples:
    of_file = {id(profile): rows(profile) for profile in traces.profiles}
    size = len(keys.numbers)
    values = np.zeros((size, len(traces.runs)))
    occurs, varies = np.zeros(size, bool), np.zeros(size, bool)
    for r, run in enumerate(traces.runs):
        for files in run.ranks.values():
            used = [traces.selection.used(profile) for profile in files]
            counts, ns = _by_step([of_file[id(profile)] for profile in files], used, size)
            occurs |= counts.any(axis=1)
            varies |= (counts != counts[:, :1]).any(axis=1)
            ordered, steps = np.sort(ns, axis=1), ns.shape[1]
            medians = (ordered[:, (steps - 1) // 2] + ordered[:, steps // 2]) / 2
            values[:, r] += medians / len(run.ranks) / 1000
    return Samples(
        len(traces.runs),
        {key: values[k] for key, k in keys.numbers.items() if occurs[k]},
        {key for key, k in keys.numbers.items() if varies[k]},
    )


def _by_step(files: list[Rows], used: list[Bools], size: int) -> list[Int64]:
    """[counts, ns], each int64[keys, used steps], of one rank's files, each of which has ``used`` steps."""
    steps, before = sum(map(np.count_nonzero, used)), 0
    parts = []
    for (step, key, count, ns), is_used in zip(files, used, strict=True):
        rows = np.flatnonzero(np.append(is_used, [False, False])[step])  # −1 and −2 are no step
        place = np.cumsum(is_used) - 1
        parts.append((key[rows] * steps + before + place[step[rows]], count[rows], ns[rows]))
        before += int(is_used.sum())
    cell, *amounts = concatenated(parts)
    return [sums(cell, values, size * steps).reshape(size, steps) for values in amounts]


class StepOfRank(FrozenStruct):
    """One step of one rank of one run."""

    run: str
    rank: int
    step: int


class StepSum(StepOfRank):
    """What some work took in one used step: occurrences, and self time in ns."""

    count: int
    ns: int


def per_step(traces: TraceSet, category: str, name: str) -> list[StepSum]:
    """Self time of a (category, table name) in every used step of every file, in the set's order; 0 in steps without
    it.
    """

    def rows(profile: Profile, _file: int) -> tuple[Int64, Int64, Int64]:
        table = profile.ops
        which = rows_named(profile, table, category, lambda raw: table_name(raw) == name)
        return table.step[which], table.count[which], table.self_ns[which]

    return _step_sums(traces, rows)


def work_per_step(traces: TraceSet, tree: CallTree, gpu: bool, works: Iterable[Work]) -> list[StepSum]:
    """The same of ``works``.

    Args:
        tree: the set's own, made of the steps that are used (`call_tree` with the same ``gpu``). works: some of its
            work.
    """
    keys = {work.key for work in works}

    def rows(profile: Profile, file: int) -> tuple[Int64, Int64, Int64]:
        table = profile.kernels if gpu else profile.host_work
        columns = [getattr(table, name) for name in KEY]
        code, first = combined(*columns)
        own_keys = work_keys(profile, tree.places[file], [c[first] for c in columns])
        which = np.array([key in keys for key in own_keys], bool)[code]
        return table.step[which], table.count[which], table.total_ns[which]

    return _step_sums(traces, rows)


def _step_sums(traces: TraceSet, rows: Callable[[Profile, int], tuple[Int64, Int64, Int64]]) -> list[StepSum]:
    """The sums of ``rows`` (of a profile and the position of its file: step, count, ns) in each used step."""
    out = []
    for file, (run, rank, profile) in enumerate(traces.files):
        step, *amounts = rows(profile, file)
        size = len(profile.step_numbers) + 2  # the last two places are those of no step, −1 and −2
        counts, times = (sums(step, amount, size) for amount in amounts)
        for position in np.flatnonzero(traces.selection.used(profile)).tolist():
            number = int(profile.step_numbers[position])
            out.append(StepSum(run.name, rank, number, int(counts[position]), int(times[position])))
    return out
