"""Waivers: permission for limits to be exceeded until a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Waiver:
    """Permission for limits to be exceeded until a date."""

    pattern: str
    """pattern of the subjects that it covers"""
    reason: str
    expires: date
    """last day on which it applies"""

    def covers(self, subject: str) -> bool:
        """Whether it applies to ``subject``."""
        return fnmatchcase(subject, self.pattern)

    def has_expired(self, today: date) -> bool:
        """Whether its last day has passed."""
        return today > self.expires


def waiver_for(subject: str, waivers: Sequence[Waiver]) -> Waiver | None:
    """The waiver of ``subject`` that expires last, even if it has expired; None without one."""
    return max((w for w in waivers if w.covers(subject)), key=lambda w: w.expires, default=None)
