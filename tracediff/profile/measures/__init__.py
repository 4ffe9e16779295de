"""measures: further tables of a file, a module each, made only where they are asked for. Each module has ``MEASURE``, what its columns mean, and ``table``."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from tracediff.errors import TracediffError
from tracediff.profile.measures.measure import Measure, Seen
from tracediff.profile.profile import MeasureTable

NAMES = (
    "launches", "critical", "streams", "gaps", "kernel_sizes", "copies", "rates", "collectives", "memory", "memory_holders",
    "synchronisations", "loading", "python", "host_modules", "counters",
)  # fmt: skip
"""All of them, in the order in which they are shown; a name is also that of its module."""


def measure(name: str) -> Measure:
    """What the measure called ``name`` tells.

    Raises:
        TracediffError: there is none of that name.
    """
    if name not in NAMES:
        raise TracediffError("table", f"unknown table {name!r}", f"give {', '.join(NAMES)}")
    found: Measure = import_module(f"tracediff.profile.measures.{name}").MEASURE
    return found


def named(wanted: Iterable[str]) -> tuple[str, ...]:
    """The names that ``wanted`` stands for: ``all`` is every one.

    Raises:
        TracediffError: an unknown name.
    """
    names = tuple(wanted)
    return NAMES if "all" in names else tuple(measure(name).name for name in names)


def arguments_of(names: Iterable[str]) -> frozenset[str]:
    """The arguments of events that the measures ``names`` read beyond those of a profile."""
    return frozenset(a for name in names for a in measure(name).arguments)


def tables(seen: Seen, names: Iterable[str]) -> dict[str, MeasureTable]:
    """The tables of the measures ``names``."""
    return {name: import_module(f"tracediff.profile.measures.{name}").table(seen) for name in names}
