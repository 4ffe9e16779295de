"""charts: a comparison, an analysis (or HTA's frame) → plotly figures. Nothing here imports plotly before a figure is
drawn.

Each name of NAMES is a function of a `Comparison`, each of OF_SET of an `Analysis`; all take ``theme="light"`` or
``"dark"``, and none fails on empty inputs. A chart is the function of its name in a file of `figures/` (FILES), loaded
when first used (PEP 562).
"""

from importlib import import_module
from typing import Any

NAMES = (
    "step_waterfall",
    "duration_diff",
    "counts_diff",
    "families",
    "distributions",
    "timeline",
    "ranks",
    "memory",
    "launches",
)
"""Charts of a `Comparison`, in the order in which they are best read."""

OF_SET = ("step_parts", "work_parts", "timeline", "memory", "distributions", "ranks")
"""Charts of an `Analysis`, in the order in which they are best read."""

FILES = {
    "duration_diff": "operation_bars",
    "counts_diff": "operation_bars",
    "launches": "operation_bars",
    "families": "parts",
    "step_parts": "parts",
    "work_parts": "parts",
    "distributions": "spread",
    "ranks": "spread",
}
"""Charts that share a file in `figures/`; each other chart has a file of its name."""

__all__ = ["NAMES", "OF_SET", *{*NAMES, *OF_SET}]


def __getattr__(name: str) -> Any:
    if name in NAMES or name in OF_SET:
        return getattr(import_module(f"tracediff.charts.figures.{FILES.get(name, name)}"), name)
    raise AttributeError(f"module 'tracediff.charts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
