"""`Finding`: one cause of the change, and its evidence; `Coverage`: how much of the change all of them are."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from tracediff.diff.findings.kinds import FindingKind

CLOSE = 0.05
"""Part of the change, and of what was found, that may be in no finding without a word."""


@dataclass(frozen=True)
class Evidence:
    """One line of evidence; times in µs per step, counts per step; None where there is none. ``where`` says more of the
    name: what calls it, or in what it runs.
    """

    name: str
    control_count: float | None = None
    test_count: float | None = None
    control_us: float | None = None
    test_us: float | None = None
    where: str = ""

    @property
    def label(self) -> str:
        """The name, and where."""
        return f"{self.name} {self.where}" if self.where else self.name


@dataclass(frozen=True, repr=False)
class Finding:
    """One cause of the change, or one fact about it.

    Attributes:
        kind: what all findings of its code have in common.
        statement: the cause or fact in one line, with its numbers. detail: the evidence, then what to do.
        delta_us: its change in µs per step, 0 if it has no time of its own.
        weight_us: what findings are sorted by: the part of the step's change that it accounts for.
        evidence: names, counts and times.
        parts: findings that explain parts of this one's change, the largest first.
        runs: how many there are, if they are too few for a test.
        covers: the groups of work (indices into the comparison's) and states whose change it explains, to tell which
            findings are part of which.
    """

    kind: FindingKind
    statement: str
    detail: str
    _: KW_ONLY
    delta_us: float = 0.0
    weight_us: float = 0.0
    evidence: tuple[Evidence, ...] = field(default=())
    parts: tuple[Finding, ...] = field(default=())
    runs: str = ""
    covers: frozenset[int | str] = field(default=frozenset(), compare=False)

    @property
    def code(self) -> str:
        """The code of its kind, as in every output and in docs/findings.md."""
        return self.kind.code

    @property
    def title(self) -> str:
        """The statement, with the number of runs if they are too few for a test."""
        return f"{self.statement} ({self.runs})" if self.runs else self.statement

    def __repr__(self) -> str:
        return f"<Finding {self.code}: {self.title}>"


@dataclass(frozen=True)
class Coverage:
    """What all findings together account for, in µs per step.

    Attributes:
        found_us: the changes of their states and work, each counted once; of GPU work those of the busy states.
        change_us: the change of the step.
        largest: the state or family of GPU work that holds most of the rest, in words; empty if none does, and if the
            rest is small.
        largest_us: its change that is in no finding.
    """

    found_us: float
    change_us: float
    largest: str = ""
    largest_us: float = 0.0

    @property
    def rest_us(self) -> float:
        """The change of the step that is in no finding."""
        return self.change_us - self.found_us

    @property
    def is_close(self) -> bool:
        """Whether so little is in no finding that it needs no word."""
        return abs(self.rest_us) <= CLOSE * max(abs(self.found_us), abs(self.change_us))
