"""tables: the analyses of ``--table``, built only on request. Each is a schema, the meaning of its columns, and the
function that builds it for a file or for all files of a set (those over ranks). Of a table of files, such as ``gaps``,
both are in one module and bear its name: the schema ``GAPS``, and ``gaps_rows``.
"""

from collections.abc import Collection, Iterable
from importlib import import_module
from types import ModuleType

from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.profile.events.context import Context
from tracediff.profile.model.profile import TableRows
from tracediff.profile.tables.schema import OVER_RANKS, TableSchema

ALL = "all"
"""Selects every table."""
COLLECTIVES = "collectives"
"""The table of files that the tables over ranks are built from."""
MODULES = {
    "launches": "gpu",
    "critical": "critical",
    "streams": "gpu",
    "gaps": "gpu",
    "idle": "host",
    "kernel_sizes": "gpu",
    "copies": "gpu",
    "rates": "rates",
    COLLECTIVES: "gpu",
    "memory": "memory",
    "memory_holders": "memory",
    "synchronisations": "host",
    "loading": "host",
    "python": "host",
    "host_modules": "host",
    "counters": "memory",
}
"""Table of each file → the module that has it, in the order in which they are shown."""
OF_FILES = tuple(MODULES)
"""Names of the tables of each file."""
NAMES = tuple(n for name in OF_FILES for n in ((name, *OVER_RANKS) if name == COLLECTIVES else (name,)))
"""Names of all tables, in the order in which they are shown: those over ranks after what they are built from."""


def table_schema(name: str) -> TableSchema:
    """The schema of the table called ``name``.

    Raises:
        TracediffError: there is no such table.
    """
    if name in OVER_RANKS:
        return OVER_RANKS[name]
    if name not in NAMES:
        hint = did_you_mean(name, NAMES, "")
        tables = f"tables: {', '.join(NAMES)}"
        raise TracediffError("--table", f"unknown table {quoted(name)}", f"{hint} {tables}" if hint else tables)
    schema: TableSchema = getattr(_module(name), name.upper())
    return schema


def _module(name: str) -> ModuleType:
    """The module that has the table of files called ``name``."""
    return import_module(f"tracediff.profile.tables.{MODULES[name]}")


def table_names(requested: Collection[str]) -> tuple[str, ...]:
    """The tables that ``requested`` names, in the order in which they are shown; ``all`` selects every table.

    Raises:
        TracediffError: an unknown name.
    """
    canonical = {table_schema(name).name for name in requested if name != ALL}
    return tuple(name for name in NAMES if name in canonical or ALL in requested)


def file_tables(names: Collection[str]) -> tuple[str, ...]:
    """The tables to build for each file so that a set has the tables ``names``."""
    needs_collectives = any(name in OVER_RANKS for name in names)
    return tuple(name for name in OF_FILES if name in names or (name == COLLECTIVES and needs_collectives))


def arguments_of(names: Iterable[str]) -> frozenset[str]:
    """The event arguments that the tables ``names`` need beyond those of every profile."""
    return frozenset(a for name in names for a in table_schema(name).arguments)


def build_tables(context: Context, names: Iterable[str]) -> dict[str, TableRows]:
    """The tables ``names`` of one file."""
    return {name: getattr(_module(name), f"{name}_rows")(context) for name in names}
