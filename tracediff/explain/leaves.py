"""Paired leaves: what both sides' steps waited for, under one chain of labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracediff.aggregate.call_tree import Key
from tracediff.aggregate.leaves import LeafKey, Longest, SetLeaves
from tracediff.aggregate.summary import Side
from tracediff.arrays import AnyArray, Bools, Floats, Int64
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import FamilyOf, Item
from tracediff.diff.ops import GPU_WORK
from tracediff.diff.views import call_names, moved_lines, operators_of
from tracediff.formatting import ARROW, Unit, time_unit
from tracediff.profile.analyses.leaf_keys import CAPTURE, callee_label
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import is_compiled_call, match_name
from tracediff.runtimes import MEMCPY
from tracediff.structs import FrozenStruct, Pair

Step = str | int
"""One level of a chain: a label, or the index of a group of matched work, which is one instance of the label above."""
Chain = tuple[Step, ...]
Texts = NDArray[np.object_]

GPU, HOST, OPERATORS, MIXED = "GPU work", "host", "operators", "work"
"""First labels: GPU events; the host; operators of sides without a GPU; work, where only one side has a GPU."""
NUMBER = re.compile(r"\d+")
"""In annotations: of an iteration, a request or a file, which differ between runs."""
SINGLES, ONE, LONG, STRETCH = "single events", "one ", "mostly one call of ", "one stretch outside operators"
NO_OPERATOR = "kernels"
"""In place of the operator of work that no operator or module launched."""
ON_THE_HOST = " on the host"
"""After an operator whose own time on the host is meant."""
OTHER_CALLERS = "calls that differ"
"""In place of the family of work in calls that one side makes more often, or alone."""
SHARED_CALLS, OTHER_CALLS = HOST_CALLS = "the same operator calls", "operator calls that only one side makes"
"""On the host: the calls that both sides make, and those that one side makes beside them."""
IDLE = "GPU idle"
CODE = "host time outside operators"
SHAPES = "(["
"""What a call of an operator has whose shapes are known."""
UNPLACED = ""
"""The line of code of what has none."""
COPIED = " in "
"""Between a copy that is no kernel and its operator."""
ANNOTATION = " (annotation)"
"""What the label of host code in an annotation ends with."""
OUTSIDE, NOT_RECORDED = "launched outside the steps", "not recorded"
BETWEEN = "between GPU events"
START = "waiting for the first GPU event"
PYTHON, LOADING, COMPILING, COMPILED_CODE, QUEUE, WAITING, CALLS = (
    "Python",
    "loading data",
    "compiling",
    "compiled code",
    "launched, not started",
    "synchronisation",
    "calls",
)


STRETCHES = ("python", "annotated")
"""Kinds of leaves that are code between operators; what compiles, or waits, ends where it ends."""
UNDIVIDED = {"loading": LOADING, "start": START, "unknown": NOT_RECORDED}
"""Kinds of leaves of the host that are one leaf each → its label."""


class Single(FrozenStruct):
    """One event that dominates its leaf, or of code one stretch between calls.

    Attributes:
        side: on which it is longest. longest: the event there. in_runs: whether each run has one like it.
        others, others_ns: how many of its name there are beside it, in all leaves and runs, and their time in ns.
        chain: where its leaf would be in the tree if it was no exception.
    """

    side: int
    longest: Longest
    in_runs: bool
    others: float
    others_ns: float
    chain: Chain


COLUMNS = "groups", "path", "total", "count", "amounts", "unit", "kinds", "names", "ops", "in_each"
"""The arrays of `Leaves` whose last dimension is the leaves."""


class Leaves(Struct):
    """What the steps of both sides waited for, l leaves; times in ns per step.

    Attributes:
        chains: of each, its labels from the root on. groups: int64[l] index of its group of matched work, −1 for none.
        path, total, count: float64[2, l] of control and test: on the path, in the period, instances.
        samples: of each side float64[s, l] ns in the period, see `SetLeaves`.
        amounts: float64[2, l] how much work it is on both sides, 0 on one without it; NaN where unknown.
        unit: what that is counted in.
        kinds: of `LeafKey`. names: [2, l] of each side, empty where it has none. ops: likewise the innermost operator
            around it.
        longest: of each side, (run, leaf) → its longest instance. steps: of each side, how many each run has.
            in_each: bool[2, l] whether it occurs in every one of these.
        single: leaf → the event that dominates it.
    """

    chains: list[Chain]
    groups: Int64
    path: Floats
    total: Floats
    count: Floats
    samples: Pair[Floats]
    amounts: Floats
    unit: Texts
    kinds: Texts
    names: Texts
    ops: Texts
    longest: Pair[dict[tuple[int, int], Longest]]
    steps: Pair[list[int]]
    in_each: Bools
    single: dict[int, Single] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.chains)

    def without_profiler(self, step: Pair[float]) -> Leaves | None:
        """The same leaves, of steps of ``step`` ns without the profiler: GPU events take as long there, and all else is
        time in which the GPU is idle, one leaf. None where they do not fit, as those of several streams may not.
        """
        is_gpu = self.kinds == "gpu"
        idle = np.array(step) - self.total_of(is_gpu)
        if idle.min() < 0 or not is_gpu.any():
            return None

        def followed_by(column: AnyArray, value: Any) -> AnyArray:
            last = np.broadcast_to(np.asarray(value, column.dtype), (*column.shape[:-1], 1))
            return np.append(column, last, axis=-1)

        idle_leaf = {
            "groups": -1,
            "path": idle[:, None],
            "total": idle[:, None],
            "count": 1.0,
            "amounts": np.nan,
            "unit": "",
            "kinds": "unknown",
            "names": "",
            "ops": "",
            "in_each": True,
        }
        gpu_only = replace(self, path=np.where(is_gpu, self.total, 0.0))
        columns = {name: followed_by(getattr(gpu_only, name), value) for name, value in idle_leaf.items()}
        samples = Pair(*map(followed_by, self.samples, idle))
        return replace(self, chains=[*self.chains, (HOST, IDLE)], samples=samples, **columns)

    def below(self, *labels: str) -> Bools:
        """bool[l]: those whose chains begin with these labels."""
        return np.array([chain[: len(labels)] == labels for chain in self.chains], bool)

    @property
    def runs(self) -> Pair[Floats]:
        """Of each side float64[runs, l]: ns per step in the period."""
        both = zip(self.steps, self.samples, self.total, strict=True)
        return Pair(*(samples if len(steps) > 1 else total[None] for steps, samples, total in both))

    @property
    def ratio(self) -> Floats:
        """float64[l]: how many times as much work test has; NaN where unknown, or where one side has none."""
        is_of_both = (self.amounts > 0).all(axis=0)
        out: Floats = np.full(len(self), np.nan)
        np.divide(self.amounts[1], self.amounts[0], out=out, where=is_of_both)
        return out

    def path_of(self, some: Bools) -> Floats:
        """float64[2] ns per step of the leaves that are ``some``, on the path."""
        return np.asarray(self.path[:, some].sum(axis=1))

    def total_of(self, some: Bools) -> Floats:
        """float64[2] ns per step of the leaves that are ``some``, in the period."""
        return np.asarray(self.total[:, some].sum(axis=1))

    @property
    def step_ns(self) -> Floats:
        """float64[2]: what the path, and with it the step, takes."""
        return np.asarray(self.path.sum(axis=1))

    @property
    def step_unit(self) -> Unit:
        """The unit of times in µs in which the step is shown."""
        return time_unit(self.step_ns / 1000)

    @property
    def reached(self) -> Floats:
        """float64[l]: of time before GPU events begin, which off the path is unknown: the logarithm of how many times
        as large a part of all GPU events it is now that the path waits for; NaN of all else.
        """
        before = np.isin(self.kinds, ("queue", "between"))
        events = self.count[:, self.kinds == "gpu"].sum(axis=1, keepdims=True)
        parts = np.divide(self.count, events, out=np.zeros_like(self.count), where=events > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(before, np.log(parts[1]) - np.log(parts[0]), np.nan)


def pair(
    sides: Pair[SetLeaves],
    groups: Sequence[Group],
    recorded: Pair[Side],
    family_of: FamilyOf,
    holders: Mapping[int, str],
) -> Leaves:
    """The leaves of both ``sides``; those of one group of matched work, and those of one place on the host, are one.
    ``holders``: index of a group → the call that holds it, if that differs.
    """
    functions = [{key.name for key in leaves.keys if key.kind == "python" and key.name} for leaves in sides]
    on_gpu = {side.has_gpu for side in recorded}
    labels = _Labels(
        groups,
        MIXED if len(on_gpu) > 1 else GPU if True in on_gpu else OPERATORS,
        family_of,
        holders,
        call_names(key.name for leaves in sides for key in leaves.keys),
        moved_lines(*functions) if bool(functions[0]) == bool(functions[1]) else None,
    )
    index, key_of_leaf, places = _numbered(sides, labels)
    size = len(index)

    def summed(name: str) -> Pair[Floats]:
        out = []
        for leaves, place in zip(sides, places, strict=True):
            values = getattr(leaves, name)
            both = np.zeros((len(values), size))
            for run, row in zip(both, values, strict=True):
                np.add.at(run, place, row)
            out.append(both)
        return Pair(*out)

    def means(name: str) -> Floats:
        return np.array([of_side.mean(axis=0) for of_side in summed(name)])

    def texts(column: str) -> Texts:
        return np.array([[str(getattr(keys.get(i), column, "")) for i in range(size)] for keys in key_of_leaf], object)

    in_each = np.zeros((2, size), bool)
    for side, (leaves, place) in enumerate(zip(sides, places, strict=True)):
        in_each[side, place[leaves.in_each]] = True
    return Leaves(
        chains=[chain for chain, _ in index],
        groups=np.array([group for _, group in index], np.int64),
        path=means("path"),
        total=means("total"),
        count=means("count"),
        samples=summed("samples"),
        amounts=np.full((2, size), np.nan),
        unit=np.full(size, "", object),
        kinds=np.array([(key_of_leaf.control.get(i) or key_of_leaf.test[i]).kind for i in range(size)], object),
        names=texts("name"),
        ops=texts("op"),
        longest=Pair(*map(_longest, sides, places)),
        steps=sides.map(lambda side: side.steps),
        in_each=in_each,
    )


def _numbered(
    sides: Pair[SetLeaves], labels: _Labels
) -> tuple[dict[tuple[Chain, int], int], Pair[dict[int, LeafKey]], list[Int64]]:
    """((chain, group) → number of a leaf of both sides, number → key per side, number of each side's leaves)."""
    index: dict[tuple[Chain, int], int] = {}
    key_of_leaf: Pair[dict[int, LeafKey]] = Pair({}, {})
    places = []
    for side, leaves in enumerate(sides):
        place = [index.setdefault(labels.chain(key, side), len(index)) for key in leaves.keys]
        for number, key in zip(place, leaves.keys, strict=True):
            key_of_leaf[side].setdefault(number, key)
        places.append(np.array(place, np.int64))
    return index, key_of_leaf, places


def _longest(leaves: SetLeaves, place: Int64) -> dict[tuple[int, int], Longest]:
    """(run, number of a leaf) → its longest instance; ``place`` is the number of each of ``leaves``."""
    out: dict[tuple[int, int], Longest] = {}
    numbers = place.tolist()
    for (run, leaf), instance in leaves.longest.items():
        cell = run, numbers[leaf]
        if cell not in out or instance.ns > out[cell].ns:
            out[cell] = replace(instance, name=leaves.keys[leaf].name)
    return out


@dataclass
class _Labels:
    """The chains of leaves. ``top``: first label of work. ``moved``: line of control's Python → the same code's line in
    test; None where only one side has Python functions, so that what is within them on the other compares as a whole.
    """

    groups: Sequence[Group]
    top: str
    family_of: FamilyOf
    holders: Mapping[int, str]
    calls: Mapping[str, str]
    moved: Mapping[str, str] | None

    def __post_init__(self) -> None:
        self._group_of: Pair[dict[Key, int]] = Pair({}, {})
        for g, group in enumerate(self.groups):
            for numbers, items in zip(self._group_of, group.items, strict=True):
                numbers.update((item.key, g) for item in items)
        self._of_group = [self._group_chain(g) for g in range(len(self.groups))]

    def chain(self, key: LeafKey, side: int) -> tuple[Chain, int]:
        """(chain, group or −1) of a leaf of one side."""
        if key.work is not None:
            group = self._group_of[side].get(key.work, -1)
            if group >= 0:
                return self._of_group[group], group
            if key.kind == "gpu":
                return (MIXED if self.top == MIXED else GPU, OUTSIDE, display_name(key.name)), -1
        return self._host_chain(key, side), -1

    def _host_chain(self, key: LeafKey, side: int) -> Chain:
        if key.kind in UNDIVIDED:
            return HOST, UNDIVIDED[key.kind]
        call = self.calls.get(key.name, key.name)
        inside = display_name(key.op) if key.op else ""
        place = f"{call} in {inside}" if inside else call
        if key.kind == "compiling":
            name = key.name.replace(" (dynamo_timed)", "")
            return HOST, COMPILING, f"capture of a graph ({name})" if CAPTURE in name else name
        if key.kind == "queue":
            return HOST, QUEUE, call or NOT_RECORDED
        if key.kind == "between":
            return HOST, QUEUE, f"{call or NOT_RECORDED}, {BETWEEN}"
        if key.kind in STRETCHES and self.moved is None:
            return HOST, PYTHON, NOT_RECORDED
        if key.kind == "python":
            name = key.name if side or not self.moved else self.moved.get(key.name, key.name)
            if not name:
                return HOST, PYTHON, NOT_RECORDED
            caller, callee = display_name(name), callee_label(key.op)
            return HOST, PYTHON, caller, f"{callee} in {caller}" if callee else caller
        if key.kind == "annotated":
            return HOST, PYTHON, f"{NUMBER.sub('#', key.name)}{ANNOTATION}"
        if key.kind == "sync":
            return HOST, WAITING, call, place
        if self.top == MIXED and key.kind == "op" and key.op:
            return MIXED, self.family_of(key.name, None), f"{display_name(key.name)}{ON_THE_HOST}"
        here = inside or display_name(key.name) if key.kind == "op" else place
        if key.kind == "op" and is_compiled_call(key.op or key.name):  # on a CPU also what its kernels compute
            return HOST, COMPILED_CODE, here
        if key.kind == "call" and not inside:
            return HOST, CALLS, here, here
        return HOST, OPERATORS, display_name(key.root or key.name), here

    def _group_chain(self, g: int) -> Chain:
        group = self.groups[g]
        op = operator_of(group) or (group.module or "").split("/")[-1] or NO_OPERATOR
        if {member.category for members in group.members for member in members} == {MEMCPY}:  # not what its kernels do
            op = f"{largest_kernels(group)}{COPIED}{op}"
        call = group.call if group.call and SHAPES in group.call else largest_kernels(group)
        if g in self.holders:
            noun = "operators" if self.top == OPERATORS else "kernels"
            return self.top, OTHER_CALLERS, self.holders[g], f"{group.family} {noun}", call, g
        return self.top, group.family, op, call, g


def operator_of(group: Group) -> str:
    """The operator that does most of the work of both sides, or else the call that it is within, or ``old → new``; a
    side without one has its largest kernel there. Empty where no side has one.
    """
    most = {(m.op or "") if m.category in GPU_WORK else m.name for m, *_ in filter(None, group.members)}
    if len(most) == 1 and (op := most.pop()):  # the same name wherever it is matched
        return display_name(match_name(op))
    if group.call:
        return display_name(match_name(group.call.split("(")[0]))
    names = operators_of(group.members)
    if not any(names) or not all(group.members):
        return "".join(names)
    sides = [name or largest_kernel(members) for name, members in zip(names, group.members, strict=True)]
    return sides[0] if sides[0] == sides[1] else ARROW.join(sides)


def largest_kernel(members: Sequence[Item]) -> str:
    """Readable name of the largest work of one side of a group; empty where it has none."""
    return display_name(match_name(members[0].name)) if members else ""


def largest_kernels(group: Group) -> str:
    """Readable name of the largest work of a group, of both sides where they differ."""
    return ARROW.join(dict.fromkeys(filter(None, map(largest_kernel, group.members))))
