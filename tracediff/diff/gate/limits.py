"""Limits: the largest change that a check allows for a subject."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.profile.step_states import STATES

UNIT_OF = {
    "step": "us",
    "state": "us",
    "family": "us",
    "op": "us",
    "kernels": "count",
    "memory": "bytes",
    "graph-breaks": "count",
}
"""Kind of subject → its unit."""
NAMED = ("state", "family", "op")
"""Kinds of subject that need a name after a colon."""
FACTORS: dict[str, dict[str, float]] = {
    "us": {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "bytes": {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    "count": {"": 1},
}
EXAMPLES = {"us": "50us or 1ms", "bytes": "16MB", "count": "2"}
AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Zµ]*)", re.ASCII)
PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,15})?)\s*%", re.ASCII)
FRACTION = re.compile(r"0(?:\.\d{1,15})?", re.ASCII)
FORM = "write SUBJECT=RELATIVE or SUBJECT=RELATIVE,ABSOLUTE, such as family:gemm=5%,20us"


@dataclass(frozen=True)
class Limit:
    """The largest increase that is allowed for a subject; exceeded if both parts are exceeded.

    Attributes:
        subject: step, state:NAME, family:NAME, op:PATTERN, kernels, memory or graph-breaks.
        relative: fraction of control. absolute: µs per step, bytes or a count.
    """

    subject: str
    relative: float = 0.0
    absolute: float = 0.0

    @property
    def kind(self) -> str:
        """The subject without its name."""
        return self.subject.partition(":")[0]

    @property
    def name(self) -> str:
        """The name after the kind, empty if there is none."""
        return self.subject.partition(":")[2]

    @property
    def unit(self) -> str:
        """The unit of the subject: us, bytes or count."""
        return UNIT_OF[self.kind]

    def bound(self, control: float) -> float:
        """The largest increase within the limit, in the subject's unit."""
        return max(self.relative * control, self.absolute)


def parse_limit(text: str) -> Limit:
    """The limit of ``SUBJECT=RELATIVE[,ABSOLUTE]``; the subject may contain ``=``.

    Raises:
        TracediffError: any other text.
    """
    subject, mark, amounts = text.rpartition("=")
    if not mark:
        raise TracediffError(f"limit {quoted(text)}", "no limit given", FORM)
    relative, _, absolute = amounts.partition(",")
    return limit_of(subject, relative, absolute or "0")


def limit_of(subject: str, relative: str, absolute: str, source: str = "") -> Limit:
    """The limit on ``subject``; ``source`` precedes it in errors.

    Raises:
        TracediffError: an unknown subject, or an invalid part.
    """
    kind, mark, name = subject.partition(":")
    where = f"{source}limit on {quoted(subject)}"
    if kind == "step":
        raise TracediffError(where, "the step has its own limit", "set it with --max-regression and --min-delta")
    if kind not in UNIT_OF or bool(mark) != (kind in NAMED) or (mark and not name):
        hint = did_you_mean(kind, UNIT_OF, "") if kind not in UNIT_OF else ""
        subjects = "valid subjects: state:NAME, family:NAME, op:PATTERN, kernels, memory, graph-breaks"
        raise TracediffError(where, "unknown subject", f"{hint} {subjects}" if hint else subjects)
    if kind == "state" and name not in STATES and not name.startswith("op:"):
        hint = did_you_mean(name, STATES, f"valid states: {', '.join(STATES)}")
        raise TracediffError(where, "unknown state", hint)
    return Limit(subject, parse_relative(relative, where), parse_absolute(absolute, UNIT_OF[kind], where))


def parse_relative(text: str, where: str) -> float:
    """``3%`` or ``0.03`` as a fraction.

    Raises:
        TracediffError: any other text; also 3, which could mean 3 % or 300 %.
    """
    text = text.strip()
    if percent := PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if FRACTION.fullmatch(text):
        return float(text)
    raise TracediffError(
        where,
        f"{quoted(text)} is not a relative limit",
        "write it as 3% or 0.03 (an absolute part comes after a comma)",
    )


def parse_absolute(text: str, unit: str, where: str) -> float:
    """``50us``, ``16MB`` or ``2`` in ``unit``; 0 needs no unit.

    Raises:
        TracediffError: any other text.
    """
    amount = AMOUNT.fullmatch(text.strip())
    if amount and not amount[2] and not float(amount[1]):
        return 0.0
    if not amount or amount[2] not in FACTORS[unit]:
        raise TracediffError(where, f"{quoted(text.strip())} is not an absolute limit", f"write it as {EXAMPLES[unit]}")
    return float(amount[1]) * FACTORS[unit][amount[2]]
