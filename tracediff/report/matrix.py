"""A matrix of comparisons → terminal, Markdown, and the JSON document of schema ``tracediff.matrix/1``
(docs/reference/matrix.md).
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, UnsetType
from rich.console import Console, Group

from tracediff.diff.verdict import RESULTS, DiffVerdict
from tracediff.explain.compare import Cell
from tracediff.formatting import PERCENT, p_value, time_unit
from tracediff.present.plain_text import Table
from tracediff.report import json_types
from tracediff.report.escape import escaped
from tracediff.report.json_text import JsonObject, filled, json_text, one_of
from tracediff.report.rows import OutputTable
from tracediff.report.table_terminal import print_screen, remarks, to_rich
from tracediff.report.to_json import tables_of
from tracediff.report.to_markdown import table_lines

HEAD = ("control", "test", "runs", "control", "test", "change", "95 % interval", "p", "result", "cautions")
UNPROFILED = "times without the profiler"
"""Remark where the verdict believes these."""


def text_rows(cells: Sequence[Cell]) -> tuple[str, list[list[str]]]:
    """(unit of the times, one row of texts per comparison)."""
    unit = time_unit([us for cell in cells for us in cell.comparison.tested.medians])
    return unit.name, [_row(cell, unit.plain) for cell in cells]


def _row(cell: Cell, plain: Any) -> list[str]:
    c, v = cell.comparison, cell.comparison.verdict
    (control, test), ci95 = c.tested.medians, c.tested.ci95_us
    interval = " … ".join(PERCENT.signed_text(end / control) for end in ci95) if ci95 and control else "–"
    remarks = [*(r.code for r in c.comparability.reasons), *([UNPROFILED] if c.believed_unprofiled else [])]
    return [
        c.control.label,
        c.test.label,
        f"{v.n_control} : {v.n_test}",
        plain(control),
        plain(test),
        PERCENT.signed_text(test / control - 1) if control else "–",
        interval,
        p_value(cell.p_adjusted),
        "not comparable" if c.was_refused else cell.result,
        ", ".join(dict.fromkeys(remarks)),
    ]


def show(cells: Sequence[Cell], console: Console) -> None:
    """Print the table, and the cautions below."""
    unit, body = text_rows(cells)
    has_one_control = len({row[0] for row in body}) == 1
    names = [row[1] if has_one_control else f"{row[0]} → {row[1]}" for row in body]
    sets = Table(
        title=f"control: {body[0][0]}, {body[0][3]} {unit}" if has_one_control else "every pair",
        heads=("test" if has_one_control else "control → test", "result", unit, *HEAD[5:8], HEAD[2]),
        texts=2,
        rows=tuple((name, row[8], *row[4:8], row[2]) for name, row in zip(names, body, strict=True)),
    )
    cautions = [f"{name}: {row[-1]}" for name, row in zip(names, body, strict=True) if row[-1]]
    print_screen(console, Group(to_rich(sets), *remarks("Compared with caution", cautions)))


def to_markdown(cells: Sequence[Cell]) -> str:
    """A GitHub-flavoured table."""
    unit, body = text_rows(cells)
    head = [f"{name} ({unit})" if k in (3, 4) else name for k, name in enumerate(HEAD)]
    lines = table_lines(head, "llrrrrrrll", [[escaped(cell) for cell in row] for row in body])
    return "\n".join(lines) + "\n"


class MatrixComparability(json_types.Preflight):
    """The preflight of one comparison, in codes."""

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
    verdict: DiffVerdict
    """the verdict of this comparison by itself"""
    comparability: MatrixComparability
    tables: dict[str, list[json_types.Row]] | UnsetType = UNSET
    """tables of --table by name, as in tracediff.diff/1; absent where none was requested"""


class MatrixDocument(JsonObject, tag_field="schema", tag="tracediff.matrix/1"):
    """Several sets compared with one control, or with each other."""

    comparisons: list[MatrixComparison]


def document(cells: Sequence[Cell]) -> MatrixDocument:
    """The document of a matrix."""
    return MatrixDocument([_comparison(cell) for cell in cells])


def to_json(cells: Sequence[Cell]) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(cells))


def rows(cells: Sequence[Cell]) -> OutputTable:
    """A row per comparison, with the numbers of its verdict."""
    numbers = ("control_us", "test_us", "delta_us", "p_value")
    values = []
    for comparison in document(cells).comparisons:
        own = tuple(getattr(comparison.verdict, name) for name in numbers)
        values.append((comparison.control, comparison.test, comparison.result, *own, comparison.p_adjusted))
    return OutputTable(("control", "test", "result", *numbers, "p_adjusted"), values)


def _comparison(cell: Cell) -> MatrixComparison:
    comparison = cell.comparison
    comparability = comparison.comparability
    return filled(
        MatrixComparison,
        cell,
        control=comparison.control.label,
        test=comparison.test.label,
        verdict=comparison.verdict,
        comparability=MatrixComparability(comparability.level, [r.code for r in comparability.reasons]),
        tables=tables_of(comparison) if comparison.tables else UNSET,
    )
