"""Memory by holder: the operators and modules that allocated the memory in use at the peak, and all they allocate."""

from __future__ import annotations

import re
from dataclasses import dataclass

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

BEFORE, NOWHERE = "(before the capture)", "(no operator)"
NO_EVENT = "(no event)"
"""Changes of the recorded total without an allocation event; negative where more was freed than is recorded."""
NO_ADDRESS = "(unknown: no addresses recorded)"
ALLOCATES = re.compile(r"^aten::(?:new_)?(?:empty\w*|resize_)$")
"""Operators that only allocate memory, for the operator around them."""


@dataclass(frozen=True)
class Held:
    """The rows of one device by place of allocation, K places.

    Attributes:
        places: (phase, operator, module) of each.
        values: int64[s, K, 4]: the table's columns.
    """

    places: list[tuple[str, str, str]]
    values: Int64


def table(context: Context) -> TableRows:
    """Rows by device and place of the allocation."""
    found = allocations(context.trace)
    held = [_held(context, of) for of in found]
    keys = [(device, *place) for device, of in zip(devices(found), held, strict=True) for place in of.places]
    values = np.concatenate(
        [np.empty((len(context.steps), 0, len(SCHEMA.columns)), np.int64), *(of.values for of in held)], axis=1
    )
    step, key = np.nonzero(values.any(axis=2))
    used, code = np.unique(key, return_inverse=True)
    return TableRows(tuple(keys[k] for k in used.tolist()), step, code, values[step, key])


def _held(context: Context, of: Allocations) -> Held:
    """The rows of one device."""
    place, places = _places(context, of)
    before, no_event, unknown = range(len(places), len(places) + 3)
    values = np.zeros((len(context.steps), len(places) + 3, len(SCHEMA.columns)), np.int64)
    peaks = of.peaks(context.steps)
    if of.has_totals and (of.address != MISSING).all():
        values[..., :2] = _at_peaks(of, peaks, place, before, values.shape[1])
        values[:, no_event, 0] = of.allocated[peaks] - values[..., 0].sum(axis=1)
    else:
        values[:, unknown, 0] = of.allocated[peaks]
    step = context.steps.of(of.at)
    mine = np.flatnonzero((of.change > 0) & (step >= 0))
    np.add.at(values[..., 2], (step[mine], place[mine]), of.change[mine])
    np.add.at(values[..., 3], (step[mine], place[mine]), 1)
    return Held([*places, *(("", text, "") for text in (BEFORE, NO_EVENT, NO_ADDRESS))], values)


def _at_peaks(of: Allocations, peaks: Int64, place: Int64, before: int, size: int) -> Int64:
    """int64[s, size, 2] bytes and blocks by place: each block is added at the first peak at which it is allocated and
    subtracted after the last.
    """
    there = blocks(of)
    moved = np.zeros((len(peaks) + 1, size, 2), np.int64)
    ours = there.event >= 0
    where = place[there.event[ours]]
    for at, sign in ((np.searchsorted(peaks, there.first), 1), (np.searchsorted(peaks, there.last, side="right"), -1)):
        np.add.at(moved[..., 0], (at[ours], where), sign * there.size[ours])
        np.add.at(moved[..., 1], (at[ours], where), sign)
        if sign < 0:
            np.add.at(moved[:, before, 0], at[~ours], -there.size[~ours])
    moved[0, before, 0] += of.allocated[0]
    held: Int64 = np.cumsum(moved, axis=0)[:-1]
    held[:, before, 0] = np.maximum(held[:, before, 0], 0)
    return held


def _places(context: Context, of: Allocations) -> tuple[Int64, list[tuple[str, str, str]]]:
    """(int64[m] place of each event, the places' phase, operator and module)."""
    position, names = _operators(context, of), context.trace.names
    node, name = np.full(len(position), -1, np.int64), np.full(len(position), -1, np.int64)
    there = position >= 0
    node[there] = context.calls.node[position[there]]
    name[there] = context.trace.name[context.lanes["ops"].rows[position[there]]]
    code, first = combined(node, name)
    scopes = _scopes(context, set(node[first].tolist()))
    number: dict[tuple[str, str, str], int] = {}
    of_code = []
    for at, called in zip(node[first].tolist(), name[first].tolist(), strict=True):
        phase, module = scopes[at]
        of_code.append(number.setdefault((phase, names[called] if called >= 0 else NOWHERE, module), len(number)))
    return np.array(of_code, np.int64)[code], list(number)


def _operators(context: Context, of: Allocations) -> Int64:
    """int64[m] position in the ops lane of the operator that each allocation is attributed to, −1 for none: the
    innermost operator that does more than allocate, else the innermost.
    """
    trace, ops = context.trace, context.lanes["ops"]
    innermost = enclosing(ops, _threads(context, of), of.at)
    tells = context.calls.operator & ~trace.named(ALLOCATES.match)[ops.rows]
    at = innermost.copy()
    while len(climbing := np.flatnonzero((at >= 0) & ~tells[at])):
        at[climbing] = ops.parent[at[climbing]]
    scope = (innermost >= 0) & (trace.category[ops.rows[innermost]] == cat.CPU_OP) if len(ops.rows) else innermost >= 0
    return np.where(at >= 0, at, np.where(scope, innermost, -1))


def _threads(context: Context, of: Allocations) -> Int64:
    """int64[m] thread code of each event in the ops lane's numbering: old profilers write the id of one thread both as
    text and as a number.
    """
    trace, ops = context.trace, context.lanes["ops"]
    base = len(trace.ids) + 1

    def text(code: int) -> tuple[str, str]:
        return str(trace.ids[code // base]), str(trace.ids[code % base])

    known = {text(code): code for code in np.unique(ops.thread).tolist()}
    codes, inverse = np.unique(threads_of(trace)[of.rows], return_inverse=True)
    return np.array([known.get(text(code), -1) for code in codes.tolist()], np.int64)[inverse]


def _scopes(context: Context, nodes: set[int]) -> dict[int, tuple[str, str]]:
    """Node → (phase, path of modules)."""
    calls, names = context.calls.table, context.trace.names
    modules = np.flatnonzero(calls.kind == MODULE).tolist()
    labels = module_labels((k, int(calls.parent[k]), names[calls.name[k]]) for k in modules)
    found = {}
    for node in nodes:
        path: list[str] = []
        at, phase = node, PHASES[-1]
        while at >= 0:
            path += [labels[at]] if at in labels else []
            phase = PHASES[calls.name[at]] if calls.parent[at] < 0 else phase
            at = int(calls.parent[at])
        found[node] = (phase, "/".join(reversed(path)))
    return found
