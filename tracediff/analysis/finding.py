"""One finding about a set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Finding:
    """One cause of a step's time, or one fact about it.

    Attributes:
        code: stable short name (docs/analysis.md).
        title: the cause or fact in one line. detail: why, or what to do. evidence: names with their times.
    """

    code: str
    title: str
    detail: str
    evidence: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Finding {self.code}: {self.title}>"
