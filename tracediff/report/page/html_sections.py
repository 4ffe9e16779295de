"""The texts of the page's static sections, which are also printed and searchable in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediff.formatting import counts, time_unit
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.changed_code import where
from tracediff.present.explanation_lines import ExplanationTable, direction, explanation_table
from tracediff.present.sentences import hardware
from tracediff.report.page.render import found_by

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.formatting import Unit
    from tracediff.present.sections import Row
    from tracediff.source.touching import Touching

OTHERS = re.compile(r" → | \+ ")
"""What separates the operators of a row."""


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
    """A table of changes that add up to `whole`. Attributes: title: its heading. unit: of all times."""

    title: str
    unit: str
    rows: list[Line]
    whole: Line


def answer(comparison: Comparison) -> dict[str, Any]:
    """The answer, and every caution; the labels of both sides."""
    return {
        "control": comparison.control.label,
        "test": comparison.test.label,
        "result": comparison.verdict.result,
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
        rows=[_line(row, unit, largest, row.name) for row in rows],
        total=_line(total, unit, abs(total.delta_us), total.name),
        left_over_ns=f"{step.residual / comparison.scale:g}",
    )


def changed_work(comparison: Comparison, top: int = 10) -> Changes:
    """The ``top`` changes of the work by operator, the others and the whole."""
    work = sections.changed_work(comparison, top)
    largest = max((abs(row.delta_us) for row in work.parts), default=0.0)
    finds = [*(_searched(row.name) for row in work.rows), ""]
    return Changes(
        title=work.title,
        unit=work.unit.name,
        rows=[_line(row, work.unit, largest, find) for row, find in zip(work.parts, finds, strict=False)],
        whole=_line(work.whole, work.unit, abs(work.whole.delta_us), ""),
    )


def _searched(name: str) -> str:
    """What finds the matched work of a row: its first operator, else its family."""
    if name.startswith("several "):
        return name.split()[1]
    return OTHERS.split(name)[0].removesuffix(" kernels")


def _line(row: Row, unit: Unit, largest_us: float, find: str) -> Line:
    """``row`` in ``unit``; the bar of a change of ``largest_us`` is as wide as its cell."""
    return Line(
        name=row.name,
        find=found_by(find),
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


def changed_code(comparison: Comparison) -> list[tuple[Touching, str]]:
    """The changed lines that changed work runs for, each with what it is called."""
    found = comparison.changed_code
    return [(place, where(place)) for place in found.touching] if found else []


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
