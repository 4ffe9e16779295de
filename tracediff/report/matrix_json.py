"""A matrix of comparisons → the JSON document of schema ``tracediff.matrix/1`` (docs/reference/matrix.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tracediff.diff.preflight import CAUTION, OK, REFUSED
from tracediff.diff.verdict import RESULTS
from tracediff.explain.matrix import Cell
from tracediff.report import json_types
from tracediff.report.json_text import json_text, one_of
from tracediff.report.to_json import tables_of, verdict_of


class MatrixComparability(Struct):
    """The preflight of one comparison, in codes."""

    level: Annotated[str, one_of("refused: the sides cannot be compared", OK, CAUTION, REFUSED)]
    codes: Annotated[list[str], Meta(description="stable codes of what differs (docs/preflight.md)")]


class MatrixComparison(Struct):
    """One comparison of the matrix."""

    control: Annotated[str, Meta(description="label of the control set")]
    test: Annotated[str, Meta(description="label of the test set")]
    result: Annotated[str, one_of("verdict corrected for the number of comparisons", *RESULTS)]
    p_adjusted: Annotated[
        float | None, Meta(description="Holm's p-value over all tested comparisons; null where untested")
    ]
    verdict: Annotated[json_types.Verdict, Meta(description="the verdict of this comparison by itself")]
    comparability: MatrixComparability
    tables: Annotated[
        dict[str, list[json_types.Row]] | UnsetType,
        Meta(description="tables of --table by name, as in tracediff.diff/1; absent where none was requested"),
    ] = UNSET


class MatrixDocument(Struct):
    """Several sets compared with one control, or with each other."""

    schema: Literal["tracediff.matrix/1"]
    comparisons: list[MatrixComparison]


def document(cells: Sequence[Cell]) -> MatrixDocument:
    """The document of a matrix."""
    return MatrixDocument("tracediff.matrix/1", [_comparison(cell) for cell in cells])


def to_json(cells: Sequence[Cell]) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(cells))


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
