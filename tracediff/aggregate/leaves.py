"""The leaves of a set: what its steps waited for, run by run (docs/explanation.md)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracediff.aggregate.averages import UsedStep, weighted_files
from tracediff.aggregate.call_tree import CallTree, Key, Occurrence, work_keys
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.leaves.keys import KINDS
from tracediff.profile.model import LeafTable, Profile
from tracediff.profile.work import KEY

AMOUNTS = ("path_ns", "total_ns", "count")


class LeafKey(NamedTuple):
    """What tells a leaf from others; names are match names, empty where there is none.

    Attributes:
        kind: one of leaves.keys.KINDS. work: of GPU events and of operators in files without GPU events, see `work_keys`.
        name, op, root: see `LeafTable`.
    """

    kind: str
    work: Key | None
    name: str
    op: str
    root: str


@dataclass
class Longest:
    """The longest instance of a leaf in one run: ns on the path; where it is, and what follows it, if it is Python."""

    ns: int
    first: Occurrence
    following: str


@dataclass
class SetLeaves:
    """The leaves of a set, l of them.

    Attributes:
        keys: of each. path, total, count: float64[runs, l] ns and instances per step of each run; the mean over runs of
            the path adds up to the period.
        steps: number of steps of each run. longest: (run, leaf) → its longest instance on the path.
    """

    keys: list[LeafKey]
    path: NDArray[np.float64]
    total: NDArray[np.float64]
    count: NDArray[np.float64]
    steps: list[int]
    longest: dict[tuple[int, int], Longest] = field(default_factory=dict)


def set_leaves(traces: TraceSet, tree: CallTree, steps: dict[str, list[UsedStep]]) -> SetLeaves:
    """The leaves of ``traces`` over ``steps`` (run → its used steps, each of its slowest rank)."""
    places = {id(profile): nodes for (profile, _, _), nodes in zip(weighted_files(traces)[1], tree.places, strict=True)}
    number = {id(profile): i for i, profile in enumerate(traces.profiles)}
    index: dict[LeafKey, int] = {}
    sums: list[dict[int, NDArray[np.float64]]] = []
    longest: dict[tuple[int, int], Longest] = {}
    for r, run in enumerate(traces.runs):
        mine: dict[int, NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(AMOUNTS)))
        by_file: dict[tuple[int, int], list[int]] = defaultdict(list)
        for step in steps[run.name]:
            by_file[step.rank, step.file].append(step.position)
        for (rank, file), positions in by_file.items():
            profile = run.ranks[rank][file]
            rows, code, first = _distinct(profile.leaves, positions)
            keys = _keys(profile, places[id(profile)], rows[first])
            leaf = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
            amounts = np.zeros((len(first), len(AMOUNTS)))
            for column, name in enumerate(AMOUNTS):
                np.add.at(amounts[:, column], code, getattr(profile.leaves, name)[rows])
            for position, values in zip(leaf.tolist(), amounts, strict=True):
                mine[position] = mine[position] + values
            for row, position in zip(*_longest(profile.leaves, rows, leaf[code]), strict=True):
                ns = int(profile.leaves.longest_ns[row])
                if (r, position) not in longest or ns > longest[r, position].ns:
                    start, following = int(profile.leaves.longest_at[row]), int(profile.leaves.following[row])
                    text = match_name(profile.names[following]) if following >= 0 else ""
                    longest[r, position] = Longest(ns, Occurrence(number[id(profile)], start, ""), text)
        sums.append(mine)
    columns = np.zeros((len(AMOUNTS), len(sums), len(index)))
    counts = [len(steps[run.name]) for run in traces.runs]
    for r, mine in enumerate(sums):
        for leaf_position, values in mine.items():
            columns[:, r, leaf_position] = values / counts[r]
    return SetLeaves(list(index), *columns, steps=counts, longest=longest)


def _distinct(table: LeafTable, positions: list[int]) -> tuple[Int64, Int64, Int64]:
    """(rows of the steps at ``positions``, code of the leaf of each, first of each code)."""
    rows = np.flatnonzero(np.isin(table.step, positions))
    code, first = combined(*(getattr(table, name)[rows] for name in ("kind", *KEY, "op", "root")))
    return rows, code, first


def _keys(profile: Profile, places: list[int], rows: Int64) -> list[LeafKey]:
    table = profile.leaves
    is_work = table.category[rows] >= 0
    works = iter(work_keys(profile, places, [getattr(table, name)[rows[is_work]] for name in KEY]))
    names = ["", *map(match_name, profile.names)]
    columns = (table.kind, table.category, table.name, table.op, table.root)
    return [
        LeafKey(KINDS[kind], next(works) if category >= 0 else None, names[name + 1], names[op + 1], names[root + 1])
        for kind, category, name, op, root in zip(*(c[rows].tolist() for c in columns), strict=True)
    ]


def _longest(table: LeafTable, rows: Int64, leaf: Int64) -> tuple[list[int], list[int]]:
    """(row, leaf) of the longest instance on the path of each leaf that has one."""
    some = np.flatnonzero(table.longest_ns[rows] > 0)
    order = some[np.lexsort((-table.longest_at[rows[some]], table.longest_ns[rows[some]], leaf[some]))]
    last = order[np.append(np.diff(leaf[order]) != 0, True)] if len(order) else order
    return rows[last].tolist(), leaf[last].tolist()
