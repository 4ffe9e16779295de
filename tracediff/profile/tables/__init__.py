"""tables: further tables of a file, a module each, made only where they are asked for. Each module has ``SCHEMA``, what
its columns mean, and ``table``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from tracediff.errors import TracediffError
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables.schema import TableSchema

NAMES = (
    "launches",
    "critical",
    "streams",
    "gaps",
    "kernel_sizes",
    "copies",
    "rates",
    "collectives",
    "memory",
    "memory_holders",
    "synchronisations",
    "loading",
    "python",
    "host_modules",
    "counters",
)
"""All of them, in the order in which they are shown; a name is also that of its module."""


def table_schema(name: str) -> TableSchema:
    """What the table called ``name`` tells.

    Raises:
        TracediffError: there is none of that name.
    """
    if name not in NAMES:
        raise TracediffError("table", f"unknown table {name!r}", f"give {', '.join(NAMES)}")
    found: TableSchema = import_module(f"tracediff.profile.tables.{name}").SCHEMA
    return found


def table_names(wanted: Iterable[str]) -> tuple[str, ...]:
    """The names that ``wanted`` stands for: ``all`` is every one.

    Raises:
        TracediffError: an unknown name.
    """
    names = tuple(wanted)
    return NAMES if "all" in names else tuple(table_schema(name).name for name in names)


def arguments_of(names: Iterable[str]) -> frozenset[str]:
    """The arguments of events that the tables ``names`` read beyond those of a profile."""
    return frozenset(a for name in names for a in table_schema(name).arguments)


def build_tables(context: Context, names: Iterable[str]) -> dict[str, TableRows]:
    """The tables ``names`` of one file."""
    return {name: import_module(f"tracediff.profile.tables.{name}").table(context) for name in names}
