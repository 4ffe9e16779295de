"""The merged call tree of both sides as an icicle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.boxes import Box, pruned
from tracediff.charts.labels import choice, not_compared
from tracediff.charts.theme import empty, finish
from tracediff.charts.work_maps import HOW, WHOLE, box_arguments, map_title, work_title
from tracediff.diff.tree import merge_trees

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison

OUTSIDE = "(call unknown)"
SIZES = {"work": "GPU time", "host": "operator time on the host", "count": "operator calls"}
"""What the size of a box can measure."""


def tree(comparison: Comparison, depth: int = 7, size: str = "work", *, theme: str = "light") -> go.Figure:
    """The call trees of both sides as one icicle; a box is a call with everything below it, per step.

    Args:
        depth: levels shown at once; a click shows those below.
        size: one of SIZES: ``work`` is GPU time (without a GPU self time of operators), ``host`` time of operators on
            the host, ``count`` their calls.
    """
    import plotly.graph_objects as go

    choice("size", size, SIZES)
    refused = not_compared(comparison)
    boxes = [] if refused else pruned(_calls(comparison) if size == "work" else _on_host(comparison, size))
    if len(boxes) < 2 or not boxes[0].size:
        return empty(theme, refused or "No work belongs to a recorded call, so there is no call tree.")
    what = SIZES[size] if size != "work" else work_title(comparison)
    figure = go.Figure(
        go.Icicle(**box_arguments(comparison, boxes, theme, False, size), maxdepth=depth, tiling_orientation="v")
    )
    return finish(figure, theme, map_title(comparison, boxes, f"Call tree ({what} per step)", size), HOW, 620)


def _on_host(comparison: Comparison, size: str) -> list[Box]:
    """The merged tree by what operators do on the host. A scope other than an operator is as large as
    its children together; a count includes all calls below.
    """
    nodes = merge_trees(comparison.trees, comparison.pairing, comparison.scale)
    boxes = [Box(-1, WHOLE)]
    for n in nodes:
        sizes = (n.control_count, n.test_count) if size == "count" else (n.control_host, n.test_host)
        boxes.append(
            Box(
                n.parent + 1,
                n.name,
                *(sizes if n.kind == "op" else (0, 0)),
                detail=f"{n.kind} {n.shapes or ''}".strip(),
            )
        )
    for k in range(len(boxes) - 1, 0, -1):
        above = boxes[k].parent
        if size == "count" or above == 0 or nodes[above - 1].kind != "op":
            boxes[above].control += boxes[k].control
            boxes[above].test += boxes[k].test
    return boxes


def _calls(comparison: Comparison) -> list[Box]:
    """The merged tree below one box for everything; work whose call is unknown is beside the phases."""
    scale = comparison.scale
    whole = [sum(scale // tree.denominator * w.ns for w in tree.work) for tree in comparison.trees]
    boxes = [Box(-1, WHOLE, whole[0], whole[1])]
    nodes = merge_trees(comparison.trees, comparison.pairing, scale)
    boxes += [
        Box(n.parent + 1, n.name, n.control_work, n.test_work, detail=f"{n.kind} {n.shapes or ''}".strip())
        for n in nodes
    ]
    known = [sum(n.control_work for n in nodes if n.parent < 0), sum(n.test_work for n in nodes if n.parent < 0)]
    if whole != known:
        boxes.append(Box(0, OUTSIDE, whole[0] - known[0], whole[1] - known[1]))
    return boxes
