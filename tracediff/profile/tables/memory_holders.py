"""Memory by holder: the operators and modules that allocated the memory in use at the peak, and all they allocate."""

from __future__ import annotations

import re

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import MISSING, Int64
from tracediff.profile.analyses.allocations import Allocations, allocations, blocks, devices
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.placement.calls import MODULE
from tracediff.profile.placement.module_paths import module_labels
from tracediff.profile.placement.nesting import threads_of
from tracediff.profile.placement.scopes import PHASES, enclosing
from tracediff.profile.tables.schema import Column, TableSchema

SCHEMA = TableSchema(
    "memory_holders",
    "Memory by holder",
    "Bytes and blocks in use at the device's peak within the step, by the operator that allocated them, its phase and "
    "its module. The operator is the innermost one that does more than allocate (not aten::empty). The bytes add up to "
    "the peak. Allocated: all bytes allocated in the step, in use at the peak or not.",
    keys=("device", "phase", "operator", "module"),
    columns=(Column("held", "at the peak", "bytes"), Column("blocks", "blocks at the peak", "count"),
     Column("allocated", "allocated", "bytes"), Column("allocations", "allocations", "count")),
    arguments=("Addr",),
)  # fmt: skip

Place = tuple[str, str, str]
"""Phase, operator and module."""
BEFORE, NOWHERE = "(before the capture)", "(no operator)"
NO_EVENT = "(no event)"
"""Changes of the recorded total without an allocation event; negative where more was freed than is recorded."""
NO_ADDRESS = "(unknown: no addresses recorded)"
ALLOCATES = re.compile(r"^aten::(?:new_)?(?:empty\w*|resize_)$")
"""Operators that only allocate memory, for the operator around them."""


def table(context: Context) -> TableRows:
    """Rows by device and place of the allocation."""
    found = allocations(context.trace)
    keys, parts = [], [np.empty((len(context.steps), 0, len(SCHEMA.columns)), np.int64)]
    for name, device in zip(devices(found), found, strict=True):
        places, amounts = _held(context, device)
        keys += [(name, *place) for place in places]
        parts.append(amounts)
    values = np.concatenate(parts, axis=1)
    step, key = np.nonzero(values.any(axis=2))
    used, code = np.unique(key, return_inverse=True)
    return TableRows(tuple(keys[k] for k in used.tolist()), step, code, values[step, key])


def _held(context: Context, device: Allocations) -> tuple[list[Place], Int64]:
    """(K places of allocations on one device, int64[s, K, columns])."""
    place, places = _places(context, device)
    before, no_event, unknown = range(len(places), len(places) + 3)
    values = np.zeros((len(context.steps), len(places) + 3, len(SCHEMA.columns)), np.int64)
    peaks = device.peaks(context.steps)
    if device.has_totals and (device.address != MISSING).all():
        values[..., :2] = _at_peaks(device, peaks, place, before, values.shape[1])
        values[:, no_event, 0] = device.allocated[peaks] - values[..., 0].sum(axis=1)
    else:
        values[:, unknown, 0] = device.allocated[peaks]
    step = context.steps.positions_at(device.time)
    mine = np.flatnonzero((device.change > 0) & (step >= 0))
    np.add.at(values[..., 2], (step[mine], place[mine]), device.change[mine])
    np.add.at(values[..., 3], (step[mine], place[mine]), 1)
    return [*places, *(("", text, "") for text in (BEFORE, NO_EVENT, NO_ADDRESS))], values


def _at_peaks(device: Allocations, peaks: Int64, place: Int64, before: int, size: int) -> Int64:
    """int64[s, size, 2] bytes and blocks by place: each block is added at the first peak at which it is allocated and
    subtracted after the last.
    """
    device_blocks = blocks(device)
    moved = np.zeros((len(peaks) + 1, size, 2), np.int64)
    ours = device_blocks.event >= 0
    where = place[device_blocks.event[ours]]
    first, behind = (
        np.searchsorted(peaks, device_blocks.first),
        np.searchsorted(peaks, device_blocks.last, side="right"),
    )
    for peak, sign in ((first, 1), (behind, -1)):
        np.add.at(moved[..., 0], (peak[ours], where), sign * device_blocks.size[ours])
        np.add.at(moved[..., 1], (peak[ours], where), sign)
        if sign < 0:
            np.add.at(moved[:, before, 0], peak[~ours], -device_blocks.size[~ours])
    moved[0, before, 0] += device.allocated[0]
    held: Int64 = np.cumsum(moved, axis=0)[:-1]
    held[:, before, 0] = np.maximum(held[:, before, 0], 0)
    return held


def _places(context: Context, device: Allocations) -> tuple[Int64, list[Place]]:
    """(int64[m] place of each event, the places' phase, operator and module)."""
    position, names = _operators(context, device), context.trace.names
    node, name = np.full(len(position), -1, np.int64), np.full(len(position), -1, np.int64)
    known = position >= 0
    node[known] = context.calls.node[position[known]]
    name[known] = context.trace.name[context.lanes["ops"].rows[position[known]]]
    code, first = combined(node, name)
    scopes = _scopes(context, set(node[first].tolist()))
    number: dict[Place, int] = {}
    of_code = []
    for scope_node, called in zip(node[first].tolist(), name[first].tolist(), strict=True):
        phase, module = scopes[scope_node]
        of_code.append(number.setdefault((phase, names[called] if called >= 0 else NOWHERE, module), len(number)))
    return np.array(of_code, np.int64)[code], list(number)


def _operators(context: Context, device: Allocations) -> Int64:
    """int64[m] position in the ops lane of the operator that each allocation is attributed to, −1 for none: the
    innermost operator that does more than allocate, else the innermost.
    """
    trace, ops = context.trace, context.lanes["ops"]
    if not len(ops.rows):
        return np.full(len(device.time), -1, np.int64)
    innermost = enclosing(ops, _threads(context, device), device.time)
    tells = context.calls.operator & ~trace.named(ALLOCATES.match)[ops.rows]
    position = innermost.copy()
    while len(climbing := np.flatnonzero((position >= 0) & ~tells[position])):
        position[climbing] = ops.parent[position[climbing]]
    scope = (innermost >= 0) & (trace.category[ops.rows[innermost]] == cat.CPU_OP)
    return np.where(position >= 0, position, np.where(scope, innermost, -1))


def _threads(context: Context, device: Allocations) -> Int64:
    """int64[m] thread code of each event in the ops lane's numbering: old profilers write the id of one thread both as
    text and as a number.
    """
    trace, ops = context.trace, context.lanes["ops"]
    base = len(trace.ids) + 1

    def text(code: int) -> tuple[str, str]:
        return str(trace.ids[code // base]), str(trace.ids[code % base])

    known = {text(code): code for code in np.unique(ops.thread).tolist()}
    codes, inverse = np.unique(threads_of(trace)[device.rows], return_inverse=True)
    return np.array([known.get(text(code), -1) for code in codes.tolist()], np.int64)[inverse]


def _scopes(context: Context, nodes: set[int]) -> dict[int, tuple[str, str]]:
    """Node → (phase, path of modules)."""
    calls, names = context.calls.table, context.trace.names
    modules = np.flatnonzero(calls.kind == MODULE).tolist()
    labels = module_labels((k, int(calls.parent[k]), names[calls.name[k]]) for k in modules)
    found = {}
    for node in nodes:
        path: list[str] = []
        current, phase = node, PHASES[-1]
        while current >= 0:
            path += [labels[current]] if current in labels else []
            phase = PHASES[calls.name[current]] if calls.parent[current] < 0 else phase
            current = int(calls.parent[current])
        found[node] = (phase, "/".join(reversed(path)))
    return found
