"""Arguments of plotly's traces that several charts give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracediff.charts.theme import Palette


def data_array(values: Iterable[Any]) -> Any:
    """``values`` as a list: numbers, texts, None for a gap, or rows of them.

    plotly takes all of these wherever it takes data; plotly-stubs (0.1) allows numbers only, hence the type.
    """
    return list(values)


def hovers(texts: Iterable[Any]) -> dict[str, Any]:
    """Of a trace whose marks show ``texts`` on hovering, one for each (or rows of them), already escaped."""
    return {"customdata": list(texts), "hovertemplate": "%{customdata}<extra></extra>"}


def step_dots(colours: Palette, which: int) -> dict[str, Any]:
    """Of a box of the control (0) or the test (1) with a dot for each step."""
    return {
        "boxpoints": "all",
        "jitter": 0.5,
        "pointpos": 0,
        "marker": {"color": colours.sides[which], "size": 6, "line": {"color": colours.text, "width": 0.5}},
    }
