"""`Profile` ↔ plain lists of integers and texts, as a snapshot stores them.

A column is a list of integers. Those that rise or repeat (`DIFFERENCES`) are written as differences to the row before,
which gzip packs to almost
nothing; lists pack as small as binary columns would on real traces, and can be read by people and other programs.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import msgspec
import numpy as np

from tracediff.aggregate.snapshot_tables import PackedTable, pack_tables, unpack_table, unpack_tables
from tracediff.ingest.health import Note
from tracediff.ingest.names import bounded
from tracediff.ingest.source import TraceFile
from tracediff.ingest.times import Int64
from tracediff.profile.model import CallTable, OpTable, Origin, Profile, WorkTable
from tracediff.profile.placement.calls import KINDS, OP, PHASE
from tracediff.profile.placement.scopes import PHASES
from tracediff.profile.step_states import GPU_STATES

T = TypeVar("T", OpTable, CallTable, WorkTable)
Table = dict[str, list[int]]
DIFFERENCES = frozenset(
    ("parent", "node", "step", "category", "name", "shapes", "types", "strides", "launch_shape", "order")
)
NODE = ("parent", "kind", "name", "shapes", "ordinal", "types", "strides")
"""Columns of a call table that have a row per node; the others have one per (step, node)."""
OWNED = ("step", "state", "owner", "ns")


class PackedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A `Profile` as JSON writes it; the same names mean the same, times in ns.

    Attributes:
        origin: its file is the name of the trace file, without folders.
    """

    origin: Origin
    notes: list[Note]
    whole_file: bool
    step_numbers: list[int]
    completions: list[int]
    host_ns: list[int]
    state_names: list[str]
    state_ns: list[list[int]]
    owned: Table
    busy_ns: list[int]
    ops: Table
    calls: Table
    kernels: Table
    host_work: Table
    categories: list[str]
    names: list[str]
    texts: list[str]
    events: dict[str, int]
    idle: PackedTable
    copies: PackedTable
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
        host_ns=profile.host_ns.tolist(),
        state_names=list(profile.state_names),
        state_ns=profile.state_ns.tolist(),
        owned={
            name: _as_list(name, column)
            for name, column in zip(OWNED, profile.owned.reshape(-1, len(OWNED)).T, strict=True)
        },
        busy_ns=profile.busy_ns.tolist(),
        ops=_packed(profile.ops),
        calls=_packed(profile.calls),
        kernels=_packed(profile.kernels),
        host_work=_packed(profile.host_work),
        categories=list(profile.categories),
        names=list(profile.names),
        texts=list(profile.texts),
        events=profile.events,
        **pack_tables({"idle": profile.idle, "copies": profile.copies}),
        tables=pack_tables(profile.tables),
    )


def unpack(packed: PackedProfile, snapshot: TraceFile) -> Profile:
    """The profile again; its file is named as a member of ``snapshot``.

    Raises:
        ValueError: the parts do not fit together.
    """
    owned = [_column(name, packed.owned) for name in OWNED]
    _require_equal_lengths("owned", owned)
    profile = Profile(
        origin=replace(packed.origin, file=TraceFile(str(snapshot), packed.origin.file.name)),
        notes=tuple(packed.notes),
        step_numbers=_integers(packed.step_numbers),
        whole_file=packed.whole_file,
        completions=_integers(packed.completions),
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
        categories=tuple(packed.categories),
        names=tuple(map(bounded, packed.names)),
        texts=tuple(packed.texts),
        events=packed.events,
        idle=unpack_table("idle", packed.idle, len(packed.step_numbers)),
        copies=unpack_table("copies", packed.copies, len(packed.step_numbers)),
        tables=unpack_tables(packed.tables, len(packed.step_numbers)),
    )
    _check(profile)
    return profile


def _file_name(file: TraceFile) -> str:
    """Without folders, and of a URL without its query, which may hold a key."""
    return TraceFile(file.path.partition("?")[0], file.member).name if "://" in file.path else file.name


def _with_used_names(profile: Profile) -> Profile:
    """Names of metadata, flows and instants are in no table. Codes keep their order, so that rows do; those of
    categories are fixed and stay.
    """
    calls = profile.calls
    named = calls.kind != PHASE  # the name of a phase is no code of a name
    used = np.unique(
        np.concatenate((profile.ops.name, calls.name[named], profile.kernels.name, profile.host_work.name))
    )
    return replace(
        profile,
        ops=replace(profile.ops, name=np.searchsorted(used, profile.ops.name)),
        calls=replace(calls, name=np.where(named, np.searchsorted(used, calls.name), calls.name)),
        kernels=replace(profile.kernels, name=np.searchsorted(used, profile.kernels.name)),
        host_work=replace(profile.host_work, name=np.searchsorted(used, profile.host_work.name)),
        names=tuple(profile.names[code] for code in used.tolist()),
    )


def _packed(table: OpTable | CallTable | WorkTable) -> Table:
    return {f.name: _as_list(f.name, getattr(table, f.name)) for f in fields(table)}


def _as_list(name: str, column: Int64) -> list[int]:
    """A column as the file holds it; `_column` reads it again."""
    values: list[int] = (np.diff(column, prepend=np.int64(0)) if name in DIFFERENCES else column).tolist()
    return values


def _table(kind: type[T], packed: Table) -> T:
    return kind(**{f.name: _column(f.name, packed) for f in fields(kind)})


def _column(name: str, packed: Table) -> Int64:
    _require(name in packed, f"no column {name}")
    values = _integers(packed[name])
    return np.cumsum(values) if name in DIFFERENCES else values


def _integers(values: list[int] | list[list[int]]) -> Int64:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None


def _check(profile: Profile) -> None:
    """Check that every row and code refers to something, because a comparison relies on it."""
    steps, names, texts = len(profile.step_numbers), len(profile.names), len(profile.texts)
    _check_steps(profile, steps)
    calls, nodes = profile.calls, len(profile.calls.parent)
    _require_equal_lengths("calls", [getattr(calls, name) for name in NODE])
    _require_equal_lengths("calls", [getattr(calls, f.name) for f in fields(calls) if f.name not in NODE])
    _require(bool((calls.parent < np.arange(nodes)).all()), "a call comes before its parent")
    phase = calls.kind == PHASE
    ranges: list[tuple[str, Int64, int, int]] = [
        ("calls.parent", calls.parent, -1, nodes),
        ("calls.kind", calls.kind, 0, len(KINDS)),
        ("calls.name", calls.name[phase], 0, len(PHASES)),
        ("calls.name", calls.name[~phase], 0, names),
        *((f"calls.{name}", getattr(calls, name), -1, texts) for name in ("shapes", "types", "strides")),
        ("calls.step", calls.step, 0, steps),
        ("calls.node", calls.node, 0, nodes),
    ]
    lowest = {"ops": -1, "kernels": -2, "host_work": -2}
    for name, table in (("ops", profile.ops), ("kernels", profile.kernels), ("host_work", profile.host_work)):
        _require_equal_lengths(name, [getattr(table, f.name) for f in fields(table)])
        ranges += [
            (f"{name}.step", table.step, lowest[name], steps),
            (f"{name}.category", table.category, 0, len(profile.categories)),
            (f"{name}.name", table.name, 0, names),
        ]
        if isinstance(table, WorkTable):
            ranges += [(f"{name}.node", table.node, -1, nodes), (f"{name}.launch_shape", table.launch_shape, -1, texts)]
    ranges.append(("host_work.lane", profile.host_work.lane, 0, texts))
    for where, column, low, high in ranges:
        _require(bool(((column >= low) & (column < high)).all()), f"{where} refers to nothing")
    counts = (profile.ops.count, calls.count, profile.kernels.count, profile.host_work.count)
    _require(all(bool((c > 0).all()) for c in counts), "a row with a count of 0")
    _require(bool((calls.kind[calls.node] == OP).all()), "a row of calls that is not an operator")


def _check_steps(profile: Profile, steps: int) -> None:
    """Check that the step account has a row for each step, and that its states add up."""
    _require(
        len(profile.completions) == steps + 1 and len(profile.host_ns) == len(profile.busy_ns) == steps,
        "tables with different numbers of steps",
    )
    _require(profile.state_ns.shape == (steps, len(profile.state_names)), "a step without states")
    _require(len(set(profile.state_names)) == len(profile.state_names), "a duplicate state")
    _require(bool((profile.state_ns.sum(axis=1) == profile.periods).all()), "the states of a step do not add up to it")
    step, state = profile.owned[:, 0], profile.owned[:, 1]
    _require(
        bool(((step >= 0) & (step < steps) & (state >= 0) & (state < len(GPU_STATES))).all()), "owned refers to nothing"
    )


def _require_equal_lengths(name: str, columns: list[Int64]) -> None:
    _require(len({len(c) for c in columns}) == 1, f"{name} has columns of different lengths")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
