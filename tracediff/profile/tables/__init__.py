"""tables: further tables, made only where they are asked for. A table of files has a module of its own with ``SCHEMA``,
what its columns mean, and ``table``; those over ranks have their schemas in `over_ranks`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib import import_module

from tracediff.errors import TracediffError
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables import over_ranks
from tracediff.profile.tables.schema import TableSchema

ALL = "all"
"""Stands for every table."""
COLLECTIVES = "collectives"
"""The table of files that those over ranks are made with."""
OVER_RANKS = tuple(over_ranks.SCHEMAS)
"""Names of the tables that compare the ranks of a set."""
NAMES = (
    "launches",
    "critical",
    "streams",
    "gaps",
    "kernel_sizes",
    "copies",
    "rates",
    COLLECTIVES,
    *OVER_RANKS,
    "memory",
    "memory_holders",
    "synchronisations",
    "loading",
    "python",
    "host_modules",
    "counters",
)
"""Names of all tables, in the order in which they are shown."""
OF_FILES = tuple(name for name in NAMES if name not in OVER_RANKS)
"""Names of the tables of each file; a name is also that of its module."""


def table_schema(name: str) -> TableSchema:
    """What the table called ``name`` tells.

    Raises:
        TracediffError: there is none of that name.
    """
    if name in OVER_RANKS:
        return over_ranks.SCHEMAS[name]
    if name not in NAMES:
        nearest = get_close_matches(name, NAMES, 1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        raise TracediffError("table", f"unknown table {name!r}", f"{hint}tables are {', '.join(NAMES)}")
    found: TableSchema = import_module(f"tracediff.profile.tables.{name}").SCHEMA
    return found


def table_names(asked: Collection[str]) -> tuple[str, ...]:
    """The names that ``asked`` stands for, in the order in which they are shown: ``all`` is every one.

    Raises:
        TracediffError: an unknown name.
    """
    wanted = {table_schema(name).name for name in asked if name != ALL}
    return tuple(name for name in NAMES if name in wanted or ALL in asked)


def file_tables(names: Collection[str]) -> tuple[str, ...]:
    """The tables to make of each file for the tables ``names`` of a set."""
    needs_collectives = any(name in OVER_RANKS for name in names)
    return tuple(name for name in OF_FILES if name in names or (name == COLLECTIVES and needs_collectives))


def arguments_of(names: Iterable[str]) -> frozenset[str]:
    """The arguments of events that the tables ``names`` of files read beyond those of a profile."""
    return frozenset(a for name in names for a in table_schema(name).arguments)


def build_tables(context: Context, names: Iterable[str]) -> dict[str, TableRows]:
    """The tables ``names`` of one file."""
    return {name: import_module(f"tracediff.profile.tables.{name}").table(context) for name in names}
