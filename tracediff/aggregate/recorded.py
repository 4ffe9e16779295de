"""`Recorded`: what an entry of a history states of its snapshot."""

from __future__ import annotations

from typing import Annotated

import msgspec

LONGEST_NAME = 200
"""Characters of a name of an entry."""
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class Recorded(msgspec.Struct, frozen=True):
    """Of what a set was recorded.

    Attributes:
        commit: of the code, a hash or another name. committed: its time, in s since 1970.
        machine: what it ran on. configuration: what ran. Sets of one machine and configuration are comparable.
    """

    commit: Name
    committed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
    machine: Name
    configuration: Name
