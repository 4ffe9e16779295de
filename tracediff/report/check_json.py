"""`Gate` → the JSON document of schema ``tracediff.check/1`` (docs/reference/check.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from tracediff.diff.gate.judge import (
    EXIT_CODES,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    WAIVED,
    Gate,
    Judged,
)
from tracediff.diff.gate.limits import FACTORS
from tracediff.diff.gate.waivers import Waiver
from tracediff.diff.preflight import CAUTION, OK, REFUSED
from tracediff.present.check import explanation, sentence
from tracediff.report import json_types
from tracediff.report.json_text import JsonObject, filled, json_text, one_of
from tracediff.report.to_json import reasons_of, tables_of, verdict_of


class CheckedSet(JsonObject):
    """One side."""

    label: str
    """name of the set in reports"""
    runs: int
    """number of runs"""


class GateComparability(JsonObject):
    """The preflight, and which of its reasons stop the check."""

    level: Annotated[str, one_of(OK, CAUTION, REFUSED)]
    """refused: the sides cannot be compared"""
    reasons: list[json_types.ReasonRow]
    """what differs; empty if nothing does"""
    stopping: list[str]
    """codes of the reasons that stopped the check"""


class LimitResult(JsonObject):
    """One limit, and the figure that was judged against it."""

    subject: str
    """what was judged: step, state:NAME, family:NAME, op:NAME, kernels, memory, graph-breaks"""
    limit: str
    """the subject as given; for operators the pattern"""
    unit: Annotated[str, one_of(*FACTORS)]
    """µs per step, bytes, or a count"""
    control: float | None
    """in the unit; null where unknown"""
    test: float | None
    """in the unit; null where unknown"""
    change: float | None
    """test − control; null if a side is unknown"""
    ratio: float | None
    """test / control; null where control is 0 or a side is unknown"""
    interval: tuple[float, float] | None
    """95 % confidence interval of the relative change: 0.05 is 5 %; null where untested"""
    relative: float
    """relative part of the limit: 0.05 is 5 %"""
    absolute: float
    """absolute part of the limit, in the unit"""
    bound: float | None
    """largest allowed growth, in the unit: the larger of the two parts; null if control is unknown"""
    result: Annotated[str, one_of(PASS, REGRESSION, INCONCLUSIVE, WAIVED)]
    """result of this limit"""
    why: str | None
    """reason for the result beyond the figures"""
    settle: str | None
    """what would resolve an inconclusive result"""
    explanation: str
    """the result and its reasons in one sentence"""
    waiver: Waiver | None
    """the waiver that covers an exceeded limit, even if it has expired"""


class CheckDocument(JsonObject):
    """A comparison judged against limits. null where something is unknown or was not tested."""

    schema: Literal["tracediff.check/1"]
    result: Annotated[str, one_of(*EXIT_CODES)]
    """result of the check"""
    exit_code: int
    """0 pass, 1 regression, 3 inconclusive or not comparable"""
    sentence: str
    """the result in a sentence"""
    control: CheckedSet
    test: CheckedSet
    verdict: json_types.DiffVerdict
    comparability: GateComparability
    limits: list[LimitResult]
    """every limit, the step first"""
    tables: dict[str, list[json_types.Row]] | UnsetType = UNSET
    """tables of --table by name, as in tracediff.diff/1; absent where none was requested"""


def document(gate: Gate) -> CheckDocument:
    """The document of a check."""
    comparison = gate.comparison
    return CheckDocument(
        schema="tracediff.check/1",
        result=gate.result,
        exit_code=gate.exit_code,
        sentence=sentence(gate),
        control=filled(CheckedSet, comparison.control),
        test=filled(CheckedSet, comparison.test),
        verdict=verdict_of(comparison.verdict),
        comparability=GateComparability(
            comparison.comparability.level,
            reasons_of(comparison.comparability.reasons),
            [r.code for r in gate.stopping],
        ),
        limits=[_limit(judged) for judged in gate.judged],
        tables=tables_of(comparison) if comparison.tables else UNSET,
    )


def to_json(gate: Gate) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(gate))


def _limit(judged: Judged) -> LimitResult:
    limit, figure = judged.limit, judged.figure
    return filled(
        LimitResult,
        judged,
        subject=figure.subject,
        limit=limit.subject,
        unit=limit.unit,
        control=figure.control,
        test=figure.test,
        change=None if figure.control is None or figure.test is None else figure.test - figure.control,
        ratio=figure.test / figure.control if figure.control and figure.test is not None else None,
        interval=figure.interval,
        relative=limit.relative,
        absolute=limit.absolute,
        why=judged.why or None,
        settle=judged.settle or None,
        explanation=explanation(judged),
    )
