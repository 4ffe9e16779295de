"""Modules or families of the work as a tree map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.charts.boxes import Box, joined, pruned
from tracediff.charts.labels import choice, not_compared
from tracediff.charts.theme import empty, finish
from tracediff.charts.work_maps import HOW, WHOLE, box_arguments, map_title, work_title
from tracediff.diff.views import UNKNOWN, VIEWS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison
    from tracediff.diff.groups import Member


def treemap(comparison: Comparison, by: str | None = None, *, theme: str = "light") -> go.Figure:
    """The work as nested boxes.

    Args:
        by: ``module`` (its parts, then operators) or ``family`` (then kernels or operators); by default module where
            most work has one.
    """
    import plotly.graph_objects as go

    if by is not None:
        choice("by", by, ("module", "family"))
    refused = not_compared(comparison)
    by = by or _best(comparison)
    boxes = [] if refused else pruned(joined(_nested(comparison, by)))
    if len(boxes) < 2:
        return empty(theme, refused or "The traces contain no work in the used steps.")
    figure = go.Figure(go.Treemap(**box_arguments(comparison, boxes, theme, True), maxdepth=4))
    figure.update_traces(root_color="rgba(0,0,0,0)", sort=True, tiling_pad=2)
    title = f"{'Work by module' if by == 'module' else 'Work by family'} ({work_title(comparison)} per step)"
    return finish(figure, theme, map_title(comparison, boxes, title), HOW, 560)


def _best(comparison: Comparison) -> str:
    known = sum(m.ns for g in comparison.work.groups for m in (*g.control, *g.test) if m.module)
    return "module" if 2 * known >= comparison.work.control + comparison.work.test else "family"


def _path(member: Member, grouping: str) -> tuple[str, ...]:
    if grouping == "family":
        return member.family, VIEWS["kernel"](member)
    return *(member.module.split("/") if member.module else (UNKNOWN,)), member.op or VIEWS["kernel"](member)


def _nested(comparison: Comparison, grouping: str) -> list[Box]:
    """All work by its path, parents before children."""
    boxes = [Box(-1, WHOLE)]
    known: dict[tuple[int, str], int] = {}
    for group in comparison.work.groups:
        for members, side in ((group.control, "control"), (group.test, "test")):
            for member in members:
                position = 0
                for name in ("", *_path(member, grouping)):
                    if name or position:
                        position = _child(boxes, known, position, name)
                    setattr(boxes[position], side, getattr(boxes[position], side) + member.ns)
    return boxes


def _child(boxes: list[Box], known: dict[tuple[int, str], int], parent: int, name: str) -> int:
    position = known.setdefault((parent, name), len(boxes))
    if position == len(boxes):
        boxes.append(Box(parent, name))
    return position
