"""The nodes of an FX graph by their time, in a collection with ``--annotate fx``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from tracediff.aggregate.averages import op_average
from tracediff.aggregate.traceset import TraceSet

PREFIX = "fx:"
"""Of the scopes that `tracediff.collect` records for nodes."""


@dataclass(frozen=True)
class FxNode:
    """One node of an FX graph, per step."""

    node: Annotated[str, Meta(description="its name in the graph")]
    calls: Annotated[str, Meta(description="what it calls, such as call_module Linear")]
    us: Annotated[float, Meta(description="wall time of its scope per step, in µs")]
    share: Annotated[float, Meta(description="part of the time of all nodes")]


def fx_nodes(traces: TraceSet, calls: dict[str, str]) -> list[FxNode]:
    """The nodes with a scope, the longest first.

    Args:
        calls: node → what it calls, from the manifest.
    """
    average = op_average(traces)
    times = {
        name.removeprefix(PREFIX): total / average.denominator / 1000
        for (_, name), (_, total, _) in average.ops.items()
        if name.startswith(PREFIX)
    }
    whole = sum(times.values())
    return [
        FxNode(node, calls.get(node, ""), us, us / whole if whole else 0.0)
        for node, us in sorted(times.items(), key=lambda item: (-item[1], item[0]))
    ]
