"""`Finding`: one reason for the change, and what shows it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from tracediff.diff.findings.kinds import FindingKind


@dataclass(frozen=True)
class Evidence:
    """One thing that shows a finding; times in µs per step, counts per step; None where the thing has none."""

    name: str
    control_count: float | None = None
    test_count: float | None = None
    control_us: float | None = None
    test_us: float | None = None


@dataclass(frozen=True, repr=False)
class Finding:
    """One reason for the change.

    Attributes:
        kind: what it has in common with all findings of its code.
        title: a line. detail: what it means here, in a sentence or two.
        delta_us: its part of the change in µs per step, 0 where it has none of its own.
        weight_us: what findings are sorted by: the part of the step's change that it can be.
        evidence: names, counts and times.
    """

    kind: FindingKind
    title: str
    detail: str
    _: KW_ONLY
    delta_us: float = 0.0
    weight_us: float = 0.0
    evidence: tuple[Evidence, ...] = field(default=())

    @property
    def code(self) -> str:
        """Its kind's stable short name, as in every output and in docs/findings.md."""
        return self.kind.code

    def __repr__(self) -> str:
        return f"<Finding {self.code}: {self.title}>"
