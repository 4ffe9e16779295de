"""Collectives over ranks: the wait for the last to come against the transfer, who comes late, and how far the ranks'
clocks are apart.
"""

from collections import Counter
from collections.abc import Collection
from math import lcm

import numpy as np
from msgspec.structs import asdict

from tracediff.aggregate.averages import SetTable, files_of_ranks, weighted_files
from tracediff.aggregate.clock_sync import Clocks, rank_clocks
from tracediff.aggregate.traceset import Run, TraceSet
from tracediff.arrays import (
    AnyArray,
    Bools,
    Int64,
    Rows,
    all_none,
    changes,
    combined,
    distinct,
    grouped,
    int64_of,
    least,
    most,
    numbered_texts,
    ordinals,
    sorted_by,
    stacked,
    tuples,
    zeros,
)
from tracediff.ingest.model.health import Note, Notes
from tracediff.profile.analyses.collective_ops import size_labels, traffic
from tracediff.profile.model.profile import CollectiveKind, Collectives
from tracediff.profile.tables.schema import CLOCKS, STRAGGLERS, STRAGGLING_STEPS, WAITS

SYNCHRONISING = frozenset(("barrier", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"))
"""No rank can leave these before all have come."""
EVEN = SYNCHRONISING - {"all_to_all"}
"""Their sizes are equal on all ranks."""
UNCLEAR = "unclear"
"""Stands for the rank where two came last within the uncertainty of their clocks."""


class Operations(Collectives, kw_only=True):
    """The operations of one run over all its ranks, m of them; ``step`` is a number, −1 outside.

    Attributes:
        file: int64[m] position among the run's files. rank: int64[m] position among its ranks.
        used: bool[m] in a used step.
    """

    file: Int64
    rank: Int64
    used: Bools

    def of_kinds(self, names: Collection[str]) -> Bools:
        """bool[m]: which of them are called one of ``names``."""
        return np.array([kind.collective in names for kind in self.kinds], bool)[self.kind]


class Matched(Operations, kw_only=True):
    """The operations of one run, matched over its ranks.

    Attributes:
        collective: int64[m] which one it is part of, −1 if not matched. partial: bool[m] a rank of its group is
            missing.
        ranks: int64[m] size of its group, 0 where unknown.
        wait: int64[m] ns. last: int64[m] position of the rank that arrived last, −1 if unclear. late: int64[m] ns after
            the last but one.
    """

    collective: Int64
    partial: Bools
    ranks: Int64
    wait: Int64
    last: Int64
    late: Int64


RunMatch = tuple[Run, Matched]
COLUMNS = tuple(name for name in Operations.__struct_fields__ if name != "kinds")


def collective_tables(traces: TraceSet) -> tuple[dict[str, SetTable], list[Note]]:
    """(name → table of the collectives of ``traces`` matched over ranks, notes on what could not be matched); empty
    where its profiles were made without the table ``collectives`` or there is no communication.

    A collective is one over the ranks by process group, name, dtype, size (but for all_to_all, whose parts may differ),
    and its sequence number in the group or, where none is recorded, its ordinal among equals in its step; equals of a
    step whose numbers differ between ranks are not matched, nor are operations that cannot have met on any clock.
    """
    operations_of_runs = [(run, _operations(traces, run)) for run in traces.runs]
    if not any(operations.kinds for _, operations in operations_of_runs):
        return {}, []
    notes = Notes()
    denominator, files = weighted_files(traces)
    weight_of = {id(profile): weight for profile, _, weight in files}
    waits, clocks = SetTable(denominator, schema=WAITS), SetTable(1, schema=CLOCKS)
    matches: list[RunMatch] = []
    for run, operations in operations_of_runs:
        ranks = list(run.ranks)
        collective = _matched(operations)
        some = np.flatnonzero(collective >= 0)
        clock = rank_clocks(
            collective[some], operations.rank[some], operations.start[some], operations.end[some], len(ranks)
        )
        match = _waited(operations, _possible(operations, collective, clock), clock, run)
        matches.append((run, match))
        _add_waits(waits, match, [weight_of[id(p)] for p in run.profiles])
        if (match.collective >= 0).any():
            columns = tuples(clock.reference, clock.offset, clock.uncertainty, clock.shared)
            for rank, (reference, *values) in zip(ranks, columns, strict=True):
                clocks.add((run.name, str(rank), str(ranks[reference])), values, 1)
        if len(ranks) > 1:
            _add_notes(notes, match)
    tables = waits, _stragglers(traces, matches), _straggling_steps(matches), clocks
    return {table.schema.name: table for table in tables}, notes.list()


def _operations(traces: TraceSet, run: Run) -> Operations:
    """All of ``run``."""
    kinds: dict[CollectiveKind, int] = {}
    parts: list[Rows] = [(zeros(0),) * len(COLUMNS)]
    files = [(position, p) for position, of_rank in enumerate(run.ranks.values()) for p in of_rank]
    for number, (position, profile) in enumerate(files):
        operations = profile.collectives
        if operations is None:
            continue
        code = int64_of([kinds.setdefault(kind, len(kinds)) for kind in operations.kinds])
        inside, place = operations.step >= 0, np.maximum(operations.step, 0)
        columns = asdict(operations) | {
            "kind": code[operations.kind],
            "step": np.where(inside, profile.step_numbers[place], -1),
            "file": number,
            "rank": position,
            "used": inside & traces.selection.used(profile)[place],
        }
        parts.append(tuple(columns[name] for name in COLUMNS))
    whole: dict[str, AnyArray] = dict(zip(COLUMNS, stacked(*parts), strict=True))
    return Operations(**whole | {"used": whole["used"].astype(bool)}, kinds=tuple(kinds))


def _matched(operations: Operations) -> Int64:
    """int64[m]: the collective that each operation is part of, −1 without a counterpart, or if it is ambiguous."""
    out = all_none(len(operations.kind))
    some = np.flatnonzero(operations.of_kinds(SYNCHRONISING) & ((operations.sequence >= 0) | (operations.step >= 0)))
    if not len(some):
        return out
    even = operations.of_kinds(EVEN)[some]
    numbered = operations.sequence[some] >= 0
    place, size = (
        np.unique(column, return_inverse=True)[1].astype(np.int64)
        for column in (
            np.where(numbered, operations.sequence[some], operations.step[some]),
            np.where(even, operations.size[some], -1),
        )
    )
    cell, _ = combined(operations.kind[some], numbered, place, size)
    order = np.lexsort((operations.start[some], operations.rank[some]))
    ordinal = np.empty(len(some), np.int64)
    in_rank, _ = combined(cell, operations.rank[some])
    ordinal[order] = ordinals(in_rank[order])
    (each, _), (count,) = grouped([cell, operations.rank[some]], [1])
    cells = int(cell.max()) + 1
    even_counts = least(each, count, cells) == most(each, count, cells)
    collective, _ = combined(cell, ordinal)
    partners = np.bincount(collective)[collective]
    out[some] = np.where(even_counts[cell] & (partners >= 2), collective, -1)
    return out


def _possible(operations: Operations, collective: Int64, clocks: Clocks) -> Int64:
    """``collective`` (int64[m]) less those that one rank left before another came: they are not a single collective,
    whatever they are called.
    """
    some = np.flatnonzero(collective >= 0)
    start, end = (column[some] - clocks.offset[operations.rank[some]] for column in (operations.start, operations.end))
    unsure = clocks.uncertainty[operations.rank[some]]
    size = int(collective.max(initial=-1)) + 1
    latest_start, earliest_end = (
        most(collective[some], start - unsure, size),
        least(collective[some], end + unsure, size),
    )
    out = collective.copy()
    out[some] = np.where((latest_start <= earliest_end)[collective[some]], collective[some], -1)
    return out


def _waited(operations: Operations, collective: Int64, clocks: Clocks, run: Run) -> Matched:
    """The waits and arrivals of matched operations, on one clock."""
    m, ranks, world = len(collective), len(run.ranks), run.world_size
    match = Matched(
        **asdict(operations),
        collective=collective,
        partial=np.zeros(m, bool),
        ranks=int64_of([k.ranks for k in operations.kinds])[operations.kind],
        wait=zeros(m),
        last=all_none(m),
        late=zeros(m),
    )
    some = np.flatnonzero(collective >= 0)
    rank = operations.rank[some]
    start = operations.start[some] - clocks.offset[rank]
    order = np.lexsort((rank, start, collective[some]))
    some, rank, start = some[order], rank[order], start[order]
    first = np.flatnonzero(changes(collective[some]))
    rank_count = np.diff(np.append(first, len(some)))
    last = first + rank_count - 1
    late = start[last] - start[last - 1]
    unsure = clocks.uncertainty[rank[last]] + clocks.uncertainty[rank[last - 1]]
    last_rank = np.where(late > unsure, rank[last], -1)
    spread = np.repeat(np.arange(len(first)), rank_count)
    match.wait[some] = np.clip(start[last][spread] - start, 0, operations.ns[some])
    match.last[some], match.late[some] = last_rank[spread], late[spread]
    whole = (rank_count == world) & (rank_count == ranks)
    match.ranks[some] = np.where((match.ranks[some] == 0) & whole[spread], world, match.ranks[some])
    expected = np.where(match.ranks[some] > 0, match.ranks[some], max(world, ranks))
    match.partial[some] = rank_count[spread] < expected
    return match


def _add_waits(waits: SetTable, match: Matched, weights: list[int]) -> None:
    """Add the used operations to the rows of `WAITS`, those of each file times its weight."""
    some = np.flatnonzero(match.used)
    kind, size, duration = match.kind[some], match.size[some], match.ns[some]
    matched, wait = match.collective[some] >= 0, match.wait[some]
    transfer = (duration - wait) * matched
    columns: list[AnyArray | int] = [
        duration,
        wait,
        transfer,
        duration * ~matched,
        match.exposed[some],
        duration - match.exposed[some],
        1,
        matched & match.partial[some],
        *traffic(match.kinds, kind, match.ranks[some], np.where(matched, size, -1), transfer),
    ]
    label, labels = numbered_texts(size_labels(size))
    keys, sums = grouped([kind, label, match.file[some]], columns)
    for k, s, f, *values in tuples(*keys, *sums):
        of_kind = match.kinds[k]
        waits.add((of_kind.collective, of_kind.group, of_kind.dtype, labels[s]), values, weights[f])


def _stragglers(traces: TraceSet, matches: list[RunMatch]) -> SetTable:
    """Rows of `STRAGGLERS`; a collective counts to the step of the rank that came last, the unclear ones to the lowest
    rank there.
    """
    runs_of = Counter(rank for run in traces.runs for rank in run.ranks)
    shares = {(run.name, rank): runs_of[rank] * steps for run, rank, _, steps in files_of_ranks(traces)}
    table = SetTable(lcm(*shares.values()), schema=STRAGGLERS)
    for run, match in matches:
        ranks = list(run.ranks)
        weights = [table.denominator // shares[run.name, rank] for rank in ranks]
        for position, rank in enumerate(ranks):
            mine = np.flatnonzero(match.used & (match.collective >= 0) & (match.rank == position))
            wait, ns, exposed = (int(c[mine].sum()) for c in (match.wait, match.ns, match.exposed))
            table.add((str(rank),), [0, 0, 0, wait, ns - wait, exposed, len(mine)], weights[position])
        for _, position, lowest, caused, late in _arrivals(match):
            values = [caused, 1, late, 0, 0, 0, 0]
            table.add((_rank(ranks, position),), values, weights[position if position >= 0 else lowest])
    return table


def _straggling_steps(matches: list[RunMatch]) -> SetTable:
    """Rows of `STRAGGLING_STEPS`."""
    runs_of = Counter(step for _, match in matches for step in distinct(match.step[match.used]).tolist())
    table = SetTable(lcm(*runs_of.values()), schema=STRAGGLING_STEPS)
    for run, match in matches:
        for step, position, _, caused, late in _arrivals(match):
            key = (str(step), _rank(list(run.ranks), position))
            table.add(key, [caused, 1, late], table.denominator // runs_of[step])
    return table


def _rank(ranks: list[int], position: int) -> str:
    return str(ranks[position]) if position >= 0 else UNCLEAR


def _arrivals(match: Matched) -> list[tuple[int, int, int, int, int]]:
    """(step, position of the rank that came last or −1, lowest position there, waits of all, late by) of each
    collective whose operations are used.
    """
    some = np.flatnonzero(match.used & (match.collective >= 0))
    (collective,), (waits,) = grouped([match.collective[some]], [match.wait[some]])
    order = sorted_by(some, match.rank, match.collective)
    first = order[np.searchsorted(match.collective[order], collective)]
    columns = (match.step[first], match.last[first], match.rank[first], waits, match.late[first])
    return list(tuples(*columns))


def _add_notes(notes: Notes, match: Matched) -> None:
    """Add notes about the used operations that have no counterpart or lack a rank."""
    alone = match.used & match.of_kinds(SYNCHRONISING) & (match.collective < 0)
    notes.add(
        "unmatched-collectives",
        "collectives have no counterpart in the files of other ranks: their wait is unknown",
        alone.sum(),
    )
    partial = match.used & match.partial & (match.collective >= 0)
    notes.add(
        "partial-collectives",
        "collectives lack the file of a rank of their group: the last rank to arrive may be that one",
        partial.sum(),
    )
