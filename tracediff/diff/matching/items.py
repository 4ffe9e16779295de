"""Items: the work of one side with all that matching goes by, also where a compiled kernel comes from as the
collector's manifest and logs say; and the match of items of both sides.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, takewhile
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from tracediff.aggregate.call_tree import CallTree, Trees, Work
from tracediff.arrays import shared_value
from tracediff.formatting import joined
from tracediff.ingest.manifest import CompiledGraph, CompiledKernel, Manifest, TorchLog
from tracediff.ingest.model.names import as_one
from tracediff.patterns import late
from tracediff.profile.events.work import UNMATCHED
from tracediff.profile.kernels.match_names import is_generated, match_name
from tracediff.structs import FrozenStruct, Pair

GRAPH_OF_NAME = late(r"^graph_\d+_")
VIEWS = late(
    r"^(?:_?unsafe_view|view|reshape|permute|transpose|t|expand|expand_as|squeeze|unsqueeze|slice|select|alias|detach|as_strided|split\w*|unbind"
    r"|narrow|contiguous|empty\w*|_reshape_alias|resize_|resolve_conj|getitem)$"
)
"""Operators that move no data."""
PHASE_OF = {"inference": "forward"}


class KernelOrigin(FrozenStruct):
    """What one kernel computes: base names of the original operators (``native_layer_norm``; empty where unknown), the
    module that holds them all, None where none does, and their lines of code, None where unknown.
    """

    ops: tuple[str, ...]
    module: str | None
    line: str | None = None


class Origins:
    """The origins of all kernels of a side; empty without a manifest and logs."""

    def __init__(self, manifest: Manifest | None, log: TorchLog | None = None) -> None:
        self._logged: dict[str, dict[str, KernelOrigin]] = defaultdict(dict)  # kernel name → phase → origin
        for kernel in log.kernels if log else ():
            self._logged[kernel.name][PHASE_OF.get(kernel.phase, kernel.phase)] = _of_log(kernel)
        self._origins: dict[tuple[str, str], list[KernelOrigin]] = defaultdict(list)  # (phase, kernel name)
        for graph in manifest.provenance if manifest else ():
            for name, origin in _kernels(graph):
                self._origins[graph.phase, f"graph_{graph.id}_{name}"].append(origin)
                self._origins[graph.phase, name].append(origin)

    def find(self, kernel: str, phase: str, occurrence: int) -> KernelOrigin | None:
        """The origin of the ``occurrence``-th launch of ``kernel`` (its raw name) in a phase of a step; None where
        unknown or ambiguous.
        """
        collected, logged = self._collected(kernel, phase, occurrence), self._of_logs(kernel, phase)
        return collected.replace(line=logged.line) if collected and logged else collected or logged

    def _of_logs(self, kernel: str, phase: str) -> KernelOrigin | None:
        """By its phase, else where all phases agree."""
        origin_of_phase = self._logged.get(kernel, {})
        return origin_of_phase.get(phase) or shared_value(origin_of_phase.values())

    def _collected(self, kernel: str, phase: str, occurrence: int) -> KernelOrigin | None:
        origins = self._origins.get((phase, kernel))
        if not origins:
            return None
        if len(set(origins)) == 1:
            return origins[0]
        return origins[occurrence] if GRAPH_OF_NAME.match(kernel) and occurrence < len(origins) else None


def base_name(op: str) -> str:
    """``aten::add_`` and ``aten.add.Tensor`` → ``add``."""
    plain = op.removeprefix("aten::").removeprefix("aten.")
    return plain.split(".")[0].rstrip("_") or plain


def _of_log(kernel: CompiledKernel) -> KernelOrigin:
    """``aten.add.Tensor``, ``_c10d_functional.all_reduce`` → ``add``, ``all_reduce``."""
    names = {base_name(op.partition(".")[2]) for op in kernel.ops}
    return KernelOrigin(tuple(sorted(name for name in names if not VIEWS.match(name))), None, as_one(kernel.lines))


def _kernels(graph: CompiledGraph) -> Iterable[tuple[str, KernelOrigin]]:
    """Kernel name → origin in launch order; a node that several kernels compute again counts for the first."""
    nodes = {node.name: node for node in graph.nodes}
    placed = [
        (name, int(place or 0), node_names)
        for (name, _, place), node_names in ((k.rpartition(":"), v) for k, v in graph.kernels.items())
    ]
    counted_names: set[str] = set()
    for name, _, node_names in sorted(placed, key=lambda entry: entry[1]):
        compiled = [nodes[n] for n in node_names if n in nodes]
        fresh = [n for n in compiled if n.name not in counted_names] or compiled
        counted_names |= {n.name for n in compiled}
        counted = [n for n in fresh if not VIEWS.match(base_name(n.op))] or fresh
        yield (
            name,
            KernelOrigin(
                tuple(sorted({base_name(n.op) for n in counted})), _shared_module({n.module for n in counted})
            ),
        )


def _shared_module(modules: set[str]) -> str | None:
    """The innermost module that holds all ``modules``; None where only the whole model does."""
    shared = takewhile(lambda parts: len({*parts}) == 1, zip(*(m.split(".") for m in modules), strict=False))
    return ".".join(parts[0] for parts in shared) or None


FamilyOf = Callable[[str, str | None], str]
"""(name of the work, its operator) → family."""

FUSED_LIST = late(r"(?:^|_)fused_(?P<ops>.+?)(?:_\d+)?$", re.DOTALL)


class Item(Work, kw_only=True, dict=True):
    """Equal work of one side, and where it belongs; counts and times are numerators over the comparison's scale.

    Attributes:
        op: the operator that launched it, None for none. family, phase: kind of work, part of the step.
        module: path, None where unknown.
        line: the code outside of torch that its operator runs for, None where unknown.
        fused: the operators that a fused kernel computes: base names from its origin, or the list in its name as one
            text; empty for others.
    """

    op: str | None
    family: str
    phase: str
    module: str | None
    line: str | None
    fused: tuple[str, ...]

    @cached_property
    def match_name(self) -> str:
        """`name` without what differs between runs."""
        return match_name(self.name)

    @cached_property
    def match(self) -> tuple[str, str, str]:
        """What must agree with a partner: category, match name, and of generated kernels grid and block."""
        launch_shape = self.launch_shape if is_generated(self.name) else None
        return self.category, self.match_name, launch_shape or ""


def items_of(tree: CallTree, family_of: FamilyOf, origins: Origins, qualified: Mapping[str, str]) -> list[Item]:
    """The items of ``tree`` in the order in which they ran.

    Args:
        family_of: the family of a kernel.
        qualified: the profiler's module names (``Linear_7``) → the model's own (``blocks.3.fc1``), which are used
            instead where known.
    """
    phases, modules = inherited(tree, qualified)
    launches: Counter[str] = Counter()
    items = []
    for work in sorted((w for w in tree.work if w.ordinal != UNMATCHED), key=lambda w: (w.order, w.name, w.node)):
        op, inside = tree.op(work.node), work.node >= 0
        origin = None
        if is_generated(work.name):
            origin = origins.find(work.name, phases[work.node] if inside else "", launches[work.name])
            launches[work.name] += 1
        items.append(
            Item(
                **asdict(work),
                op=op,
                family=family_of(work.name, op),
                phase=phases[work.node] if inside else "unknown",
                module=(origin and origin.module) or (modules[work.node] if inside else None),
                line=(tree.calls[work.node].line if inside else None) or (origin.line if origin else None),
                fused=(origin and origin.ops) or fused_list(match_name(work.name)),
            )
        )
    return items


def inherited(tree: CallTree, qualified: Mapping[str, str]) -> tuple[list[str], list[str | None]]:
    """The phase and module path of every node; ``qualified`` as for `items_of`."""
    phases: list[str] = []
    modules: list[str | None] = []
    for call in tree.calls:
        inside = call.parent >= 0
        phases.append(phases[call.parent] if inside else call.name)
        module = modules[call.parent] if inside else None
        if call.kind == "module":
            recorded = joined(module, call.label, by="/")
            module = qualified.get(call.name.removeprefix("nn.Module: "), recorded) or call.label
        modules.append(module)
    return phases, modules


Scopes = dict[int, tuple[str, str]]
"""id of each item → its phase, and the innermost annotation around it that both sides have; empty outside of any."""


def scopes_of(items: Sides, trees: Trees) -> Scopes:
    """Where partners without an operator are looked for: decoding steps are no counterpart of prefills, whatever their
    kernels.
    """
    labels = trees.map(lambda tree: {call.label for call in tree.calls if call.kind == "annotation"})
    scopes: Scopes = {}
    for tree, of_side in zip(trees, items, strict=True):
        around: list[str] = []
        for call in tree.calls:
            is_shared = call.kind == "annotation" and call.label in labels.control & labels.test
            around.append(call.label if is_shared else around[call.parent] if call.parent >= 0 else "")
        scopes |= {id(item): (item.phase, around[item.node] if item.node >= 0 else "") for item in of_side}
    return scopes


def fused_list(name: str) -> tuple[str, ...]:
    """The operators that a fused kernel's name lists, as one text to search in: their names hold underscores
    themselves.
    """
    list_match = FUSED_LIST.search(name) if is_generated(name) else None
    return (list_match["ops"],) if list_match else ()


LEVELS = (
    "exact",
    "op",
    "module",
    "fusion",
    "sequence",
    "sequence~family",
    "family",
    "same module",
    "same family",
    "added",
    "removed",
)
"""How a group was matched, in order of trust; docs/matching.md explains each."""

PLACED_AS = {"module": "same module", "family": "same family"}
"""What a level is called where its group is too wide to name a partner: such work is placed, not matched."""
PLACED = frozenset(PLACED_AS.values())

TURNED = {"added": "removed", "removed": "added"}
"""Levels that change when the sides are swapped."""

Sides = Pair[list[Item]]


class Match(NamedTuple):
    """Work of both sides that is the same.

    Attributes:
        level: one of LEVELS.
        items: of control and test.
        calls: of both trees, the paired calls of one operator that all items hang below; empty for none.
    """

    level: str
    items: Sides
    calls: Pair[Sequence[int]] = Pair((), ())


class Leftover(Struct):
    """What no level has placed yet; items keep their order."""

    items: Sides

    def by_phase(self) -> Iterator[tuple[str, Sides]]:
        """(phase, its items)."""
        for phase in dict.fromkeys(item.phase for item in chain(*self.items)):
            yield phase, Pair(*([item for item in side if item.phase == phase] for side in self.items))

    def take(self, matches: Iterable[Match]) -> None:
        """Remove what ``matches`` placed."""
        placed = {id(item) for match in matches for item in chain(*match.items)}
        self.items = self.items.map(lambda side: [item for item in side if id(item) not in placed])
