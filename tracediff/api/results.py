"""`Check` and `Matrix`: what `tracediff.check` and `tracediff.matrix` return."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tracediff.api.diff import Diff
from tracediff.api.frames import frame_of, written
from tracediff.diff.gate.judge import Gate
from tracediff.explain.matrix import Cell
from tracediff.present.check import sentence
from tracediff.report import check_json, check_junit, check_markdown, matrix, matrix_json
from tracediff.report.rows import rows_of

if TYPE_CHECKING:
    import pandas as pd

LIMIT_COLUMNS = ("subject", "limit", "unit", "control", "test", "change", "result", "explanation")


class Check:
    """A comparison judged against limits."""

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
        limits = rows_of(check_json.LimitResult, check_json.document(self._gate).limits)
        return frame_of(limits)[list(LIMIT_COLUMNS)]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.check/1); also written to ``path`` if one is given."""
        return written(check_json.to_json(self._gate), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The check as Markdown for a comment; also written to ``path`` if one is given."""
        return written(check_markdown.to_markdown(self._gate), path)

    def to_junit(self, path: str | os.PathLike[str] | None = None) -> str:
        """The check as JUnit XML; also written to ``path`` if one is given."""
        return written(check_junit.to_junit(self._gate), path)

    def __repr__(self) -> str:
        return f"<Check {self.result}: {self.sentence}>"


class Matrix:
    """Several comparisons, their p-values corrected for how many they are."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = list(cells)

    @property
    def diffs(self) -> list[Diff]:
        """The comparisons in order."""
        return [Diff(cell.comparison) for cell in self._cells]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per comparison: labels, the corrected result, µs per step, p and Holm's p (None where untested)."""
        return frame_of(matrix_json.rows(self._cells))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.matrix/1); also written to ``path`` if one is given."""
        return written(matrix_json.to_json(self._cells), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The matrix as Markdown; also written to ``path`` if one is given."""
        return written(matrix.to_markdown(self._cells), path)

    def _repr_html_(self) -> str:
        return self.frame.to_html(float_format="{:,.1f}".format)

    def __repr__(self) -> str:
        results = ", ".join(f"{cell.comparison.test.label} {cell.result}" for cell in self._cells)
        return f"<Matrix against {self._cells[0].comparison.control.label}: {results}>" if self._cells else "<Matrix>"
