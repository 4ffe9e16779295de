"""`SetAnalysis`: one set in depth, its tables as DataFrames."""

from __future__ import annotations

import os
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from tracediff.analysis.analysis import Analysis
from tracediff.analysis.finding import Finding
from tracediff.api.charted import Charted
from tracediff.api.frames import frame_of, known_view, loaded_table, written
from tracediff.charts.accessor import Charts
from tracediff.formatting import time
from tracediff.report.analysis.json_types import OperationRow, ProfileDocument, ShareRow, StateTime
from tracediff.report.analysis.to_json import document as analysis_document
from tracediff.report.analysis.to_json import shares_of
from tracediff.report.analysis.to_json import to_json as analysis_json
from tracediff.report.analysis.to_markdown import to_markdown as analysis_markdown
from tracediff.report.rows import rows_of, table

if TYPE_CHECKING:
    import pandas as pd


class SetAnalysis(Charted):
    """The result of `tracediff.analyze`: tables are DataFrames in µs, counts and bytes per step.

    Attributes:
        analysis: the exact integers behind every number.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    @cached_property
    def _document(self) -> ProfileDocument:
        return analysis_document(self.analysis)

    @cached_property
    def states(self) -> pd.Series:
        """State → µs; they add up to the step."""
        return frame_of(rows_of(StateTime, self._document.step_time.states)).set_index("name")["us"]

    @cached_property
    def operations(self) -> pd.DataFrame:
        """One row per operator, call or kernel, largest self time first."""
        every = [*self._document.ops, *self._document.kernels]
        return frame_of(rows_of(OperationRow, every)).sort_values("self_us", ascending=False, ignore_index=True)

    def by(self, view: str) -> pd.DataFrame:
        """The work summed by ``family``, ``phase``, ``module``, ``op`` or ``kernel`` (index): count and µs, largest
        first.

        Raises:
            TracediffError: another view.
        """
        known_view(view, tuple(self.analysis.views))
        return frame_of(rows_of(ShareRow, shares_of(self.analysis, view))).set_index("name")

    def table(self, name: str) -> pd.DataFrame:
        """A further table that the set was loaded with.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``load(…, tables=[name])``.
        """
        return frame_of(table(loaded_table(name, self._document.tables), self._document.tables[name], ("",)))

    @property
    def charts(self) -> Charts:
        """Plotly figures: ``analysis.charts.step_parts().show()``; ``dir(analysis.charts)`` lists them."""
        return Charts(self.analysis)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is worth looking at, the most important first: code, title, detail, evidence."""
        return self.analysis.findings

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.profile/1); also written to ``path`` where given."""
        return written(analysis_json(self.analysis), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The tables as GitHub-flavoured Markdown; also written to ``path`` where given."""
        return written(analysis_markdown(self.analysis), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that works from disk, without a network; also written to ``path`` where given."""
        from tracediff.report.page.analysis import to_html

        return written(to_html(self.analysis), path)

    def __repr__(self) -> str:
        return f"<SetAnalysis {self.analysis.side.label}: {time(self.analysis.us(self.analysis.period))} per step>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}</p>{self.states.to_frame().to_html(float_format='{:,.1f}'.format)}"
