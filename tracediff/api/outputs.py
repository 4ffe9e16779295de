"""What every result offers: its charts, its tables as DataFrames, and what it writes."""

from __future__ import annotations

from collections.abc import Collection
from io import StringIO
from shutil import get_terminal_size
from types import MethodType
from typing import TYPE_CHECKING, Any

import tracediff.charts as charts
from tracediff.diff.comparison import Comparison
from tracediff.errors import TracediffError
from tracediff.profile.tables import table_schema
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.rows import OutputTable
from tracediff.write import StrPath, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from rich.console import Console

    from tracediff.analysis import Analysis


P_VALUES = ("p_value", "q_value", "p_adjusted")
"""Columns of p-values, as they are and corrected."""


class Charted:
    """A result whose charts can be embedded in a page or drawn as images.

    Attributes:
        charts: the plotly figures of this result.
    """

    charts: Charts

    def chart_fragment(self, name: str, **arguments: Any) -> str:
        """A chart as a ``<div>`` with its script, for a page that has loaded plotly.js; its id is ``name``.

        Args:
            arguments: those of the chart, such as ``theme="dark"``.
        """
        from tracediff.report.charts_files import fragment

        return fragment(getattr(self.charts, name)(**arguments), name)

    def chart_image(self, name: str, image_format: str = "png", **arguments: Any) -> bytes:
        """A chart as PNG, SVG or PDF (needs the extra ``images`` and an installed Chromium).

        Raises:
            TracediffError: no browser is found, or it cannot draw.
        """
        from tracediff.report.charts_files import image

        return image(getattr(self.charts, name)(**arguments), image_format)


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
        return MethodType(getattr(charts, name), self._subject)

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<Charts: {', '.join(self._names)}>"


def frame_of(table: OutputTable) -> pd.DataFrame:
    """The DataFrame of ``table``, with all columns even where it has no rows; a p-value of what was not
    tested is NaN.
    """
    import pandas as pd

    frame = pd.DataFrame(table.values, columns=list(table.columns))
    return frame.astype({name: float for name in P_VALUES if name in frame})


def loaded_table(name: str, tables: Collection[str]) -> TableSchema:
    """The schema of a further table (docs/analysis.md), one of the ``tables`` that were loaded.

    Raises:
        TracediffError: there is no table of that name, or it was not loaded.
    """
    schema = table_schema(name)
    if name not in tables:
        reason = "was not loaded, or the traces do not allow it (see health)"
        raise TracediffError(f"table {name}", reason, f"give tables=[{name!r}] to compare, analyze or load")
    return schema


WIDTH = 120
"""Columns of what is printed where there is no terminal, as in a notebook."""


def printed(show: Callable[[Console], object]) -> str:
    """What ``show`` prints, as plain text for the terminal that there is."""
    from rich.console import Console

    text = StringIO()
    show(Console(file=text, width=get_terminal_size((WIDTH, 1)).columns, color_system=None, emoji=False))
    return text.getvalue().rstrip()


def written(text: str, path: StrPath | None) -> str:
    """``text``, also written to ``path`` if one is given."""
    if path is not None:
        write_text(path, text)
    return text
