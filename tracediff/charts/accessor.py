"""`Charts`: the charts of one comparison or analysis, as ``diff.charts.NAME()``."""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import tracediff.charts as charts
from tracediff.diff.comparison import Comparison

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediff.analysis.analysis import Analysis


class Charts:
    """The functions of `tracediff.charts`, bound to one comparison or analysis:
    ``diff.charts.step_waterfall(theme="dark")`` is a plotly figure.

    ``dir()`` lists them; ``help(diff.charts.NAME)`` shows the arguments.
    """

    def __init__(self, subject: Comparison | Analysis) -> None:
        self._subject = subject
        self._names = charts.NAMES if isinstance(subject, Comparison) else charts.OF_SET

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"no chart {name!r}: there are {', '.join(self._names)}")
        draw = getattr(charts, name)
        return update_wrapper(partial(draw, self._subject), draw)

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<Charts: {', '.join(self._names)}>"
