"""Findings: the facts and lines of an explanation as one list, as earlier versions gave them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.formatting import change, signed_time

if TYPE_CHECKING:
    from tracediff.explain.explanation import Cause, Explanation


@dataclass(frozen=True)
class Evidence:
    """One line of evidence; times in µs per step, counts per step; None where there is none."""

    name: str
    control_count: float | None = None
    test_count: float | None = None
    control_us: float | None = None
    test_us: float | None = None


@dataclass(frozen=True, repr=False)
class Finding:
    """One cause of a step's time or change, or one fact about it.

    Attributes:
        code: stable short name: of a fact its own, of a cause its effect (docs/explanation.md).
        title: the cause or fact in one line. detail: why, or what to do; may be empty.
        delta_us: what of the step's change it accounts for, in µs per step; 0 for a fact.
        evidence: names, counts and times.
    """

    code: str
    title: str
    detail: str = ""
    delta_us: float = 0.0
    evidence: tuple[Evidence, ...] = ()

    def __repr__(self) -> str:
        return f"<Finding {self.code}: {self.title}>"


def findings_of(explanation: Explanation) -> tuple[Finding, ...]:
    """The facts, then the causes in the order of the explanation's lines."""
    return (*(Finding(f.code, f.text) for f in explanation.facts), *map(_of_cause, explanation.causes))


def _of_cause(cause: Cause) -> Finding:
    control, test = (float(n) for n in cause.node.count)
    what = f" ({cause.what})" if cause.what else ""
    reasons = "".join(f"{reason.text[:1].upper()}{reason.text[1:]}. " for reason in cause.reasons)
    return Finding(
        code=cause.effect,
        title=f"{cause.label}: {change(cause.control_us, cause.test_us)} per step{what}",
        detail=f"{reasons}It accounts for {signed_time(cause.delta_us)} of the step's change.",
        delta_us=cause.delta_us,
        evidence=(Evidence(cause.label, control, test, cause.control_us, cause.test_us),),
    )
