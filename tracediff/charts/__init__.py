"""charts: a comparison, an analysis (or HTA's frame) → plotly figures. Nothing here imports plotly before a figure is drawn.

Each name of NAMES is a function of a `Comparison`, each of OF_SET of an `Analysis`; all take ``theme="light"`` or ``"dark"``, and none fails on empty inputs.
It is loaded when first used (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracediff.charts.allocated import memory as memory
    from tracediff.charts.dots import scatter as scatter
    from tracediff.charts.launch_bars import launches as launches
    from tracediff.charts.one_set import step_parts as step_parts
    from tracediff.charts.one_set import work_parts as work_parts
    from tracediff.charts.op_bars import counts_diff as counts_diff
    from tracediff.charts.op_bars import duration_diff as duration_diff
    from tracediff.charts.rank_map import ranks as ranks
    from tracediff.charts.spread import distributions as distributions
    from tracediff.charts.stacked import families as families
    from tracediff.charts.two_steps import timeline as timeline
    from tracediff.charts.waterfall import step_waterfall as step_waterfall
    from tracediff.charts.work_maps import tree as tree
    from tracediff.charts.work_maps import treemap as treemap

OF_SET: dict[str, str] = {
    "step_parts": "one_set",
    "work_parts": "one_set",
    "timeline": "two_steps",
    "memory": "allocated",
    "distributions": "spread",
    "ranks": "rank_map",
}
"""Charts of an `Analysis` → module, in the order in which they are best read."""

_HOMES = {
    "step_waterfall": "waterfall",
    "duration_diff": "op_bars",
    "counts_diff": "op_bars",
    "families": "stacked",
    "scatter": "dots",
    "tree": "work_maps",
    "treemap": "work_maps",
    "distributions": "spread",
    "timeline": "two_steps",
    "ranks": "rank_map",
    "memory": "allocated",
    "launches": "launch_bars",
}
"""Chart → module. No module may be called as a chart is: importing it would hide the function."""

NAMES: tuple[str, ...] = tuple(_HOMES)
"""All charts, in the order in which they are best read."""

__all__ = ["NAMES", "OF_SET", *{**_HOMES, **OF_SET}]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name) or OF_SET.get(name)
    if home:
        return getattr(import_module(f"tracediff.charts.{home}"), name)
    raise AttributeError(f"module 'tracediff.charts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
