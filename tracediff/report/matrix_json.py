"""A matrix of comparisons → the JSON document of schema ``tracediff.matrix/1`` (docs/reference/matrix.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from tracediff.diff.preflight import CAUTION, OK, REFUSED
from tracediff.diff.verdict import RESULTS
from tracediff.explain.matrix import Cell
from tracediff.report import json_types
from tracediff.report.json_text import JsonObject, json_text, one_of
from tracediff.report.rows import TableRows
from tracediff.report.to_json import tables_of, verdict_of


class MatrixComparability(JsonObject):
    """The preflight of one comparison, in codes."""

    level: Annotated[str, one_of(OK, CAUTION, REFUSED)]
    """refused: the sides cannot be compared"""
    codes: list[str]
    """stable codes of what differs (docs/preflight.md)"""


class MatrixComparison(JsonObject):
    """One comparison of the matrix."""

    control: str
    """label of the control set"""
    test: str
    """label of the test set"""
    result: Annotated[str, one_of(*RESULTS)]
    """verdict corrected for the number of comparisons"""
    p_adjusted: float | None
    """Holm's p-value over all tested comparisons; null where untested"""
    verdict: json_types.DiffVerdict
    """the verdict of this comparison by itself"""
    comparability: MatrixComparability
    tables: dict[str, list[json_types.Row]] | UnsetType = UNSET
    """tables of --table by name, as in tracediff.diff/1; absent where none was requested"""


class MatrixDocument(JsonObject):
    """Several sets compared with one control, or with each other."""

    schema: Literal["tracediff.matrix/1"]
    comparisons: list[MatrixComparison]


def document(cells: Sequence[Cell]) -> MatrixDocument:
    """The document of a matrix."""
    return MatrixDocument("tracediff.matrix/1", [_comparison(cell) for cell in cells])


def to_json(cells: Sequence[Cell]) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(cells))


def rows(cells: Sequence[Cell]) -> TableRows:
    """A row per comparison, with the numbers of its verdict."""
    numbers = ("control_us", "test_us", "delta_us", "p_value")
    values = []
    for found in document(cells).comparisons:
        own = tuple(getattr(found.verdict, name) for name in numbers)
        values.append((found.control, found.test, found.result, *own, found.p_adjusted))
    return TableRows(("control", "test", "result", *numbers, "p_adjusted"), values)


def _comparison(cell: Cell) -> MatrixComparison:
    comparison = cell.comparison
    found = comparison.comparability
    return MatrixComparison(
        control=comparison.control.label,
        test=comparison.test.label,
        result=cell.result,
        p_adjusted=cell.p_adjusted,
        verdict=verdict_of(comparison.verdict),
        comparability=MatrixComparability(found.level, [r.code for r in found.reasons]),
        tables=tables_of(comparison) if comparison.tables else UNSET,
    )
