"""Collectives over ranks: the wait for the last to come against the transfer, who comes late, and how far the ranks'
clocks are apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from tracediff.aggregate.averages import weighted_files
from tracediff.aggregate.clock_sync import Clocks, rank_clocks
from tracediff.aggregate.set_table import SetTable
from tracediff.aggregate.traceset import Run, TraceSet
from tracediff.ingest.health import Note, Notes
from tracediff.ingest.times import Int64
from tracediff.profile.analyses.collective_ops import bus_bytes, size_labels
from tracediff.profile.arrays.factorize import combined, grouped, ordinals
from tracediff.profile.model import CollectiveKind
from tracediff.profile.tables.over_ranks import CLOCKS, STRAGGLERS, STRAGGLING_STEPS, WAITS

SYNCHRONISING = frozenset(("barrier", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"))
"""No rank can leave these before all have come."""
EVEN = SYNCHRONISING - {"all_to_all"}
"""Their sizes are equal on all ranks."""
UNCLEAR = "unclear"
"""Stands for the rank where two came last within the uncertainty of their clocks."""


@dataclass(frozen=True)
class CollectiveWaits:
    """What ranks wait for.

    Attributes:
        waits: per step of the mean rank. stragglers: per step of each rank. steps: of each step. clocks: of each run.
        notes: what could not be matched.
    """

    waits: SetTable
    stragglers: SetTable
    steps: SetTable
    clocks: SetTable
    notes: tuple[Note, ...]

    @property
    def tables(self) -> tuple[SetTable, ...]:
        """All four in the order in which they are shown."""
        return self.waits, self.stragglers, self.steps, self.clocks


@dataclass(frozen=True, kw_only=True)
class Operations:
    """The operations of one run over all its ranks, m of them; times in ns.

    Attributes:
        file: int64[m] position among the run's files. rank: int64[m] position among its ranks.
        kind, size, step, sequence, start, end, exposed: int64[m], see `Collectives`; step is a number, −1 outside.
        used: bool[m] in a used step.
    """

    file: Int64
    rank: Int64
    kind: Int64
    size: Int64
    step: Int64
    sequence: Int64
    start: Int64
    end: Int64
    exposed: Int64
    used: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Matched:
    """The matching of m operations over ranks.

    Attributes:
        collective: int64[m] which one it is part of, −1 if not matched. partial: bool[m] a rank of its group is
            missing.
        ranks: int64[m] size of its group, 0 where unknown.
        wait: int64[m] ns. last: int64[m] position of the rank that arrived last, −1 if unclear. late: int64[m] ns after
            the last but one.
    """

    collective: Int64
    partial: NDArray[np.bool_]
    ranks: Int64
    wait: Int64
    last: Int64
    late: Int64


def collective_waits(traces: TraceSet) -> CollectiveWaits | None:
    """The collectives of ``traces`` matched over ranks; None where its profiles were made without the table
    ``collectives`` or there is no communication.

    A collective is one over the ranks by process group, name, dtype, size (but for all_to_all, whose parts may differ),
    and its sequence number in the group
    or, where none is recorded, its ordinal among equals in its step; equals of a step whose numbers differ between
    ranks are not matched, nor are
    operations that cannot have met on any clock.
    """
    kinds: dict[CollectiveKind, int] = {}
    found = {run.name: _operations(traces, run, kinds) for run in traces.runs}
    if not kinds:
        return None
    notes = Notes()
    ordered = list(kinds)
    denominator, files = weighted_files(traces)
    weight_of = {id(profile): weight for profile, _, weight in files}
    waits: dict[tuple[str, ...], list[int]] = {}
    clocks: dict[tuple[str, ...], list[int]] = {}
    held: list[tuple[Run, Operations, Matched]] = []
    for run in traces.runs:
        operations, ranks = found[run.name], list(run.ranks)
        collective = _matched(operations, ordered)
        some = np.flatnonzero(collective >= 0)
        clock = rank_clocks(
            collective[some], operations.rank[some], operations.start[some], operations.end[some], len(ranks)
        )
        collective = _possible(operations, collective, clock)
        match = _waited(
            operations,
            collective,
            clocks=clock,
            kinds=ordered,
            world=max((p.origin.world_size or 0 for fs in run.ranks.values() for p in fs), default=0),
            ranks=len(ranks),
        )
        held.append((run, operations, match))
        weights = [weight_of[id(p)] for fs in run.ranks.values() for p in fs]
        _add_waits(waits, operations, match, ordered, weights)
        if (collective >= 0).any():
            clocks |= _clock_rows(run.name, ranks, clock)
        _add_notes(notes, operations, match, ordered, len(ranks))
    return CollectiveWaits(
        SetTable(WAITS, denominator, waits),
        _stragglers(traces, held),
        _straggling_steps(held),
        SetTable(CLOCKS, 1, clocks),
        tuple(notes.list()),
    )


def _operations(traces: TraceSet, run: Run, kinds: dict[CollectiveKind, int]) -> Operations:
    """All of ``run``; new kinds get the next codes."""
    parts: list[Int64] = []
    files = [(position, profile) for position, rank in enumerate(run.ranks) for profile in run.ranks[rank]]
    for number, (position, profile) in enumerate(files):
        operations = profile.collectives
        if operations is None or not len(operations.kind):
            continue
        code = np.array([kinds.setdefault(kind, len(kinds)) for kind in operations.kinds], np.int64)
        inside = operations.step >= 0
        position_of_step = np.maximum(operations.step, 0)
        step = np.where(inside, profile.step_numbers[position_of_step], -1)
        counts = inside & traces.selection.used(profile)[position_of_step]
        same = np.ones(len(operations.kind), np.int64)
        parts.append(
            np.stack(
                [
                    same * number,
                    same * position,
                    code[operations.kind],
                    operations.size,
                    step,
                    operations.sequence,
                    operations.start,
                    operations.end,
                    operations.exposed,
                    counts,
                ]
            )
        )
    file, rank, kind, size, step, sequence, start, end, exposed, used = np.array(
        parts and np.concatenate(parts, axis=1), np.int64
    ).reshape(10, -1)
    return Operations(
        file=file,
        rank=rank,
        kind=kind,
        size=size,
        step=step,
        sequence=sequence,
        start=start,
        end=end,
        exposed=exposed,
        used=used.astype(bool),
    )


def _matched(operations: Operations, kinds: list[CollectiveKind]) -> Int64:
    """int64[m]: the collective that each operation is part of, −1 without a counterpart, or if it is ambiguous."""
    out = np.full(len(operations.kind), -1, np.int64)
    together = np.array([kind.collective in SYNCHRONISING for kind in kinds], bool)[operations.kind]
    some = np.flatnonzero(together & ((operations.sequence >= 0) | (operations.step >= 0)))
    if not len(some):
        return out
    even = np.array([kind.collective in EVEN for kind in kinds], bool)[operations.kind[some]]
    numbered = operations.sequence[some] >= 0
    place, size = (
        np.unique(column, return_inverse=True)[1].astype(np.int64)
        for column in (
            np.where(numbered, operations.sequence[some], operations.step[some]),
            np.where(even, operations.size[some], -1),
        )
    )
    cell, _ = combined(operations.kind[some], numbered.astype(np.int64), place, size)
    order = np.lexsort((operations.start[some], operations.rank[some]))
    ordinal = np.empty(len(some), np.int64)
    in_rank, _ = combined(cell, operations.rank[some])
    ordinal[order] = ordinals(in_rank[order])
    (each, _), (count,) = grouped([cell, operations.rank[some]], [np.ones(len(some), np.int64)])
    fewest, most = np.full(int(cell.max()) + 1, np.iinfo(np.int64).max), np.zeros(int(cell.max()) + 1, np.int64)
    np.minimum.at(fewest, each, count)
    np.maximum.at(most, each, count)
    collective, _ = combined(cell, ordinal)
    partners = np.bincount(collective)[collective]
    out[some] = np.where((fewest == most)[cell] & (partners >= 2), collective, -1)
    return out


def _possible(operations: Operations, collective: Int64, clocks: Clocks) -> Int64:
    """``collective`` (int64[m]) less those that one rank left before another came: they are no single collective,
    whatever they are called.
    """
    some = np.flatnonzero(collective >= 0)
    start, end = (column[some] - clocks.offset[operations.rank[some]] for column in (operations.start, operations.end))
    unsure = clocks.uncertainty[operations.rank[some]]
    size = int(collective.max(initial=-1)) + 1
    came, left = np.full(size, np.iinfo(np.int64).min), np.full(size, np.iinfo(np.int64).max)
    np.maximum.at(came, collective[some], start - unsure)
    np.minimum.at(left, collective[some], end + unsure)
    out = collective.copy()
    out[some] = np.where((came <= left)[collective[some]], collective[some], -1)
    return out


def _waited(
    operations: Operations, collective: Int64, *, clocks: Clocks, kinds: list[CollectiveKind], world: int, ranks: int
) -> Matched:
    """The waits and arrivals of matched operations, on one clock."""
    m = len(collective)
    match = Matched(
        collective=collective,
        partial=np.zeros(m, bool),
        ranks=np.array([k.ranks for k in kinds], np.int64)[operations.kind],
        wait=np.zeros(m, np.int64),
        last=np.full(m, -1),
        late=np.zeros(m, np.int64),
    )
    some = np.flatnonzero(collective >= 0)
    if not len(some):
        return match
    start = operations.start[some] - clocks.offset[operations.rank[some]]
    order = np.lexsort((operations.rank[some], start, collective[some]))
    some, start = some[order], start[order]
    first = np.flatnonzero(np.concatenate(([True], np.diff(collective[some]) != 0)))
    rank_count = np.diff(np.append(first, len(some)))
    last = first + rank_count - 1
    late = start[last] - start[last - 1]
    unsure = clocks.uncertainty[operations.rank[some[last]]] + clocks.uncertainty[operations.rank[some[last - 1]]]
    last_rank = np.where(late > unsure, operations.rank[some[last]], -1)
    spread = np.repeat(np.arange(len(first)), rank_count)
    match.wait[some] = np.clip(start[last][spread] - start, 0, operations.end[some] - operations.start[some])
    match.last[some], match.late[some] = last_rank[spread], late[spread]
    whole = (rank_count == world) & (rank_count == ranks)
    match.ranks[some] = np.where((match.ranks[some] == 0) & whole[spread], world, match.ranks[some])
    expected = np.where(match.ranks[some] > 0, match.ranks[some], max(world, ranks))
    match.partial[some] = rank_count[spread] < expected
    return match


def _add_waits(
    rows: dict[tuple[str, ...], list[int]],
    operations: Operations,
    match: Matched,
    kinds: list[CollectiveKind],
    weights: list[int],
) -> None:
    """Add the used operations to the rows of `WAITS`, those of each file times its weight."""
    some = np.flatnonzero(operations.used)
    if not len(some):
        return
    labels = size_labels(operations.size[some])
    distinct = sorted(set(labels))
    place = {label: k for k, label in enumerate(distinct)}
    label = np.array([place[text] for text in labels], np.int64)
    duration, matched, known = (
        (operations.end - operations.start)[some],
        match.collective[some] >= 0,
        operations.size[some] >= 0,
    )
    wait = np.where(matched, match.wait[some], 0)
    transfer = np.where(matched, duration - wait, 0)
    bus, has_bus = _bus(operations, match, kinds, some, matched & known)
    columns = [
        duration,
        wait,
        transfer,
        np.where(matched, 0, duration),
        operations.exposed[some],
        duration - operations.exposed[some],
        np.ones(len(some), np.int64),
        (matched & match.partial[some]).astype(np.int64),
        np.where(matched & known, operations.size[some], 0),
        np.where(known, transfer, 0),
        bus,
        np.where(has_bus, transfer, 0),
    ]
    (kind, size, file), sums = grouped([operations.kind[some], label, operations.file[some]], columns)
    for k, s, f, *values in zip(*(c.tolist() for c in (kind, size, file, *sums)), strict=True):
        row = rows.setdefault((kinds[k].collective, kinds[k].group, kinds[k].dtype, distinct[s]), [0] * len(values))
        for i, value in enumerate(values):
            row[i] += weights[f] * value


def _bus(
    operations: Operations, match: Matched, kinds: list[CollectiveKind], some: Int64, known: NDArray[np.bool_]
) -> tuple[Int64, NDArray[np.bool_]]:
    """(int64 bytes over the bus of the operations ``some``, whether they are known)."""
    bus, has = np.zeros(len(some), np.int64), np.zeros(len(some), bool)
    both, first = combined(operations.kind[some], match.ranks[some])
    for code, row in enumerate(first.tolist()):
        mine = np.flatnonzero((both == code) & known)
        kind = kinds[operations.kind[some[row]]]
        carried = bus_bytes(
            CollectiveKind(kind.collective, kind.group, kind.dtype, kind.members, int(match.ranks[some[row]])),
            operations.size[some[mine]],
        )
        if carried is not None:
            bus[mine], has[mine] = carried, True
    return bus, has


def _stragglers(traces: TraceSet, held: list[tuple[Run, Operations, Matched]]) -> SetTable:
    """Rows of `STRAGGLERS`; a collective counts to the step of the rank that came last, the unclear ones to the lowest
    rank there.
    """
    runs_of = Counter(rank for run in traces.runs for rank in run.ranks)
    shares = {}
    for run in traces.runs:
        for rank, files in run.ranks.items():
            shares[run.name, rank] = runs_of[rank] * sum(int(traces.selection.used(p).sum()) for p in files)
    denominator = lcm(*shares.values())
    rows: dict[tuple[str, ...], list[int]] = {}
    for run, operations, match in held:
        ranks = list(run.ranks)
        for position, rank in enumerate(ranks):
            mine = np.flatnonzero(operations.used & (match.collective >= 0) & (operations.rank == position))
            wait = match.wait[mine]
            rank_sums = [
                wait.sum(),
                ((operations.end - operations.start)[mine] - wait).sum(),
                operations.exposed[mine].sum(),
                len(mine),
            ]
            _add(rows, (str(rank),), [0, 0, 0, *rank_sums], denominator // shares[run.name, rank])
        for _, position, lowest, caused, late in _arrivals(operations, match):
            weight = denominator // shares[run.name, ranks[position if position >= 0 else lowest]]
            key = (str(ranks[position]),) if position >= 0 else (UNCLEAR,)
            _add(rows, key, [caused, 1, late, 0, 0, 0, 0], weight)
    return SetTable(STRAGGLERS, denominator, rows)


def _straggling_steps(held: list[tuple[Run, Operations, Matched]]) -> SetTable:
    """Rows of `STRAGGLING_STEPS`."""
    runs_of = Counter(
        step for _, operations, _ in held for step in np.unique(operations.step[operations.used]).tolist()
    )
    denominator = lcm(*runs_of.values()) if runs_of else 1
    rows: dict[tuple[str, ...], list[int]] = {}
    for run, operations, match in held:
        ranks = list(run.ranks)
        for step, position, _, caused, late in _arrivals(operations, match):
            _add(
                rows,
                (str(step), str(ranks[position]) if position >= 0 else UNCLEAR),
                [caused, 1, late],
                denominator // runs_of[step],
            )
    return SetTable(STRAGGLING_STEPS, denominator, rows)


def _arrivals(operations: Operations, match: Matched) -> list[tuple[int, int, int, int, int]]:
    """(step, position of the rank that came last or −1, lowest position there, waits of all, late by) of each
    collective whose operations are used.
    """
    some = np.flatnonzero(operations.used & (match.collective >= 0))
    (collective,), (waits,) = grouped([match.collective[some]], [match.wait[some]])
    order = some[np.lexsort((operations.rank[some], match.collective[some]))]
    first = order[np.searchsorted(match.collective[order], collective)]
    columns = (operations.step[first], match.last[first], operations.rank[first], waits, match.late[first])
    return list(zip(*(c.tolist() for c in columns), strict=True))


def _add(rows: dict[tuple[str, ...], list[int]], key: tuple[str, ...], values: list[int], weight: int) -> None:
    row = rows.setdefault(key, [0] * len(values))
    for k, value in enumerate(values):
        row[k] += weight * int(value)


def _clock_rows(run: str, ranks: list[int], clocks: Clocks) -> dict[tuple[str, ...], list[int]]:
    columns = zip(
        ranks,
        clocks.reference.tolist(),
        clocks.offset.tolist(),
        clocks.uncertainty.tolist(),
        clocks.shared.tolist(),
        strict=True,
    )
    return {(run, str(rank), str(ranks[reference])): values for rank, reference, *values in columns}


def _add_notes(notes: Notes, operations: Operations, match: Matched, kinds: list[CollectiveKind], ranks: int) -> None:
    """Add notes about the used operations that have no counterpart or lack a rank."""
    if ranks < 2:
        return
    together = np.array([kind.collective in SYNCHRONISING for kind in kinds], bool)[operations.kind]
    alone = operations.used & together & (match.collective < 0)
    notes.add(
        "unmatched-collectives",
        "collectives have no counterpart in the files of other ranks: their wait is unknown",
        int(alone.sum()),
    )
    partial = operations.used & match.partial & (match.collective >= 0)
    notes.add(
        "partial-collectives",
        "collectives lack the file of a rank of their group: the last rank to arrive may be that one",
        int(partial.sum()),
    )
