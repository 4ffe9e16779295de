"""`Gate` → the JSON document of schema ``tracediff.check/1`` (docs/reference/check.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from tracediff.diff.gate.judge import Gate, Judged
from tracediff.report.check_text import explanation, sentence
from tracediff.report.to_json import tables_of

SCHEMA = "tracediff.check/1"


def document(gate: Gate) -> dict[str, Any]:
    """The document as plain Python values."""
    comparison = gate.comparison
    return {
        "schema": SCHEMA,
        "result": gate.result,
        "exit_code": gate.exit_code,
        "sentence": sentence(gate),
        "control": {"label": comparison.control.label, "runs": comparison.control.runs},
        "test": {"label": comparison.test.label, "runs": comparison.test.runs},
        "verdict": vars(comparison.verdict),
        "comparability": {
            "level": comparison.comparability.level,
            "reasons": [
                {"code": r.code, "message": r.message, "control": r.control, "test": r.test}
                for r in comparison.comparability.reasons
            ],
            "stopping": [r.code for r in gate.stopping],
        },
        "limits": [_limit(judged) for judged in gate.judged],
        **({"tables": tables_of(comparison)} if comparison.tables else {}),
    }


def to_json(gate: Gate) -> str:
    """The document as indented text, with a new line at its end."""
    return msgspec.json.format(msgspec.json.encode(document(gate)), indent=1).decode() + "\n"


def _limit(judged: Judged) -> dict[str, Any]:
    limit, figure, waiver = judged.limit, judged.figure, judged.waiver
    return {
        "subject": figure.subject,
        "limit": limit.subject,
        "unit": limit.unit,
        "control": figure.control,
        "test": figure.test,
        "change": None if figure.control is None or figure.test is None else figure.test - figure.control,
        "ratio": figure.test / figure.control if figure.control and figure.test is not None else None,
        "interval": figure.interval,
        "relative": limit.relative,
        "absolute": limit.absolute,
        "bound": judged.bound,
        "result": judged.result,
        "why": judged.why or None,
        "settle": judged.settle or None,
        "explanation": explanation(judged),
        "waiver": {"pattern": waiver.pattern, "reason": waiver.reason, "expires": waiver.expires.isoformat()}
        if waiver
        else None,
    }
