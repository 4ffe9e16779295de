"""Where the work stands: the merged call tree as an icicle, and modules or families as a tree map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracediff.charts.boxes import Box, arrays, joined, pruned
from tracediff.charts.labels import choice, count_text, not_compared, time_text, unit_for
from tracediff.charts.theme import empty, finish, palette
from tracediff.diff.tree import merge_trees
from tracediff.diff.views import UNKNOWN, VIEWS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison
    from tracediff.diff.groups import Member

WHOLE = "all work"
OUTSIDE = "(no call known)"
SIZES = {"work": "GPU time", "host": "time of operators on the host", "count": "calls of operators"}
"""What the boxes of the tree are as large as."""
HOW = "Room: the larger side. Colour: the change, as a part of it. Click to zoom."


def tree(comparison: Comparison, depth: int = 7, size: str = "work", *, theme: str = "light") -> go.Figure:
    """The call trees of both sides as one icicle, per step of a call and all below it.

    Args:
        depth: levels shown at once; a click shows those below.
        size: one of SIZES: ``work`` is GPU time (without a GPU self time of operators), ``host`` time of operators on the host, ``count`` their calls.
    """
    import plotly.graph_objects as go

    choice("size", size, SIZES)
    refused = not_compared(comparison)
    boxes = [] if refused else pruned(_calls(comparison) if size == "work" else _on_host(comparison, size))
    if len(boxes) < 2 or not boxes[0].size:
        return empty(theme, refused or "No work hangs below a recorded call: there is no tree.")
    what = SIZES[size] if size != "work" else _work(comparison)
    figure = go.Figure(go.Icicle(**_arguments(comparison, boxes, theme, False, size), maxdepth=depth, tiling_orientation="v"))
    return finish(figure, theme, _title(comparison, boxes, f"Call tree ({what} per step)", size), HOW, 620)


def treemap(comparison: Comparison, by: str | None = None, *, theme: str = "light") -> go.Figure:
    """The work as nested boxes.

    Args:
        by: ``module`` (its parts, then operators) or ``family`` (then kernels or operators); by default module where most work has one.
    """
    import plotly.graph_objects as go

    if by is not None:
        choice("by", by, ("module", "family"))
    refused = not_compared(comparison)
    by = by or _best(comparison)
    boxes = [] if refused else pruned(joined(_nested(comparison, by)))
    if len(boxes) < 2:
        return empty(theme, refused or "No work was recorded that belongs to a step.")
    figure = go.Figure(go.Treemap(**_arguments(comparison, boxes, theme, True), maxdepth=4))
    figure.update_traces(root_color="rgba(0,0,0,0)", sort=True, tiling_pad=2)
    title = f"{'Work by module' if by == 'module' else 'Work by family'} ({_work(comparison)} per step)"
    return finish(figure, theme, _title(comparison, boxes, title), HOW, 560)


def _arguments(comparison: Comparison, boxes: list[Box], theme: str, heads: bool, size: str = "work") -> dict[str, Any]:
    unit_us = 0.001 if size == "count" else unit_for([comparison.us(boxes[0].size)]).us
    return arrays(comparison, boxes, palette(theme), unit_us, heads, _amount(comparison, size))


def _amount(comparison: Comparison, size: str) -> Callable[[int], str]:
    """Words a numerator: a count or a time."""
    if size == "count":
        return lambda of: count_text(comparison.number(of))
    return lambda of: time_text(comparison.us(of))


def _on_host(comparison: Comparison, size: str) -> list[Box]:
    """The merged tree by what operators do on the host. A scope that is no operator is as large as what is below it; calls count all below them."""
    nodes = merge_trees(comparison.trees, comparison.pairing, comparison.scale)
    boxes = [Box(-1, WHOLE)]
    for n in nodes:
        own = (n.control_count, n.test_count) if size == "count" else (n.control_host, n.test_host)
        boxes.append(Box(n.parent + 1, n.name, *(own if n.kind == "op" else (0, 0)), f"{n.kind} {n.shapes or ''}".strip()))
    for k in range(len(boxes) - 1, 0, -1):
        above = boxes[k].parent
        if size == "count" or above == 0 or nodes[above - 1].kind != "op":
            boxes[above].control += boxes[k].control
            boxes[above].test += boxes[k].test
    return boxes


def _calls(comparison: Comparison) -> list[Box]:
    """The merged tree below one box for everything; work whose call is not known stands beside the phases."""
    scale = comparison.scale
    whole = [sum(scale // tree.denominator * w.ns for w in tree.work) for tree in comparison.trees]
    boxes = [Box(-1, WHOLE, whole[0], whole[1])]
    nodes = merge_trees(comparison.trees, comparison.pairing, scale)
    boxes += [Box(n.parent + 1, n.name, n.control_work, n.test_work, f"{n.kind} {n.shapes or ''}".strip()) for n in nodes]
    known = [sum(n.control_work for n in nodes if n.parent < 0), sum(n.test_work for n in nodes if n.parent < 0)]
    if whole != known:
        boxes.append(Box(0, OUTSIDE, whole[0] - known[0], whole[1] - known[1]))
    return boxes


def _best(comparison: Comparison) -> str:
    known = sum(m.ns for g in comparison.work.groups for m in (*g.control, *g.test) if m.module)
    return "module" if 2 * known >= comparison.work.control + comparison.work.test else "family"


def _path(member: Member, by: str) -> tuple[str, ...]:
    if by == "family":
        return member.family, VIEWS["kernel"](member)
    return *(member.module.split("/") if member.module else (UNKNOWN,)), member.op or VIEWS["kernel"](member)


def _nested(comparison: Comparison, by: str) -> list[Box]:
    """All work by its path, parents before children."""
    boxes = [Box(-1, WHOLE)]
    known: dict[tuple[int, str], int] = {}
    for group in comparison.work.groups:
        for members, side in ((group.control, "control"), (group.test, "test")):
            for member in members:
                at = 0
                for name in ("", *_path(member, by)):
                    if name or at:
                        at = _child(boxes, known, at, name)
                    setattr(boxes[at], side, getattr(boxes[at], side) + member.ns)
    return boxes


def _child(boxes: list[Box], known: dict[tuple[int, str], int], parent: int, name: str) -> int:
    at = known.setdefault((parent, name), len(boxes))
    if at == len(boxes):
        boxes.append(Box(parent, name))
    return at


def _work(comparison: Comparison) -> str:
    return "GPU time" if comparison.control.has_gpu or comparison.test.has_gpu else "self time of operators"


def _title(comparison: Comparison, boxes: list[Box], what: str, size: str = "work") -> str:
    top = [box for box in boxes if box.parent == 0]
    largest = max(top, key=lambda b: abs(b.test - b.control))
    change = largest.test - largest.control
    if not change:
        return f"{what}: nothing changed"
    return f"{what}: {largest.name} changed most, {'+' if change > 0 else ''}{_amount(comparison, size)(change)}"
