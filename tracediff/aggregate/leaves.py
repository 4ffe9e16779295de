"""The leaves of a set: what its steps waited for, run by run (docs/explanation.md)."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracediff.aggregate.averages import UsedStep, weighted_files
from tracediff.aggregate.call_tree import CallTree, Key, Occurrence, work_keys
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Int64, combined, least, most
from tracediff.profile.analyses.leaf_keys import COLUMNS, KINDS
from tracediff.profile.events.work import KEY
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model.profile import LeafTable, Profile

AMOUNTS = ("path_ns", "total_ns", "count")


class LeafKey(NamedTuple):
    """What identifies a leaf; names are match names, empty where there is none.

    Attributes:
        kind: one of leaves.keys.KINDS. work: of GPU events and, in files without, of operators, see `work_keys`.
        name, op, root: see `LeafTable`.
    """

    kind: str
    work: Key | None
    name: str
    op: str
    root: str


class Longest(Struct):
    """The longest instance of a leaf in one run: ns on the path; where it is, and what follows it, if it is Python."""

    ns: int
    first: Occurrence
    following: str


class SetLeaves(Struct):
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
    index = _Index()
    sums: list[tuple[int, Int64, NDArray[np.float64]]] = []
    longest: dict[tuple[int, int], Longest] = {}
    for r, run in enumerate(traces.runs):
        by_file: dict[tuple[int, int], list[int]] = defaultdict(list)
        for step in steps[run.name]:
            by_file[step.rank, step.file].append(step.position)
        for (rank, file), positions in by_file.items():
            profile = run.ranks[rank][file]
            rows = index.rows_of(profile, places[id(profile)], tuple(positions))
            columns = [getattr(profile.leaves, name)[rows.rows] for name in AMOUNTS]
            sums.append((r, rows.leaf, np.array([np.bincount(rows.code, c, len(rows.leaf)) for c in columns])))
            for row, position in zip(*_longest(profile.leaves, rows), strict=True):
                ns = int(profile.leaves.longest_ns[row])
                known = longest.get((r, position))
                if known is None or ns > known.ns:
                    start, following = int(profile.leaves.longest_at[row]), int(profile.leaves.following[row])
                    text = match_name(profile.names[following]) if following >= 0 else ""
                    longest[r, position] = Longest(ns, Occurrence(number[id(profile)], start, ""), text)
    amounts = np.zeros((len(AMOUNTS), len(traces.runs), len(index.keys)))
    for r, leaf, values in sums:
        np.add.at(amounts[:, r].T, leaf, values.T)  # names that differ may be one leaf
    counts = [len(steps[run.name]) for run in traces.runs]
    path, total, count = amounts / np.maximum(counts, 1)[:, None]
    return SetLeaves(list(index.keys), path, total, count, counts, longest)


class _Rows(Struct, frozen=True):
    """The rows of some steps of a `LeafTable`.

    Attributes:
        rows: int64[r] positions. code: int64[r] which of ``leaf`` each is. leaf: int64[k] positions in the set; those
            of names that match alike are one.
    """

    rows: Int64
    code: Int64
    leaf: Int64


class _Index:
    """The distinct leaves of a set, in order of their first occurrence; those of files with the same rows, as of the
    ranks and runs of a program, are looked up once.
    """

    def __init__(self) -> None:
        self.keys: dict[LeafKey, int] = {}
        self._rows: dict[tuple[object, ...], _Rows] = {}
        self._known: dict[tuple[int, ...], dict[tuple[int, ...], int]] = defaultdict(dict)

    def rows_of(self, profile: Profile, places: list[int], positions: tuple[int, ...]) -> _Rows:
        """The rows of the steps at ``positions``; columns are the same if they are identical (`shared_columns`)."""
        table = profile.leaves
        meaning = tuple(map(id, (profile.names, profile.texts, profile.categories, places)))
        same = (*meaning, positions, *(id(getattr(table, name)) for name in ("step", *COLUMNS)))
        if same not in self._rows:
            rows = np.flatnonzero(np.isin(table.step, positions))
            code, first = combined(*(getattr(table, name)[rows] for name in COLUMNS))
            leaf = self._leaves(profile, places, rows[first], self._known[meaning])
            self._rows[same] = _Rows(rows, code, leaf)
        return self._rows[same]

    def _leaves(self, profile: Profile, places: list[int], rows: Int64, known: dict[tuple[int, ...], int]) -> Int64:
        """int64[k]: the leaf of each of ``rows``; ``known`` are those of files whose codes mean the same."""
        codes = list(zip(*(getattr(profile.leaves, name)[rows].tolist() for name in COLUMNS), strict=True))
        new = [i for i, key in enumerate(codes) if key not in known]
        for i, key in zip(new, _keys(profile, places, rows[new]) if new else (), strict=True):
            known[codes[i]] = self.keys.setdefault(key, len(self.keys))
        return np.array([known[key] for key in codes], np.int64)


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


def _longest(table: LeafTable, rows: _Rows) -> tuple[list[int], list[int]]:
    """(row, leaf) of the longest instance on the path of each leaf that has one; of several the first."""
    ns, at = table.longest_ns[rows.rows], table.longest_at[rows.rows]
    some = np.flatnonzero(ns > 0)
    if len(rows.leaf) < len(rows.rows):
        some = some[ns[some] == most(rows.code, ns, len(rows.leaf))[rows.code[some]]]
        first = least(rows.code[some], at[some], len(rows.leaf))
        some = some[at[some] == first[rows.code[some]]]
        some = some[np.unique(rows.code[some], return_index=True)[1]]
    return rows.rows[some].tolist(), rows.leaf[rows.code[some]].tolist()
