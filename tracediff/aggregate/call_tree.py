"""The call tree of a set: the trees of its files merged, with averages per step as numerators over one denominator."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field

from tracediff.aggregate.traceset import Alike, Weighted, alike, in_steps
from tracediff.arrays import MISSING, Int64, combined, group_by, least, sorted_by, sums, tuples
from tracediff.profile.events.work import KEY
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.model.profile import CallTable, Profile, WorkTable
from tracediff.profile.placement.calls import KINDS, MODULE, OP, PHASE, ModulePaths, module_labels, modules_of
from tracediff.profile.placement.scopes import PHASES
from tracediff.runtimes import DEVICE_CATEGORIES
from tracediff.structs import FrozenStruct, Pair

RECORDED = ("parent", "kind", "name", "shapes", "ordinal", "types", "strides", "line")
"""Columns of a `CallTable` by node."""
Key = tuple[int, str, str, str | None, int]
"""What distinguishes a call from others below its parent (its position, kind, name, shapes, ordinal), and work from
other work (see `work_key`).
"""


class Call(Struct):
    """One node of the tree.

    Attributes:
        parent: position of its parent, −1 for a phase.
        kind: phase, annotation, module or op. name: as recorded; of a phase its name.
        shapes: input shapes as recorded, None where they are not. ordinal: among equal siblings.
        types, strides: dtypes and strides of its inputs as recorded, None where they are not.
        line: the code outside of torch that it runs for, ``model.py(12): forward``; None where unknown.
        label: what it is paired by: the match name; of a module its class and ordinal among siblings of that class.
        count, total, self_ns: numerators per step of an operator: occurrences, duration, self time.
    """

    parent: int
    kind: str
    name: str
    shapes: str | None
    ordinal: int
    types: str | None = None
    strides: str | None = None
    line: str | None = None
    label: str = ""
    count: int = 0
    total: int = 0
    self_ns: int = 0

    @property
    def display_name(self) -> str:
        """What it is called where it is shown: the short form of the name of an operator, else its label."""
        return display_name(self.name) if self.kind == "op" else self.label


class Occurrence(FrozenStruct, order=True):
    """One event.

    Attributes:
        file: position among the set's files. ns: its start on the trace's own clock.
        lane: stream of a GPU event, thread id of an operator, empty where not recorded.
    """

    file: int
    ns: int
    lane: str


class Work(Struct):
    """Equal work of a set at one place of its tree; count, ns and size (bytes moved) are numerators per step.

    Attributes:
        first: where it occurs first in the first used step of the first file that has it.
        node: position in the tree, −1 where nothing is known.
        category, name: as recorded. launch_shape: grid × block, None where not recorded.
        ordinal, order: see `WorkTable`.
    """

    order: int
    first: Occurrence
    node: int
    category: str
    name: str
    launch_shape: str | None
    ordinal: int
    count: int = 0
    ns: int = 0
    size: int = 0

    @property
    def key(self) -> Key:
        """See `work_key`."""
        return self.node, self.category, self.name, self.launch_shape, self.ordinal


class Averaged(FrozenStruct):
    """Averages per step of a set: numerators in 1/denominator ns, events or bytes."""

    denominator: int


class CallTree(Averaged):
    """Calls, parents before children, and the work that hangs below them.

    Attributes:
        calls: the nodes. work: GPU events, or without a GPU the self time of operators.
        places: of each file, in the set's order, where each of its own nodes is among ``calls``, −1 where no used step
            holds it.
    """

    calls: list[Call] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)

    def children(self) -> dict[int, list[int]]:
        """Node → its children in order; −1 → the phases."""
        return group_by(range(len(self.calls)), lambda node: self.calls[node].parent)

    def op(self, node: int) -> str | None:
        """The innermost operator at or around ``node``."""
        return self.calls[node].name if node >= 0 and self.calls[node].kind == "op" else None


Trees = Pair[CallTree]
"""Those of control and test."""


def merge(weighted: Weighted, denominator: int, tables: Sequence[WorkTable]) -> CallTree:
    """The tree of all profiles of a set.

    Args:
        weighted: profiles with the positions of their used steps and the weight of a step.
        denominator: of the averages.
        tables: the work of each profile.
    """
    tree = CallTree(denominator, places=[[] for _ in weighted])
    position_of_key: dict[Key, int] = {}
    works: dict[Key, Work] = {}
    profiles = [profile for profile, _, _ in weighted]
    for calls in alike(weighted, [p.calls for p in profiles], [(p.names, p.texts) for p in profiles]):
        places = _merge_nodes(tree, position_of_key, calls)
        for file in calls.files:
            tree.places[file] = places
    meanings = [(p.names, p.texts, p.categories, places) for p, places in zip(profiles, tree.places, strict=True)]
    for work in alike(weighted, tables, meanings):
        _merge_work(tree, works, work)
    _label(tree)
    return tree


def _merge_nodes(tree: CallTree, position_of_key: dict[Key, int], alike_calls: Alike[CallTable]) -> list[int]:
    """The position in ``tree`` of each node that the used steps hold or that leads to one; −1 of others."""
    profile, table, weight = alike_calls.profile, alike_calls.table, alike_calls.weight
    rows = in_steps(profile, table.step, alike_calls.used)
    recorded = [getattr(table, name) for name in RECORDED]
    amounts = [
        sums(table.node[rows], column[rows], len(table.parent))
        for column in (table.count, table.total_ns, table.self_ns)
    ]
    columns = tuples(*recorded, *amounts)
    nodes: list[int] = []
    for parent, kind, name, shapes, ordinal, types, strides, line, count, total, self_ns in columns:
        if kind == OP and not count:
            nodes.append(-1)
            continue
        key = (
            nodes[parent] if parent >= 0 else -1,
            KINDS[kind],
            PHASES[name] if kind == PHASE else profile.names[name],
            _text(profile, shapes),
            ordinal,
        )
        position = position_of_key.get(key)
        if position is None:
            position = position_of_key[key] = len(tree.calls)
            own = _text(profile, types), _text(profile, strides), _text(profile, line)
            tree.calls.append(Call(*key, *own))
        call = tree.calls[position]
        call.count += weight * count
        call.total += weight * total
        call.self_ns += weight * self_ns
        nodes.append(position)
    return nodes


def _text(profile: Profile, code: int) -> str | None:
    return profile.texts[code] if code >= 0 else None


def work_key(profile: Profile, places: list[int], row: Iterable[int]) -> Key:
    """What identifies equal work of a set: its node in the set's tree, category, name, launch shape and ordinal.

    Args:
        places: see `CallTree`. row: node, category, name, launch_shape and ordinal of a row of a `WorkTable`.
    """
    node, category, name, shape, ordinal = row
    place = places[node] if node >= 0 else -1
    return place, profile.categories[category], profile.names[name], _text(profile, shape), ordinal


def work_keys(profile: Profile, places: list[int], columns: Sequence[Int64]) -> list[Key]:
    """The same of each of the rows that have these columns."""
    return [work_key(profile, places, row) for row in tuples(*columns)]


def _merge_work(tree: CallTree, works: dict[Key, Work], alike_work: Alike[WorkTable]) -> None:
    profile, table, weight, file = alike_work.profile, alike_work.table, alike_work.weight, alike_work.files[0]
    rows = np.flatnonzero(in_steps(profile, table.step, alike_work.used))
    by_time = sorted_by(rows, table.first_ns, table.step)
    code, first = combined(*(getattr(table, name)[by_time] for name in KEY))
    count, ns, size = (sums(code, c[by_time], len(first)) for c in (table.count, table.total_ns, table.size))
    order, first = least(code, table.order[by_time], len(first)), by_time[first]
    keys = work_keys(profile, tree.places[file], [getattr(table, name)[first] for name in KEY])
    columns = (order, table.first_ns[first], table.lane[first], count, ns, size)
    for key, (place, start, lane, n, total, moved) in zip(keys, tuples(*columns), strict=True):
        work = works.get(key)
        if work is None:
            work = works[key] = Work(place, Occurrence(file, start, _lane(profile, key[1], lane)), *key)
            tree.work.append(work)
        work.order = min(work.order, place)
        work.count += weight * n
        work.ns += weight * total
        work.size += weight * moved


def _lane(profile: Profile, category: str, lane: int) -> str:
    if category in DEVICE_CATEGORIES:
        return "" if lane == MISSING else str(lane)
    return profile.texts[lane]


def _label(tree: CallTree) -> None:
    """Give every call its label; a module has one in all phases, whether or not its siblings are called there, too."""
    paths = ModulePaths[str]()
    path_of = modules_of(((call.parent, KINDS.index(call.kind), call.name) for call in tree.calls), paths)
    labels = module_labels((number, around, name) for (around, name), number in paths.items())
    for call, path in zip(tree.calls, path_of, strict=True):
        call.label = match_name(call.name) if call.kind == "op" else call.name
        if call.kind == KINDS[MODULE]:
            call.label = labels[path]
