"""Groups: work of both sides that is the same, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.diff.matching.items import Item

LEVELS = (
    "exact",
    "op",
    "module",
    "fusion",
    "sequence",
    "sequence~family",
    "family",
    "same module",
    "same family",
    "added",
    "removed",
)
"""How a group was matched, in order of trust; docs/matching.md explains each."""

PLACED_AS = {"module": "same module", "family": "same family"}
"""What a level is called where its group is too wide to name a partner: such work is placed, not matched."""
PLACED = frozenset(PLACED_AS.values())

TURNED = {"added": "removed", "removed": "added"}
"""Levels that change when the sides are swapped."""

Match = tuple[str, list[Item], list[Item], tuple[int, int] | None]
"""(level, items of the control, items of the test, the paired operators that all of them hang below)."""


@dataclass
class Leftover:
    """What no level has placed yet; items keep their order."""

    control: list[Item]
    test: list[Item]

    def take(self, matches: list[Match]) -> None:
        """Remove what ``matches`` placed."""
        placed = {id(item) for match in matches for item in (*match[1], *match[2])}
        self.control = [i for i in self.control if id(i) not in placed]
        self.test = [i for i in self.test if id(i) not in placed]
