"""`Charts`: the charts of one comparison, as ``diff.charts.NAME()``."""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import tracediff.charts as charts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediff.diff.comparison import Comparison


class Charts:
    """The functions of `tracediff.charts`, their comparison given: ``diff.charts.step_waterfall(theme="dark")`` is a plotly figure.

    ``dir()`` lists them; ``help(diff.charts.NAME)`` tells the arguments.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in charts.NAMES:
            raise AttributeError(f"no chart {name!r}: there are {', '.join(charts.NAMES)}")
        draw = getattr(charts, name)
        return update_wrapper(partial(draw, self._comparison), draw)

    def __dir__(self) -> list[str]:
        return sorted(charts.NAMES)

    def __repr__(self) -> str:
        return f"<Charts: {', '.join(charts.NAMES)}>"
