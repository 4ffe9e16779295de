"""Where a compiled kernel comes from, as the collector's manifest says: its original operators and their module."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tracediff.ingest.manifest import CompiledGraph, Manifest

GRAPH_OF_NAME = re.compile(r"^graph_\d+_")
VIEWS = re.compile(
    r"^(?:_?unsafe_view|view|reshape|permute|transpose|t|expand|expand_as|squeeze|unsqueeze|slice|select|alias|detach|as_strided|split\w*|unbind"
    r"|narrow|contiguous|empty\w*|_reshape_alias|resize_|resolve_conj|getitem)$"
)
"""Operators that move no data."""


@dataclass(frozen=True)
class Origin:
    """What one kernel computes: base names of the original operators (``native_layer_norm``) and the module that holds
    them all, None where none does.
    """

    ops: tuple[str, ...]
    module: str | None


class Origins:
    """The origins of all kernels of a side; empty without a manifest."""

    def __init__(self, manifest: Manifest | None) -> None:
        self._origins: dict[tuple[str, str], list[Origin]] = defaultdict(list)  # (phase, kernel name)
        for graph in manifest.provenance if manifest else ():
            for name, origin in _kernels(graph):
                self._origins[graph.phase, f"graph_{graph.id}_{name}"].append(origin)
                self._origins[graph.phase, name].append(origin)

    def find(self, kernel: str, phase: str, occurrence: int) -> Origin | None:
        """The origin of the ``occurrence``-th launch of ``kernel`` (its raw name) in a phase of a step; None where
        unknown or ambiguous.
        """
        found = self._origins.get((phase, kernel))
        if not found:
            return None
        if len(set(found)) == 1:
            return found[0]
        return found[occurrence] if GRAPH_OF_NAME.match(kernel) and occurrence < len(found) else None


def base_name(op: str) -> str:
    """``aten::add_`` and ``aten.add.Tensor`` → ``add``."""
    plain = op.removeprefix("aten::").removeprefix("aten.")
    return plain.split(".")[0].rstrip("_") or plain


def _kernels(graph: CompiledGraph) -> Iterable[tuple[str, Origin]]:
    """Kernel name → origin in launch order; a node that several kernels compute again counts for the first."""
    nodes = {node.name: node for node in graph.nodes}
    placed = [
        (name, int(place or 0), node_names)
        for (name, _, place), node_names in ((k.rpartition(":"), v) for k, v in graph.kernels.items())
    ]
    taken: set[str] = set()
    for name, _, node_names in sorted(placed, key=lambda entry: entry[1]):
        known = [nodes[n] for n in node_names if n in nodes]
        fresh = [n for n in known if n.name not in taken] or known
        taken |= {n.name for n in known}
        counted = [n for n in fresh if not VIEWS.match(base_name(n.op))] or fresh
        yield (
            name,
            Origin(tuple(sorted({base_name(n.op) for n in counted})), _shared_module({n.module for n in counted})),
        )


def _shared_module(modules: set[str]) -> str | None:
    """The innermost module that holds all ``modules``; None where only the whole model does."""
    paths = [m.split(".") if m else [] for m in modules]
    shared = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared) or None
