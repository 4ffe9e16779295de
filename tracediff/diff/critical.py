"""What changed on the critical path: of each operator, call and kernel the change of its time on the path beside that of all its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm

Average = tuple[int, Mapping[tuple[str, ...], list[int]]]
"""What `measure_average` gives of the measure critical: the denominator; (kind, name) → numerators on the path and in the period."""


@dataclass(frozen=True)
class CriticalChange:
    """One (kind, name); changes are test − control, numerators over the common scale.

    Attributes:
        total: of all its time in the period. critical: of its time on the path: what it did to the step.
    """

    kind: str
    name: str
    total: int
    critical: int


def critical_changes(control: Average, test: Average) -> tuple[int, tuple[CriticalChange, ...]]:
    """(scale, the rows of either side with the largest change on the path first); Σ critical = the change of the mean rank's period."""
    scale = lcm(control[0], test[0])
    sums: dict[tuple[str, ...], list[int]] = {}
    for sign, (denominator, rows) in ((-1, control), (1, test)):
        for key, (critical, total) in rows.items():
            entry = sums.setdefault(key, [0, 0])
            entry[0] += sign * (scale // denominator) * total
            entry[1] += sign * (scale // denominator) * critical
    changes = [CriticalChange(kind, name, total, critical) for (kind, name), (total, critical) in sums.items()]
    return scale, tuple(sorted(changes, key=lambda c: (-abs(c.critical), -abs(c.total), c.kind, c.name)))
