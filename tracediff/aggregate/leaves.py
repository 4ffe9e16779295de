"""The leaves of a set: what its steps waited for, run by run (docs/explanation.md)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from tracediff import thresholds
from tracediff.aggregate.averages import RunSteps, UsedStep
from tracediff.aggregate.call_tree import CallTree, Key, Occurrence, work_key
from tracediff.aggregate.traceset import Numbering, TraceSet, in_steps
from tracediff.arrays import Bools, Floats, Int64, changes, combined, group_by, int64_of, tuples, zeros
from tracediff.profile.analyses.leaf_keys import COLUMNS, KINDS
from tracediff.profile.kernels.match_names import matched
from tracediff.profile.model.profile import LeafTable, Profile

AMOUNTS = ("path_ns", "total_ns", "count")


class LeafKey(NamedTuple):
    """What identifies a leaf; names are match names, empty where there is none.

    Attributes:
        kind: one of leaves.keys.KINDS. work: of GPU events and, in files without, of operators, see `work_key`.
        name, op, root: see `LeafTable`.
    """

    kind: str
    work: Key | None
    name: str
    op: str
    root: str


class Longest(Struct):
    """The longest instance of a leaf in one run: ns on the path; where it is; what follows it, if it is Python; of
    leaves that are one the match name of its own.
    """

    ns: int
    first: Occurrence
    following: str
    name: str = ""


class SetLeaves(Struct):
    """The leaves of a set, l of them.

    Attributes:
        keys: of each. path, total, count: float64[runs, l] ns and instances per step of each run; the mean over runs of
            the path adds up to the period.
        samples: float64[s, l] ns per step of each run; of a single run, of at most BATCHES parts of its steps in turn.
        steps: number of steps of each run. in_each: bool[l] whether it occurs in every one.
            longest: (run, leaf) → its longest instance on the path.
    """

    keys: list[LeafKey]
    path: Floats
    total: Floats
    count: Floats
    samples: Floats
    steps: list[int]
    in_each: Bools
    longest: dict[tuple[int, int], Longest] = {}


def set_leaves(traces: TraceSet, tree: CallTree, steps: RunSteps) -> SetLeaves:
    """The leaves of ``traces`` over ``steps`` (run → its used steps, each of its slowest rank)."""
    number = {id(profile): i for i, profile in enumerate(traces.profiles)}
    index = Numbering[LeafKey]()
    leaves_of_profiles: list[tuple[int, LeafTable, Int64, Int64]] = []
    files: list[tuple[int, int]] = []
    longest: dict[tuple[int, int], Longest] = {}
    for r, run in enumerate(traces.runs):
        for (rank, file), of_file in group_by(steps[run.name], lambda step: (step.rank, step.file)).items():
            profile, positions = run.ranks[rank][file], [step.position for step in of_file]
            rows = np.flatnonzero(in_steps(profile, profile.leaves.step, positions))
            leaves = _leaves_of(index, profile, tree.places[number[id(profile)]], rows, tuple(positions))
            leaves_of_profiles.append((r, profile.leaves, rows, leaves))
            files.append((rank, file))
            for leaf, ns, start, following in _longest(profile.leaves, rows, leaves):
                longest_so_far = longest.get((r, leaf))
                if longest_so_far is None or ns > longest_so_far.ns:
                    place = Occurrence(number[id(profile)], start, "")
                    longest[r, leaf] = Longest(ns, place, matched(profile.names)(following))
    amounts = np.zeros((len(AMOUNTS), len(traces.runs), len(index.numbers)))
    in_steps_of = zeros((len(traces.runs), len(index.numbers)))
    for r, table, rows, leaves in leaves_of_profiles:
        _, first = combined(table.step[rows], leaves)
        np.add.at(in_steps_of[r], leaves[first], 1)
        for amount, name in zip(amounts[:, r], AMOUNTS, strict=True):
            np.add.at(amount, leaves, getattr(table, name)[rows].astype(np.float64))
    counts = [len(steps[run.name]) for run in traces.runs]
    steps_of_runs = np.array(counts)[:, None]
    path, total, count = amounts / steps_of_runs
    in_each = (in_steps_of == steps_of_runs).all(axis=0)
    total = np.maximum(total, path)  # of steps together: a period may hold the end of one and the begin of the next
    samples = total
    if len(counts) == 1:
        part_of = _parts(steps[traces.runs[0].name])
        samples = np.zeros((len({*part_of.values()}), len(index.numbers)))
        for (rank, file), (_, table, rows, leaves) in zip(files, leaves_of_profiles, strict=True):
            numbers, where = np.unique(table.step[rows], return_inverse=True)
            parts = int64_of([part_of[rank, file, position] for position in numbers.tolist()])
            np.add.at(samples, (parts[where], leaves), table.total_ns[rows].astype(np.float64))
        samples /= np.bincount([*part_of.values()])[:, None]
    return SetLeaves(list(index.numbers), path, total, count, samples, counts, in_each, longest)


def _parts(steps: list[UsedStep]) -> dict[tuple[int, int, int], int]:
    """(rank, file, position) of each step of a run → the part of them that it is in, of at most BATCHES in turn."""
    parts = min(len(steps), thresholds.BATCHES)
    return {(step.rank, step.file, step.position): k * parts // len(steps) for k, step in enumerate(steps)}


def _leaves_of(
    index: Numbering[LeafKey], profile: Profile, places: list[int], rows: Int64, positions: tuple[int, ...]
) -> Int64:
    """int64[r]: position in the set of the leaf of each of ``rows``, which are of the steps at ``positions``."""
    table, text = profile.leaves, matched(profile.names)
    columns = [getattr(table, name) for name in COLUMNS]
    meaning = (profile.names, profile.texts, profile.categories, places, table.step, *columns)

    def key(kind: int, *codes: int) -> LeafKey:
        *work, op, root = codes
        _, category, name, *_ = work
        work_of_leaf = work_key(profile, places, work) if category >= 0 else None
        return LeafKey(KINDS[kind], work_of_leaf, text(name), text(op), text(root))

    return index.of((positions, *map(id, meaning)), lambda: [column[rows] for column in columns], key)


def _longest(table: LeafTable, rows: Int64, leaves: Int64) -> Iterator[tuple[int, int, int, int]]:
    """(leaf, ns, start, what follows) of the longest instance on the path of each leaf that has one; of several the
    first.
    """
    ns = table.longest_ns[rows]
    order = np.lexsort((table.longest_at[rows], -ns, leaves))
    first = order[changes(leaves[order])]
    selected = first[ns[first] > 0]
    columns = [column[rows[selected]] for column in (table.longest_ns, table.longest_at, table.following)]
    return tuples(leaves[selected], *columns)
