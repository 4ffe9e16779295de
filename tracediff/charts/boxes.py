"""Trees of boxes for icicles and tree maps: sizes, pruning, and plotly's arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from tracediff.charts.labels import broken, full_name, label
from tracediff.charts.theme import readable
from tracediff.formatting import plural, signed_percent

if TYPE_CHECKING:
    from tracediff.charts.theme import Palette
    from tracediff.diff.comparison import Comparison

LEAST = 0.001
"""Boxes below this fraction of the whole are merged into one."""
MOST = 2500
"""Most boxes in a chart; beyond it, the smallest are merged too."""
STRONGEST = 0.5
"""Change, as a part of the larger side, from which the colour is at its strongest."""
LONGEST_HOVER = 240


@dataclass
class Box:
    """One node; parents come before their children.

    Attributes:
        parent: position of the box around it, −1 for the whole.
        name: plain text. detail: plain text for the hover.
        control, test: time or count per step, numerators over the comparison's scale.
        size: its area: the larger side, and at least the sum of its parts.
    """

    parent: int
    name: str
    control: int = 0
    test: int = 0
    _: KW_ONLY
    detail: str = ""
    size: int = 0


def pruned(boxes: list[Box], least: float = LEAST, most: int = MOST) -> list[Box]:
    """The boxes that are at least ``least`` of the whole, at most ``most`` (plus one “…” per parent, which sums the
    others).
    """
    _set_sizes(boxes)
    limit = least * (boxes[0].size if boxes else 0)
    kept = _kept(boxes, limit)
    while sum(kept) > most:
        limit = max(1.5 * limit, 1.0)
        kept = _kept(boxes, limit)
    return _with_remainders(boxes, kept)


def joined(boxes: list[Box]) -> list[Box]:
    """The boxes, where a box that contains only one other is merged with it: ``Model/Encoder/Layer[0]`` is one
    level.
    """
    children = [0] * len(boxes)
    for box in boxes:
        if box.parent >= 0:
            children[box.parent] += 1
    positions: list[int] = []
    merged: list[Box] = []
    for k, box in enumerate(boxes):
        parent = positions[box.parent] if box.parent >= 0 else -1
        parent_box = boxes[box.parent] if box.parent > 0 else None
        if (
            parent_box
            and children[box.parent] == 1
            and children[k]
            and (parent_box.control, parent_box.test) == (box.control, box.test)
        ):
            merged[parent].name += f"/{box.name}"
            positions.append(parent)
        else:
            positions.append(len(merged))
            merged.append(Box(parent, box.name, box.control, box.test, detail=box.detail))
    return merged


def _set_sizes(boxes: list[Box]) -> None:
    below = [0] * len(boxes)
    for k in range(len(boxes) - 1, -1, -1):
        box = boxes[k]
        box.size = max(box.control, box.test, below[k])
        if box.parent >= 0:
            below[box.parent] += box.size


def _kept(boxes: list[Box], limit: float) -> list[bool]:
    kept: list[bool] = []
    for box in boxes:
        kept.append(box.parent < 0 or (kept[box.parent] and box.size > 0 and box.size >= limit))
    return kept


def _with_remainders(boxes: list[Box], kept: list[bool]) -> list[Box]:
    visible: list[Box] = []
    positions: dict[int, int] = {}
    remainders: dict[int, list[Box]] = {}
    for k, box in enumerate(boxes):
        if kept[k]:
            positions[k] = len(visible)
            visible.append(
                Box(positions.get(box.parent, -1), box.name, box.control, box.test, detail=box.detail, size=box.size)
            )
        elif kept[box.parent] and box.size:
            remainders.setdefault(box.parent, []).append(box)
    for parent, merged in remainders.items():
        sums = sum(b.control for b in merged), sum(b.test for b in merged)
        visible.append(
            Box(
                positions[parent],
                "…",
                *sums,
                detail=f"{plural(len(merged), 'smaller part')} together",
                size=sum(b.size for b in merged),
            )
        )
    return visible


def arrays(
    comparison: Comparison,
    boxes: list[Box],
    *,
    colours: Palette,
    unit_us: float,
    with_titles: bool,
    amount_text: Callable[[int], str],
) -> dict[str, Any]:
    """Arguments for `go.Icicle` and `go.Treemap`. A box's value excludes its parts, so that sums close
    without rounding.

    Args:
        unit_us: µs of the unit of values.
        with_titles: boxes with parts have room for one line only.
        amount_text: the text of an amount.
    """
    remainders = [box.size for box in boxes]
    parents = {box.parent for box in boxes} if with_titles else set()
    for box in boxes:
        if box.parent >= 0:
            remainders[box.parent] -= box.size
    return {
        "ids": [str(k) for k in range(len(boxes))],
        "parents": [str(box.parent) if box.parent >= 0 else "" for box in boxes],
        "labels": [label(box.name, 48) for box in boxes],
        "values": [round(comparison.us(value) / unit_us, 6) for value in remainders],
        "branchvalues": "remainder",
        "sort": False,
        "customdata": [_hover(box, amount_text) for box in boxes],
        "hovertemplate": "%{customdata}<extra></extra>",
        "text": [_box_text(box, k in parents) for k, box in enumerate(boxes)],
        "texttemplate": "%{text}",
        "textfont": {"color": [readable(colours.of_change(relative(box) / STRONGEST)) for box in boxes]},
        "tiling": {"pad": 0},
        "marker": {
            "colors": [round(relative(box), 4) for box in boxes],
            "colorscale": colours.diverging,
            "cmin": -STRONGEST,
            "cmax": STRONGEST,
            "showscale": True,
            "line": {"color": colours.paper, "width": 0.6},
            "colorbar": _colorbar(colours),
        },
    }


def _box_text(box: Box, one_line: bool) -> str:
    return label(box.name) if one_line else broken(box.name)


def relative(box: Box) -> float:
    """The change as a part of the larger side: −1 only in the control, +1 only in the test."""
    larger = max(box.control, box.test)
    return (box.test - box.control) / larger if larger else 0.0


def _hover(box: Box, amount_text: Callable[[int], str]) -> str:
    delta = box.test - box.control
    only = "only in the test" if not box.control else "only in the control" if not box.test else ""
    change = only or signed_percent(delta / box.control)
    detail = f"<br>{full_name(box.detail, LONGEST_HOVER)}" if box.detail else ""
    return (
        f"<b>{full_name(box.name, LONGEST_HOVER)}</b>{detail}"
        f"<br>control {amount_text(box.control)}<br>test {amount_text(box.test)}"
        f"<br>change {'+' if delta > 0 else ''}{amount_text(delta)} per step ({change})"
    )


def _colorbar(colours: Palette) -> dict[str, Any]:
    strongest = f"≥ {100 * STRONGEST:.0f} %"
    return {
        "orientation": "h",
        "x": 0.5,
        "y": 0,
        "yanchor": "top",
        "len": 0.8,
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": [-STRONGEST, 0, STRONGEST],
        "ticktext": [f"{strongest} less", "no change", f"{strongest} more"],
        "tickfont": {"size": 11, "color": colours.muted},
    }
