"""The texts of the page's static sections, which are also printed and searchable in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.changed_code import where
from tracediff.present.explanation_lines import ExplanationTable, explanation_table
from tracediff.present.sentences import hardware

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.source.touching import Touching


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
