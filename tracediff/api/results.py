"""What `tracediff.check`, `tracediff.matrix` and `tracediff.analyze` return: `Check`, `Matrix` and `SetAnalysis`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING

from tracediff.analysis import Analysis, Finding
from tracediff.api.diff import Diff
from tracediff.api.outputs import Charted, Charts, frame_of, loaded_table, printed, written
from tracediff.diff.gate.judge import Gate
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.errors import check_choice, speaks_python
from tracediff.explain.compare import Cell
from tracediff.formatting import time
from tracediff.present.check import sentence
from tracediff.present.columns import FRAME, SET_OPS, SET_STATES, SHARES
from tracediff.report import analysis as report, analysis_json, check, matrix
from tracediff.report.rows import output_table, table
from tracediff.write import StrPath

if TYPE_CHECKING:
    import pandas as pd


class Check:
    """A comparison judged against limits; ``print(check)`` shows the result of each."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @property
    def result(self) -> str:
        """``pass``, ``regression``, ``inconclusive`` or ``not-comparable``."""
        return self._gate.result

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 inconclusive or not comparable."""
        return self._gate.exit_code

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        return sentence(self._gate)

    @property
    def diff(self) -> Diff:
        """The comparison that was judged."""
        return Diff(self._gate.comparison)

    @cached_property
    def limits(self) -> pd.DataFrame:
        """One row per limit: subject, limit, unit, control, test, change (in the unit), result, explanation."""
        limits = frame_of(output_table(check.LIMITS, FRAME, self._gate.comparison, self._gate.judged))
        return limits[["subject", "limit", "unit", "control", "test", "change", "result", "explanation"]]

    def to_json(self, path: StrPath | None = None) -> str:
        """The JSON document (schema tracediff.check/1); also written to ``path`` if one is given."""
        return written(check.to_json(self._gate), path)

    def to_markdown(self, path: StrPath | None = None) -> str:
        """The check as Markdown for a comment; also written to ``path`` if one is given."""
        return written(check.to_markdown(self._gate), path)

    def to_junit(self, path: StrPath | None = None) -> str:
        """The check as JUnit XML; also written to ``path`` if one is given."""
        return written(check.to_junit(self._gate), path)

    def __str__(self) -> str:
        return printed(partial(check.show, self._gate))

    def __repr__(self) -> str:
        return f"<Check {self.result}: {self.sentence}>"


class Matrix:
    """Several comparisons, their p-values corrected for how many they are; ``print(matrix)`` shows a row for each."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = list(cells)

    @property
    def diffs(self) -> list[Diff]:
        """The comparisons in order."""
        return [Diff(cell.comparison) for cell in self._cells]

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison: labels, the corrected result, µs per step, p and Holm's p (NaN where untested)."""
        return frame_of(matrix.rows(self._cells))

    def to_json(self, path: StrPath | None = None) -> str:
        """The JSON document (schema tracediff.matrix/1); also written to ``path`` if one is given."""
        return written(matrix.to_json(self._cells), path)

    def to_markdown(self, path: StrPath | None = None) -> str:
        """The matrix as Markdown; also written to ``path`` if one is given."""
        return written(matrix.to_markdown(self._cells), path)

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(float_format="{:,.1f}".format)

    def __str__(self) -> str:
        return printed(partial(matrix.show, self._cells))

    def __repr__(self) -> str:
        results = ", ".join(f"{cell.comparison.test.label} {cell.result}" for cell in self._cells)
        return f"<Matrix against {self._cells[0].comparison.control.label}: {results}>" if self._cells else "<Matrix>"


class SetAnalysis(Charted):
    """The result of `tracediff.analyze`: ``print(analysis)`` shows it; DataFrames are in µs, counts and bytes per step.

    Attributes:
        analysis: the exact integers behind every number.
        charts: plotly figures: ``analysis.charts.step_parts().show()``; ``dir(analysis.charts)`` lists them.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.charts = Charts(analysis)

    @cached_property
    def _document(self) -> analysis_json.ProfileDocument:
        return analysis_json.document(self.analysis)

    @cached_property
    def states(self) -> pd.Series:
        """State → µs; they add up to the step."""
        return frame_of(output_table(SET_STATES, FRAME, self.analysis, self.analysis.states)).set_index("name")["us"]

    @cached_property
    def operations(self) -> pd.DataFrame:
        """One row per operator, call or kernel, largest self time first."""
        every = [op for work in (HOST_WORK, GPU_WORK) for op in self.analysis.operations if op.category in work]
        frame = frame_of(output_table(SET_OPS, FRAME, self.analysis, every))
        return frame.sort_values("self_us", ascending=False, ignore_index=True)

    def by(self, view: str) -> pd.DataFrame:
        """The work summed by ``family``, ``phase``, ``module``, ``op`` or ``kernel`` (index): count and µs, largest
        first.

        Raises:
            TracediffError: another view.
        """
        views = self.analysis.views
        check_choice(view, views, f"view {view}", "is unknown", f"choose one of {', '.join(views)}")
        return frame_of(output_table(SHARES, FRAME, self.analysis, views[view])).set_index("name")

    @speaks_python
    def table(self, name: str) -> pd.DataFrame:
        """A further table that the set was loaded with.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``analyze(…, tables=[name])``.
        """
        return frame_of(table(loaded_table(name, self._document.tables), self._document.tables[name], ("",)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is worth looking at, the most important first: code, title, detail, evidence."""
        return self.analysis.findings

    def to_json(self, path: StrPath | None = None) -> str:
        """The JSON document (schema tracediff.profile/1); also written to ``path`` where given."""
        return written(analysis_json.to_json(self.analysis), path)

    def to_markdown(self, path: StrPath | None = None) -> str:
        """The tables as GitHub-flavoured Markdown; also written to ``path`` where given."""
        return written(report.to_markdown(self.analysis), path)

    def to_html(self, path: StrPath | None = None) -> str:
        """One page that works from disk, without a network; also written to ``path`` where given."""
        return written(report.to_html(self.analysis), path)

    def __str__(self) -> str:
        return printed(partial(report.show, self.analysis))

    def __repr__(self) -> str:
        return f"<SetAnalysis {self.analysis.side.label}: {time(self.analysis.us(self.analysis.period))} per step>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}</p>{self.states.to_frame().to_html(float_format='{:,.1f}'.format)}"
