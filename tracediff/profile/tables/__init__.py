"""tables: the analyses of ``--table``, built only on request. Each table of a file has a module with ``SCHEMA``, the
meaning of its columns, and ``table``, which builds it. The tables over ranks have their schemas in `over_ranks`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module

from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.profile.context import Context
from tracediff.profile.model import TableRows
from tracediff.profile.tables import over_ranks
from tracediff.profile.tables.schema import TableSchema

ALL = "all"
"""Selects every table."""
COLLECTIVES = "collectives"
"""The table of files that the tables over ranks are built from."""
OVER_RANKS = tuple(over_ranks.SCHEMAS)
"""Names of the tables that compare the ranks of a set."""
NAMES = (
    "launches",
    "critical",
    "streams",
    "gaps",
    "idle",
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
"""Names of the tables of each file, which are also the names of their modules."""


def table_schema(name: str) -> TableSchema:
    """The schema of the table called ``name``.

    Raises:
        TracediffError: there is no such table.
    """
    if name in OVER_RANKS:
        return over_ranks.SCHEMAS[name]
    if name not in NAMES:
        hint = did_you_mean(name, NAMES, "")
        tables = f"tables: {', '.join(NAMES)}"
        raise TracediffError("--table", f"unknown table {quoted(name)}", f"{hint} {tables}" if hint else tables)
    found: TableSchema = import_module(f"tracediff.profile.tables.{name}").SCHEMA
    return found


def table_names(asked: Collection[str]) -> tuple[str, ...]:
    """The tables that ``asked`` names, in the order in which they are shown; ``all`` selects every table.

    Raises:
        TracediffError: an unknown name.
    """
    wanted = {table_schema(name).name for name in asked if name != ALL}
    return tuple(name for name in NAMES if name in wanted or ALL in asked)


def file_tables(names: Collection[str]) -> tuple[str, ...]:
    """The tables to build for each file so that a set has the tables ``names``."""
    needs_collectives = any(name in OVER_RANKS for name in names)
    return tuple(name for name in OF_FILES if name in names or (name == COLLECTIVES and needs_collectives))


def arguments_of(names: Iterable[str]) -> frozenset[str]:
    """The event arguments that the tables ``names`` need beyond those of every profile."""
    return frozenset(a for name in names for a in table_schema(name).arguments)


def build_tables(context: Context, names: Iterable[str]) -> dict[str, TableRows]:
    """The tables ``names`` of one file."""
    return {name: import_module(f"tracediff.profile.tables.{name}").table(context) for name in names}
