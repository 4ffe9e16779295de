"""The nodes of an FX graph by their time, in a collection with ``--annotate fx``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from tracediff.aggregate.averages import op_average
from tracediff.aggregate.traceset import TraceSet
from tracediff.formatting import count, percent, time_unit

PREFIX = "fx:"
"""Of the scopes that `tracediff.collect` records for nodes."""
SHOWN = 10


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


def fx_lines(variant: str, nodes: Sequence[FxNode]) -> list[str]:
    """The first of them in aligned columns; nothing without nodes."""
    if not nodes:
        return []
    unit = time_unit([node.us for node in nodes])
    rows = [(n.node, n.calls, unit.text(n.us), percent(n.share)) for n in nodes[:SHOWN]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left_out = [f"… and {count(len(nodes) - SHOWN)} more"] if len(nodes) > SHOWN else []
    return [
        f"FX nodes of {variant}, per step",
        *(
            f"  {node:{widths[0]}}  {called:{widths[1]}}  {time:>{widths[2]}}  {share:>{widths[3]}}"
            for node, called, time, share in rows
        ),
        *left_out,
    ]
