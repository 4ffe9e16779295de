"""`LoadOptions`: how sets are read, said once for the engine, the library and both front ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.selection import Selection


@dataclass(frozen=True)
class SetOptions:
    """What is used of one set.

    Attributes:
        label: its name in reports; None for the last part of its path.
        ranks: only these; None for all.
        selection: the steps used.
    """

    label: str | None = None
    ranks: frozenset[int] | None = None
    selection: Selection = field(default_factory=Selection)


@dataclass(frozen=True)
class LoadOptions:
    """How sets are read.

    Attributes:
        sets: one for each set; none for the defaults.
        step_marker: regular expression; annotations that match are the steps, None for ProfilerStep#N.
        families: rules that say which family of work a name belongs to.
        tables: names of further tables to make (`tracediff.profile.tables.NAMES`), ``all`` for every one; snapshots
            have those that they were made with.
        jobs: processes to read files with; None for as many as there are cores, and none for small files.
    """

    sets: tuple[SetOptions, ...] = ()
    step_marker: str | None = None
    families: Families = DEFAULT
    tables: tuple[str, ...] = ()
    jobs: int | None = None
