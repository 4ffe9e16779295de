"""`Pair`: what the two sides of a comparison have of the same thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
Made = TypeVar("Made")
Number = TypeVar("Number", int, float)


class Pair(NamedTuple, Generic[T]):
    """What control has, and what test has."""

    control: T
    test: T

    def map(self, make: Callable[[T], Made]) -> Pair[Made]:
        """What ``make`` makes of both."""
        return Pair(make(self.control), make(self.test))

    @property
    def swapped(self) -> Pair[T]:
        """The same with test as control."""
        return Pair(self.test, self.control)

    def plus(self, side: int, amount: T) -> Pair[T]:
        """The same with ``amount`` more on control (``side`` 0) or on test (1)."""
        if side == 0:
            return Pair(self.control + amount, self.test)  # type: ignore[operator]
        return Pair(self.control, self.test + amount)  # type: ignore[operator]

    @property
    def delta(self) -> T:
        """test − control, of numbers."""
        return self.test - self.control  # type: ignore[operator, no-any-return]


SIDES = Pair("control", "test")
"""The names of the sides."""
NONE = Pair(0, 0)
"""No time and no events on either side."""


def total(pairs: Iterable[Pair[Number]]) -> Pair[Number]:
    """The sum of ``pairs``, side by side."""
    rows = list(pairs)
    return Pair(sum(row.control for row in rows), sum(row.test for row in rows))
