"""What structs are made of: `FrozenStruct`, the base of those that do not change, and `Pair`, what the two sides of a
comparison have of the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, Self, TypeVar, dataclass_transform

from msgspec import Struct, field
from msgspec.structs import replace


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenStruct(Struct, frozen=True):
    """A struct whose fields are set when it is made, and not again."""

    def replace(self, **changes: Any) -> Self:
        """The same with ``changes`` of its fields."""
        return replace(self, **changes)


T = TypeVar("T")
Made = TypeVar("Made")
Number = TypeVar("Number", int, float)
Key = TypeVar("Key", bound=Hashable)


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


class Timed:
    """What has a ``time`` on both sides."""

    __slots__ = ()

    @property
    def delta(self) -> int:
        """test − control time."""
        delta: int = self.time.delta  # type: ignore[attr-defined]
        return delta


class Amounts(Timed, FrozenStruct):
    """The time of the same thing on both sides, and how often it occurs; numerators over a comparison's scale."""

    time: Pair[int] = NONE
    count: Pair[int] = NONE


def total(pairs: Iterable[Pair[Number]]) -> Pair[Number]:
    """The sum of ``pairs``, side by side."""
    rows = list(pairs)
    return Pair(sum(row.control for row in rows), sum(row.test for row in rows))


def side_sums(parts: Iterable[tuple[Key, int, tuple[int, ...]]]) -> dict[Key, tuple[Pair[int], ...]]:
    """Key → the sums of the amounts of ``parts``: (key, 0 for control or 1 for test, amounts)."""
    sums: dict[Key, list[list[int]]] = {}
    for key, side, amounts in parts:
        if key not in sums:
            sums[key] = [[0, 0] for _ in amounts]
        for both, amount in zip(sums[key], amounts, strict=True):
            both[side] += amount
    return {key: tuple(Pair(*both) for both in every) for key, every in sums.items()}
