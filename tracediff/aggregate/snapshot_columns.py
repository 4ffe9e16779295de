"""`Profile` ↔ plain lists of integers and texts, as a snapshot stores them.

A column is a list of integers. Those that rise or repeat (`DIFFERENCES`) are written as differences to the row before,
which gzip packs to almost
nothing; lists pack as small as binary columns would on real traces, and can be read by people and other programs.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, TypeVar

import msgspec
import numpy as np

from tracediff.aggregate.snapshot_check import check, require_equal_lengths
from tracediff.aggregate.snapshot_tables import PackedTable, pack_tables, unpack_tables
from tracediff.ingest.health import Note
from tracediff.ingest.names import bounded
from tracediff.ingest.source import TraceFile
from tracediff.ingest.times import Int64
from tracediff.profile.model import CallTable, LeafTable, OpTable, Origin, Profile, WorkTable
from tracediff.profile.placement.calls import PHASE

T = TypeVar("T", OpTable, CallTable, WorkTable, LeafTable)
P = TypeVar("P", bound="PackedOps | PackedCalls | PackedWork | PackedLeaves")
DIFFERENCES = frozenset(
    (
        *("parent", "node", "step", "category", "name", "shapes", "types", "strides", "line", "launch_shape", "order"),
        *("op", "root", "following", "longest_at", "first_ns"),
    )
)
LEAF_NAMES = ("name", "op", "root", "following")
"""Columns of a `LeafTable` that are codes of names."""
OWNED = ("step", "state", "owner", "ns")
Positive = list[Annotated[int, msgspec.Meta(ge=1)]]
"""A column of counts."""
NotNegative = list[Annotated[int, msgspec.Meta(ge=0)]]
"""A column of times, amounts or positions."""
CallOrdinals = list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]]
WorkOrdinals = list[Annotated[int, msgspec.Meta(ge=-1, lt=1 << 53)]]


class PackedOwned(msgspec.Struct, frozen=True):
    """The columns of `Profile.owned`."""

    step: list[int]
    state: NotNegative
    owner: list[int]
    ns: Positive


class PackedOps(msgspec.Struct, frozen=True):
    """The columns of an `OpTable`."""

    step: list[int]
    category: list[int]
    name: list[int]
    count: Positive
    total_ns: NotNegative
    self_ns: NotNegative


class PackedCalls(msgspec.Struct, frozen=True):
    """The columns of a `CallTable`."""

    parent: list[int]
    kind: NotNegative
    name: list[int]
    shapes: list[int]
    ordinal: CallOrdinals
    types: list[int]
    strides: list[int]
    line: list[int]
    step: list[int]
    node: list[int]
    count: Positive
    total_ns: NotNegative
    self_ns: NotNegative


class PackedWork(msgspec.Struct, frozen=True):
    """The columns of a `WorkTable`."""

    step: list[int]
    node: list[int]
    category: list[int]
    name: list[int]
    launch_shape: list[int]
    ordinal: WorkOrdinals
    order: list[int]
    first_ns: list[int]
    lane: list[int]
    count: Positive
    total_ns: NotNegative
    size: NotNegative


class PackedLeaves(msgspec.Struct, frozen=True):
    """The columns of a `LeafTable`, with `_relative` times: most leaves are one event on the path."""

    step: list[int]
    kind: NotNegative
    node: list[int]
    category: list[int]
    name: list[int]
    launch_shape: list[int]
    ordinal: WorkOrdinals
    op: list[int]
    root: list[int]
    path_ns: NotNegative
    total_ns: list[int]
    count: NotNegative
    longest_ns: NotNegative
    longest_at: list[int]
    following: list[int]


class PackedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A `Profile` as JSON writes it; the same names mean the same, times in ns.

    Attributes:
        origin: its file is the name of the trace file, without folders.
    """

    origin: Origin
    notes: list[Note]
    whole_file: bool
    step_numbers: NotNegative
    completions: list[int]
    draining_ns: Annotated[int, msgspec.Meta(ge=0)] = 0
    host_ns: NotNegative
    state_names: list[str]
    state_ns: list[NotNegative]
    owned: PackedOwned
    busy_ns: NotNegative
    ops: PackedOps
    calls: PackedCalls
    kernels: PackedWork
    host_work: PackedWork
    leaves: PackedLeaves
    categories: list[str]
    names: list[str]
    texts: list[str]
    events: dict[str, Annotated[int, msgspec.Meta(ge=1)]]
    tables: dict[str, PackedTable] = {}


def pack(profile: Profile) -> PackedProfile:
    """``profile`` with those names only that its tables use, and its file without folders."""
    profile = _with_used_names(profile)
    return PackedProfile(
        origin=replace(profile.origin, file=TraceFile(_file_name(profile.origin.file))),
        notes=list(profile.notes),
        whole_file=profile.whole_file,
        step_numbers=profile.step_numbers.tolist(),
        completions=profile.completions.tolist(),
        draining_ns=profile.draining_ns,
        host_ns=profile.host_ns.tolist(),
        state_names=list(profile.state_names),
        state_ns=profile.state_ns.tolist(),
        owned=PackedOwned(*map(_as_list, OWNED, profile.owned.reshape(-1, len(OWNED)).T)),
        busy_ns=profile.busy_ns.tolist(),
        ops=_packed(PackedOps, profile.ops),
        calls=_packed(PackedCalls, profile.calls),
        kernels=_packed(PackedWork, profile.kernels),
        host_work=_packed(PackedWork, profile.host_work),
        leaves=_packed(PackedLeaves, _relative(profile.leaves)),
        categories=list(profile.categories),
        names=list(profile.names),
        texts=list(profile.texts),
        events=profile.events,
        tables=pack_tables(profile.tables),
    )


def unpack(packed: PackedProfile, snapshot: TraceFile) -> Profile:
    """The profile again; its file is named as a member of ``snapshot``.

    Raises:
        ValueError: the parts do not fit together.
    """
    owned = [_column(name, getattr(packed.owned, name)) for name in OWNED]
    require_equal_lengths("owned", owned)
    profile = Profile(
        origin=replace(packed.origin, file=TraceFile(str(snapshot), packed.origin.file.name)),
        notes=tuple(packed.notes),
        step_numbers=_integers(packed.step_numbers),
        whole_file=packed.whole_file,
        completions=_integers(packed.completions),
        draining_ns=packed.draining_ns,
        host_ns=_integers(packed.host_ns),
        state_names=tuple(packed.state_names),
        state_ns=_integers(packed.state_ns).reshape(len(packed.state_ns), -1)
        if packed.state_ns
        else np.zeros((0, len(packed.state_names)), np.int64),
        owned=np.stack(owned, axis=1),
        busy_ns=_integers(packed.busy_ns),
        ops=_table(OpTable, packed.ops),
        calls=_table(CallTable, packed.calls),
        kernels=_table(WorkTable, packed.kernels),
        host_work=_table(WorkTable, packed.host_work),
        leaves=_relative(_table(LeafTable, packed.leaves)),
        categories=tuple(packed.categories),
        names=tuple(map(bounded, packed.names)),
        texts=tuple(packed.texts),
        events=packed.events,
        tables=unpack_tables(packed.tables, len(packed.step_numbers)),
    )
    check(profile)
    return profile


def _file_name(file: TraceFile) -> str:
    """Without folders, and of a URL without its query, which may hold a key."""
    return TraceFile(file.path.partition("?")[0], file.member).name if "://" in file.path else file.name


def _with_used_names(profile: Profile) -> Profile:
    """Names of metadata, flows and instants are in no table. Codes keep their order, so that rows do; those of
    categories are fixed and stay.
    """
    calls, leaves = profile.calls, profile.leaves
    named = calls.kind != PHASE  # the name of a phase is no code of a name
    of_leaves = [getattr(leaves, column) for column in LEAF_NAMES]
    tables = (profile.ops, profile.kernels, profile.host_work)
    used = np.unique(np.concatenate((*(table.name for table in tables), calls.name[named], *of_leaves)))
    used = used[used >= 0]

    def again(codes: Int64) -> Int64:
        return np.where(codes >= 0, np.searchsorted(used, codes), -1)

    return replace(
        profile,
        ops=replace(profile.ops, name=again(profile.ops.name)),
        calls=replace(calls, name=np.where(named, again(calls.name), calls.name)),
        kernels=replace(profile.kernels, name=again(profile.kernels.name)),
        host_work=replace(profile.host_work, name=again(profile.host_work.name)),
        leaves=replace(leaves, **dict(zip(LEAF_NAMES, map(again, of_leaves), strict=True))),
        names=tuple(profile.names[code] for code in used.tolist()),
    )


def _relative(leaves: LeafTable) -> LeafTable:
    """``leaves`` with total_ns and longest_ns as what path_ns is less and more; of these the leaves again."""
    path_ns = leaves.path_ns
    return replace(leaves, total_ns=path_ns - leaves.total_ns, longest_ns=path_ns - leaves.longest_ns)


def _packed(kind: type[P], table: OpTable | CallTable | WorkTable | LeafTable) -> P:
    return kind(**{f.name: _as_list(f.name, getattr(table, f.name)) for f in fields(table)})


def _as_list(name: str, column: Int64) -> list[int]:
    """A column as the file holds it; `_column` reads it again."""
    values: list[int] = (np.diff(column, prepend=np.int64(0)) if name in DIFFERENCES else column).tolist()
    return values


def _table(kind: type[T], packed: PackedOps | PackedCalls | PackedWork | PackedLeaves) -> T:
    return kind(**{f.name: _column(f.name, getattr(packed, f.name)) for f in fields(kind)})


def _column(name: str, stored: list[int]) -> Int64:
    values = _integers(stored)
    return np.cumsum(values) if name in DIFFERENCES else values


def _integers(values: list[int] | list[list[int]]) -> Int64:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None
