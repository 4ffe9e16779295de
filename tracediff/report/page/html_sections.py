"""The texts of the page's static sections, which are also printed and searchable in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediff.formatting import counts, time_unit
from tracediff.present import sections
from tracediff.present.answer import answer_of, result_of
from tracediff.present.explanation_lines import ExplanationTable, direction, explanation_table
from tracediff.present.sentences import hardware
from tracediff.report.page.render import found_by

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.formatting import Unit
    from tracediff.present.sections import Row

SECTIONS = {
    "step": "Where the step went",
    "changes": "Largest changes",
    "why": "Why",
    "flame": "Flame graph",
    "work": "Matched work",
    "timeline": "Timeline",
    "distributions": "Steps and runs",
    "ranks": "Ranks",
    "tables": "Tables",
    "preflight": "Preflight and health",
    "health": "Health of the traces",
    "origin": "How this report was made",
}
"""Id of a section of a comparison's report → its title."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a table of times.

    Attributes:
        name: what it is about. find: what a link to it looks for.
        counts, control, test, change: its numbers. word: significance of the change, may be empty.
        direction: of the change, ``slower``, ``faster`` or empty. width: of the bar that shows it, in CSS.
    """

    name: str
    find: str
    counts: str
    control: str
    test: str
    change: str
    word: str
    direction: str
    width: str


@dataclass(frozen=True, kw_only=True)
class StepTable:
    """The step account. Attributes: unit: of all times. left_over_ns: time that the states do not explain."""

    unit: str
    rows: list[Line]
    total: Line
    left_over_ns: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """A table of changes. Attributes: title: its heading. unit: of all times."""

    title: str
    unit: str
    rows: list[Line]


def answer(comparison: Comparison) -> dict[str, Any]:
    """The answer, and every caution; the labels of both sides."""
    return {
        "control": comparison.control.label,
        "test": comparison.test.label,
        "result": result_of(comparison),
        "answer": answer_of(comparison),
        "cautions": sections.caution_lines(comparison),
        "doubt": sections.doubt(comparison),
    }


def step_table(comparison: Comparison) -> StepTable:
    """Where the step went."""
    step, us = comparison.step_time, comparison.us
    rows = sections.step_rows(comparison)
    unit = time_unit([us(step.control), us(step.test)])
    largest = max((abs(r.delta_us) for r in rows), default=0.0)
    total = sections.Row("step", us(step.control), us(step.test), us(step.delta))
    return StepTable(
        unit=unit.name,
        rows=[_line(row, unit, largest) for row in rows],
        total=_line(total, unit, abs(total.delta_us)),
        left_over_ns=f"{step.residual / comparison.scale:g}",
    )


def largest_changes(comparison: Comparison, top: int = 10) -> list[Changes]:
    """The ``top`` changes of matched work, and on the host."""
    tables = []
    for shown in sections.changes(comparison, None, "change", top):
        if shown.rows:
            unit = time_unit([v for r in shown.rows for v in (r.control_us, r.test_us)])
            largest = max(abs(r.delta_us) for r in shown.rows)
            lines = [_line(row, unit, largest, find=row.operator or row.kernels) for row in shown.rows]
            tables.append(Changes(title=shown.title, unit=unit.name, rows=lines))
    return tables


def _line(row: Row, unit: Unit, largest_us: float, find: str = "") -> Line:
    """``row`` in ``unit``; the bar of a change of ``largest_us`` is as wide as its cell."""
    return Line(
        name=row.name,
        find=found_by(find or row.name),
        counts=counts(row.control_count, row.test_count),
        control=unit.plain(row.control_us),
        test=unit.plain(row.test_us),
        change=unit.signed(row.delta_us),
        word=row.word,
        direction=direction(row.delta_us),
        width=f"{100 * abs(row.delta_us) / largest_us:.1f}%" if row.delta_us else "0",
    )


def explanation(comparison: Comparison) -> ExplanationTable | None:
    """Lines that add up to the step's change; what a line names is a link to its work."""
    return None if comparison.explanation is None else explanation_table(comparison.explanation)


def origin(comparison: Comparison, versions: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Rows (name, control, test) on how the report was made; versions are in the control column."""
    sides = zip(set_facts(comparison.control), set_facts(comparison.test), strict=True)
    return [*((what, value, "") for what, value in versions), *((what, c, t) for (what, c), (_, t) in sides)]


def set_facts(side: Side) -> list[tuple[str, str]]:
    """What the origin section says about a set: (name, value)."""
    return [
        ("torch in the traces", side.torch or "not recorded"),
        ("devices", _devices(side)),
        ("runs", str(side.runs)),
        ("files", _files(side)),
    ]


def _devices(side: Side) -> str:
    return ", ".join(side.gpu) or ("not recorded" if side.has_gpu else hardware(side))


def _files(side: Side) -> str:
    shown = ", ".join(side.files[:8])
    return shown if len(side.files) <= 8 else f"{shown} and {len(side.files) - 8:,} more"
