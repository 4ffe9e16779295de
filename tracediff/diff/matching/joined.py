"""Joining what belongs together, two by two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)


class Joined(Generic[Member]):
    """Disjoint groups of members that were joined, directly or through others."""

    def __init__(self) -> None:
        self._root: dict[Member, Member] = {}

    def _find(self, member: Member) -> Member:
        root = self._root
        while (above := root.setdefault(member, member)) != member:
            root[member] = root[above]  # half the way for the next one
            member = above
        return member

    def join(self, one: Member, other: Member) -> None:
        """Put two members into one group."""
        self._root[self._find(one)] = self._find(other)

    def groups(self) -> list[list[Member]]:
        """All groups, in the order in which their first members were joined."""
        found: dict[Member, list[Member]] = defaultdict(list)
        for member in list(self._root):
            found[self._find(member)].append(member)
        return list(found.values())
