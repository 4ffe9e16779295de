"""Where a compiled kernel comes from, as the collector's manifest and logs of torch.compile say: its original
operators, their module and their lines of code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracediff.ingest.manifest import CompiledGraph, Manifest
from tracediff.ingest.torch_log import CompiledKernel, TorchLog

GRAPH_OF_NAME = re.compile(r"^graph_\d+_")
VIEWS = re.compile(
    r"^(?:_?unsafe_view|view|reshape|permute|transpose|t|expand|expand_as|squeeze|unsqueeze|slice|select|alias|detach|as_strided|split\w*|unbind"
    r"|narrow|contiguous|empty\w*|_reshape_alias|resize_|resolve_conj|getitem)$"
)
"""Operators that move no data."""
PHASE_OF = {"inference": "forward"}
MOST_LINES = 3
"""Lines of code of a kernel that are named."""


@dataclass(frozen=True)
class Origin:
    """What one kernel computes: base names of the original operators (``native_layer_norm``; empty where unknown), the
    module that holds them all, None where none does, and their lines of code, None where unknown.
    """

    ops: tuple[str, ...]
    module: str | None
    line: str | None = None


class Origins:
    """The origins of all kernels of a side; empty without a manifest and logs."""

    def __init__(self, manifest: Manifest | None, log: TorchLog | None = None) -> None:
        self._logged: dict[str, dict[str, Origin]] = defaultdict(dict)  # kernel name → phase → origin
        for kernel in log.kernels if log else ():
            self._logged[kernel.name][PHASE_OF.get(kernel.phase, kernel.phase)] = _of_log(kernel)
        self._origins: dict[tuple[str, str], list[Origin]] = defaultdict(list)  # (phase, kernel name)
        for graph in manifest.provenance if manifest else ():
            for name, origin in _kernels(graph):
                self._origins[graph.phase, f"graph_{graph.id}_{name}"].append(origin)
                self._origins[graph.phase, name].append(origin)

    def find(self, kernel: str, phase: str, occurrence: int) -> Origin | None:
        """The origin of the ``occurrence``-th launch of ``kernel`` (its raw name) in a phase of a step; None where
        unknown or ambiguous.
        """
        collected, logged = self._collected(kernel, phase, occurrence), self._of_logs(kernel, phase)
        return replace(collected, line=logged.line) if collected and logged else collected or logged

    def _of_logs(self, kernel: str, phase: str) -> Origin | None:
        """By its phase, else where all phases agree."""
        found = self._logged.get(kernel, {})
        return found.get(phase) or (next(iter(found.values())) if len(set(found.values())) == 1 else None)

    def _collected(self, kernel: str, phase: str, occurrence: int) -> Origin | None:
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


def _of_log(kernel: CompiledKernel) -> Origin:
    """``aten.add.Tensor``, ``_c10d_functional.all_reduce`` → ``add``, ``all_reduce``."""
    names = {base_name(op.partition(".")[2]) for op in kernel.ops}
    shown = (*kernel.lines[:MOST_LINES], *("…" for _ in kernel.lines[MOST_LINES:][:1]))
    return Origin(tuple(sorted(name for name in names if not VIEWS.match(name))), None, ", ".join(shown) or None)


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
