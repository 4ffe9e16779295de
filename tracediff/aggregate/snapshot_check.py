"""Checks that a profile out of a snapshot is one that a trace can have: every code refers to something, and the
accounts close. The types of `snapshot_columns` check each value by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from tracediff.ingest import categories as cat
from tracediff.ingest.operator_inputs import is_well_formed
from tracediff.ingest.times import Int64
from tracediff.profile.arrays.factorize import combined
from tracediff.profile.leaves.keys import KINDS as LEAF_KINDS
from tracediff.profile.model import CallTable, OpTable, Profile, WorkTable
from tracediff.profile.placement.calls import KINDS, OP, PHASE
from tracediff.profile.placement.scopes import PHASES
from tracediff.profile.step_states import GPU_STATES, STATES

NODE = ("parent", "kind", "name", "shapes", "ordinal", "types", "strides", "line")
"""Columns of a call table that have a row per node; the others have one per (step, node)."""
LARGEST_SUM = float(1 << 62)


ARGUMENT_OF = {"shapes": "Input Dims", "types": "Input type", "strides": "Input Strides"}
"""Columns of a call table → the argument whose form their texts have."""


def check(profile: Profile) -> None:
    """Check what a comparison relies on.

    Raises:
        ValueError: the place and what is wrong there.
    """
    _check_lengths(profile)
    _check_sizes(profile)
    _check_texts(profile)
    _check_steps(profile)
    _check_references(profile)
    _check_tree(profile)
    _check_rows(profile)
    _check_sums(profile)
    _check_leaves(profile)


def require_equal_lengths(name: str, columns: Iterable[Int64]) -> None:
    """Require as many rows of each column.

    Raises:
        ValueError: not so.
    """
    require(len({len(c) for c in columns}) == 1, f"{name} has columns of different lengths")


def require(condition: object, otherwise: str) -> None:
    """Require ``condition``.

    Raises:
        ValueError: with the text ``otherwise``.
    """
    if not condition:
        raise ValueError(otherwise)


def require_sum(name: str, values: Int64 | NDArray[np.float64]) -> None:
    """Require a sum that 64 bits can hold.

    Raises:
        ValueError: not so.
    """
    require(values.sum(dtype=np.float64) < LARGEST_SUM, f"the sum of {name} needs more than 64 bits")


def _works(profile: Profile) -> dict[str, WorkTable]:
    return {"kernels": profile.kernels, "host_work": profile.host_work}


def _tables(profile: Profile) -> dict[str, OpTable | WorkTable]:
    return {"ops": profile.ops, **_works(profile)}


def _check_lengths(profile: Profile) -> None:
    steps, calls = len(profile.step_numbers), profile.calls
    require(
        len(profile.completions) == steps + 1 and len(profile.host_ns) == len(profile.busy_ns) == steps,
        "tables with different numbers of steps",
    )
    require(profile.state_ns.shape == (steps, len(profile.state_names)), "state_ns: a step without states")
    require_equal_lengths("calls", [getattr(calls, name) for name in NODE])
    require_equal_lengths("calls", [getattr(calls, f.name) for f in fields(calls) if f.name not in NODE])
    for name, table in _tables(profile).items():
        require_equal_lengths(name, [getattr(table, f.name) for f in fields(table)])


def _check_sizes(profile: Profile) -> None:
    """Sums of times and counts stay exact."""
    require_sum("state_ns", profile.state_ns)
    require_sum("owned.ns", profile.owned[:, 3])
    for name in ("host_ns", "busy_ns"):
        require_sum(name, getattr(profile, name))
    amounts: dict[str, OpTable | CallTable | WorkTable] = {**_tables(profile), "calls": profile.calls}
    for name, table in amounts.items():
        require_sum(f"{name}.count", table.count)
        require_sum(f"{name}.total_ns", table.total_ns)
        require_sum(f"{name}.size", getattr(table, "size", table.count))
        require(isinstance(table, WorkTable) or (table.self_ns <= table.total_ns).all(), f"{name}: self_ns > total_ns")


def _check_texts(profile: Profile) -> None:
    origin = profile.origin
    known = profile.categories[: len(cat.KNOWN)] == cat.KNOWN and profile.state_names[: len(STATES)] == STATES
    require(known, "categories or state_names do not begin with those that every snapshot has")
    for name in ("categories", "names", "state_names"):
        texts = getattr(profile, name)
        require(len(set(texts)) == len(texts), f"{name} has a duplicate")
    numbers = (origin.rank or 0, origin.world_size or 0, origin.gpu_count)
    require(all(0 <= n < 1 << 31 for n in numbers), "origin: rank, world_size or gpu_count is negative or too large")
    require(all(note.count > 0 for note in profile.notes), "notes: a count below 1")


def _check_steps(profile: Profile) -> None:
    """The step account: states add up to the steps, and owners to the states."""
    steps, owned, numbers = len(profile.step_numbers), profile.owned, profile.step_numbers
    require(len(np.unique(numbers)) == steps, "step_numbers has a duplicate")
    require((profile.periods >= 0).all(), "completions: a step ends before it begins")
    sums = profile.state_ns.sum(axis=1)
    require((sums == profile.periods).all(), "state_ns: the states of a step do not add up to it")
    _require_within("owned.step", owned[:, 0], 0, steps)
    _require_within("owned.state", owned[:, 1], 0, len(GPU_STATES))
    _require_within("owned.owner", owned[:, 2], -1, steps)
    parts = np.zeros((steps, len(GPU_STATES)), np.int64)
    np.add.at(parts, (owned[:, 0], owned[:, 1]), owned[:, 3])
    same = (parts == profile.state_ns[:, : len(GPU_STATES)]).all()
    require(same, "owned: the owners of a GPU state do not add up to it")


def _check_references(profile: Profile) -> None:
    """Every row and code refers to something."""
    calls, steps, names, texts = profile.calls, len(profile.step_numbers), len(profile.names), len(profile.texts)
    nodes = len(calls.parent)
    phase = calls.kind == PHASE
    _require_within("calls.kind", calls.kind, 0, len(KINDS))
    _require_within("calls.name", calls.name[phase], 0, len(PHASES))
    _require_within("calls.name", calls.name[~phase], 0, names)
    for name, argument in ARGUMENT_OF.items():
        _require_within(f"calls.{name}", getattr(calls, name), -1, texts)
        for code in np.unique(getattr(calls, name)).tolist():
            require(
                code < 0 or is_well_formed(argument, profile.texts[code]),
                f"calls.{name}: text {code} is no list of {name}",
            )
    _require_within("calls.line", calls.line, -1, texts)
    _require_within("calls.step", calls.step, 0, steps)
    _require_within("calls.node", calls.node, 0, nodes)
    for table_name, table in _tables(profile).items():
        _require_within(f"{table_name}.step", table.step, -2 if isinstance(table, WorkTable) else -1, steps)
        _require_within(f"{table_name}.category", table.category, 0, len(profile.categories))
        _require_within(f"{table_name}.name", table.name, 0, names)
    for table_name, work in _works(profile).items():
        _require_within(f"{table_name}.node", work.node, -1, nodes)
        _require_within(f"{table_name}.launch_shape", work.launch_shape, -1, texts)
        require((work.node[work.step < 0] == -1).all(), f"{table_name}.node: work of no step is in the call tree")
        require((work.order >= 0).all(), f"{table_name}.order is negative")
    _require_within("host_work.lane", profile.host_work.lane, 0, texts)


def _check_tree(profile: Profile) -> None:
    """The call tree: phases are its roots, and nothing but an operator is below an operator."""
    calls, nodes = profile.calls, len(profile.calls.parent)
    require((calls.parent >= -1).all(), "calls.parent refers to nothing")
    require((calls.parent < np.arange(nodes)).all(), "calls.parent: a call comes before its parent")
    root = calls.parent < 0
    require(((calls.kind == PHASE) == root).all(), "calls.kind: the phases are not the roots of the tree")
    above = calls.kind[calls.parent[~root]]
    require((calls.kind[~root][above == OP] == OP).all(), "calls.kind: a scope is below an operator")
    require((calls.kind[calls.node] == OP).all(), "calls.node: a row that is not an operator")


def _check_rows(profile: Profile) -> None:
    """No row occurs twice."""
    calls, ops = profile.calls, profile.ops
    _require_distinct("the nodes of calls", [getattr(calls, name) for name in NODE[:5]])
    _require_distinct("the rows of calls", (calls.step, calls.node))
    _require_distinct("the rows of ops", (ops.step, ops.category, ops.name))
    for name, work in _works(profile).items():
        keys = (work.step + 1, work.node, work.category, work.name, work.launch_shape, work.ordinal)
        _require_distinct(f"the rows of {name}", keys)


def _check_sums(profile: Profile) -> None:
    """The tables of one profile are sums of the same events."""
    ops, calls, kernels, host = profile.ops, profile.calls, profile.kernels, profile.host_work
    on_gpu = np.isin(ops.category, cat.GPU)
    _require_same_sums(
        "kernels and the GPU events in ops",
        (np.maximum(kernels.step, -1), kernels.category, kernels.name, kernels.count, kernels.total_ns),
        [column[on_gpu] for column in (ops.step, ops.category, ops.name, ops.count, ops.total_ns)],
    )
    require((ops.self_ns == ops.total_ns)[on_gpu].all(), "ops: the self time of a GPU event is not its time")
    is_operator = (ops.category == cat.CPU_OP) & (ops.step >= 0)
    operators = [column[is_operator] for column in (ops.step, ops.category, ops.name, ops.count, ops.self_ns)]
    name, category = calls.name[calls.node], np.full(len(calls.node), cat.CPU_OP)
    nodes = (calls.step, category, name, calls.count, calls.self_ns)
    _require_same_sums("calls and ops", nodes, operators, wrappers=True)
    work = (host.step, host.category, host.name, host.count, host.total_ns)
    require(not (len(host.step) and len(kernels.step)), "host_work and kernels: a trace has one of them")
    if len(host.step):
        _require_same_sums("host_work and calls", work, nodes)
    busy = np.zeros(len(profile.busy_ns), np.int64)
    launched = kernels.step >= 0
    np.add.at(busy, kernels.step[launched], kernels.total_ns[launched])
    require((profile.busy_ns <= busy).all(), "busy_ns is more than the GPU events of a step")
    _require_events(ops, profile)


def _check_leaves(profile: Profile) -> None:
    """The leaves of a step add up to it."""
    leaves, steps, nodes = profile.leaves, len(profile.step_numbers), len(profile.calls.parent)
    require_equal_lengths("leaves", [getattr(leaves, f.name) for f in fields(leaves)])
    _require_within("leaves.step", leaves.step, 0, steps)
    _require_within("leaves.kind", leaves.kind, 0, len(LEAF_KINDS))
    _require_within("leaves.node", leaves.node, -1, nodes)
    _require_within("leaves.category", leaves.category, -1, len(profile.categories))
    _require_within("leaves.launch_shape", leaves.launch_shape, -1, len(profile.texts))
    for name in ("name", "op", "root", "following"):
        _require_within(f"leaves.{name}", getattr(leaves, name), -1, len(profile.names))
    require((leaves.name[leaves.category >= 0] >= 0).all(), "leaves.name: work without a name")
    keys = [getattr(leaves, name) for name in ("step", "kind", "node", "category", "name", "launch_shape", "ordinal")]
    _require_distinct("the rows of leaves", (*keys, leaves.op, leaves.root))
    for name in ("path_ns", "total_ns", "count"):
        require_sum(f"leaves.{name}", getattr(leaves, name))
    require((leaves.path_ns <= leaves.total_ns).all(), "leaves: more time on the path than in the period")
    require((leaves.longest_ns <= leaves.path_ns).all(), "leaves: an instance is longer than all together")
    sums = np.zeros(steps, np.int64)
    np.add.at(sums, leaves.step, leaves.path_ns)
    require((sums == profile.periods).all(), "leaves: those of a step do not add up to it")


def _require_events(ops: OpTable, profile: Profile) -> None:
    counts = np.zeros(len(profile.categories), np.int64)
    np.add.at(counts, ops.category, ops.count)
    recorded = [profile.events.get(name, 0) for name in profile.categories]
    require(all(c <= r for c, r in zip(counts.tolist(), recorded, strict=True)), "events: fewer than ops has")


def _require_within(name: str, column: Int64, low: int, high: int) -> None:
    require(((column >= low) & (column < high)).all(), f"{name} refers to nothing")


def _require_distinct(name: str, columns: Sequence[Int64]) -> None:
    require(len(combined(*columns)[1]) == len(columns[0]), f"{name} have a duplicate")


def _require_same_sums(name: str, some: Sequence[Int64], others: Sequence[Int64], *, wrappers: bool = False) -> None:
    """Require equal sums of the last two columns for equal values of the first three; of ``others`` only what ``some``
    has where these leave out ``wrappers``.
    """
    *keys, counts, times = (np.concatenate(pair) for pair in zip(some, others, strict=True))
    sign, of_some = np.ones(len(counts), np.int64), np.arange(len(counts)) < len(some[0])
    sign[~of_some] = -1
    code, first = combined(*keys)
    left = np.zeros((len(first), 2), np.int64)
    np.add.at(left, code, np.column_stack((counts * sign, times * sign)))
    present = np.zeros(len(first), bool)
    present[code[of_some]] = True
    require(not left[present | (not wrappers)].any(), f"{name} do not add up to the same")
