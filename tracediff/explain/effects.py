"""The split of a leaf's change into presence, amount, speed, time and exposure: exact, and of opposite sign for swapped
sides (docs/explanation.md has the formulas).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAME = 0.02
"""Logarithm of a ratio up to which two amounts, or two rates, are the same."""
MOSTLY = 0.5
"""Part of a whole from which it stands for the whole."""
LAUNCHED = ("threads", "tiles")
"""Units that do not tell how long a thread runs (K of a product, keys of attention)."""


@dataclass(frozen=True)
class Effects:
    """What a change in the step is made of, float64[l] ns per step; together it is the change on the path.

    Attributes:
        presence: work of one side only. amount: more or less work. speed: time per unit of work. time: longer or
            shorter where the amount is not known. exposure: the same work, now on or off the path.
    """

    presence: Floats
    amount: Floats
    speed: Floats
    time: Floats
    exposure: Floats

    @property
    def work(self) -> Floats:
        """All but exposure."""
        return self.presence + self.amount + self.speed + self.time


EFFECTS = tuple(field.name for field in fields(Effects))


def split(
    path: Floats, total: Floats, ratio: Floats, unit: NDArray[np.object_], reached: Floats, period: Floats
) -> Effects:
    """The effects of each leaf, see `Leaves`, of steps of ``period`` ns.

    Where time off the path is unknown, ``reached`` is the logarithm of how many times as many instances are on the
    path; elsewhere NaN.
    """
    whole, change = total.sum(axis=0), path[1] - path[0]
    exposed = np.divide(path.sum(axis=0), whole, out=np.zeros_like(whole), where=whole > 0)
    only_path = ~np.isnan(reached)
    finite = np.where(np.isfinite(reached), reached, 0.0)
    moved = np.where(np.isinf(reached), change, logarithmic_mean(path[0], path[1]) * finite)
    moved = np.clip(moved, -period[1], period[0])  # what a side does off its path lasts no longer than its period
    work = np.where(only_path, change - moved, exposed * (total[1] - total[0]))
    known = ratio > 0
    ratio = np.where(known, ratio, 1.0)
    log_ratio = np.log(ratio)
    one_sided = ~total.all(axis=0) & ~only_path
    amount = np.where(known & ~one_sided, exposed * logarithmic_mean(total[0], total[1]) * log_ratio, 0.0)
    launched = np.isin(unit, LAUNCHED) & (np.abs(log_ratio) > SAME)
    vague = ~known | launched | (unit == "events")
    rest = np.where(one_sided, 0.0, work - amount)
    return Effects(
        presence=np.where(one_sided, work, 0.0),
        amount=amount,
        speed=np.where(vague, 0.0, rest),
        time=np.where(vague, rest, 0.0),
        exposure=change - work,
    )


def logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(b − a) / ln(b / a), and a where they are equal; 0 where one is 0."""
    a, b = np.broadcast_arrays(a, b)
    positive = (a > 0) & (b > 0)
    equal = np.abs(a - b) < 1e-9 * np.maximum(a, b)
    apart = positive & ~equal
    ratio = np.divide(b, a, out=np.full(a.shape, np.e), where=apart)
    out = np.divide(b - a, np.log(ratio), out=np.zeros(a.shape), where=apart)
    return np.where(positive & equal, a, out)
