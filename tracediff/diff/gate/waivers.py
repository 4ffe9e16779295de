"""Waivers: breaches that are known and pass until a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Waiver:
    """Lets a broken limit pass.

    Attributes:
        pattern: of subjects, as a shell matches file names. reason: why. expires: its last day.
    """

    pattern: str
    reason: str
    expires: date

    def covers(self, subject: str) -> bool:
        """Whether it is about ``subject``."""
        return fnmatchcase(subject, self.pattern)

    def has_expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.expires


def waiver_for(subject: str, waivers: Sequence[Waiver]) -> Waiver | None:
    """The waiver about ``subject`` that lasts longest; it may have expired."""
    return max((w for w in waivers if w.covers(subject)), key=lambda w: w.expires, default=None)
