"""The accounts of a file as a snapshot holds them. A column is a list of integers: it packs as small as binary columns
would on real traces, and can be read by people and other programs. What a column holds (`columns`) says how it is
written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np

from tracediff.aggregate.snapshot_check import TABLES, check, check_lengths
from tracediff.ingest.names import bounded
from tracediff.ingest.source import TraceFile
from tracediff.ingest.times import Int64
from tracediff.profile.columns import columns_of
from tracediff.profile.model import Accounts, Grid, LeafTable, Profile, TableRows
from tracediff.profile.placement.calls import PHASE
from tracediff.profile.tables import OF_FILES, table_schema


def as_list(column: Int64) -> list[Any]:
    """A column as JSON holds it."""
    values: list[Any] = column.tolist()
    return values


def as_column(kind: type, values: list[Any]) -> Int64:
    """A column out of JSON; of a `Grid` the rows.

    Raises:
        ValueError: not integers of 64 bits, or rows of different lengths.
    """
    try:
        return np.array(msgspec.convert(values, list[list[int]] if kind == Grid else list[int]), np.int64)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None  # which msgspec completes by the place of the column
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None


def written(profile: Profile) -> Accounts:
    """What a snapshot holds of ``profile``: columns that rise as differences, those names only that its tables use, and
    its file without folders.
    """
    profile = with_used_names(profile)
    accounts = Accounts(**{field.name: getattr(profile, field.name) for field in fields(Accounts)})
    origin = replace(profile.origin, file=TraceFile(_file_name(profile.origin.file)))
    accounts = replace(accounts, origin=origin, leaves=_relative(profile.leaves))
    return _rising(accounts, lambda column: np.diff(column, prepend=np.int64(0)))


def read(accounts: Accounts, snapshot: TraceFile) -> Profile:
    """The profile again; its file is named as a member of ``snapshot``.

    Raises:
        ValueError: the parts do not fit together.
    """
    check_lengths(accounts)
    accounts = _rising(accounts, np.cumsum)
    profile = Profile(
        **{field.name: getattr(accounts, field.name) for field in fields(Accounts)}
        | {
            "origin": replace(accounts.origin, file=TraceFile(str(snapshot), accounts.origin.file.name)),
            "leaves": _relative(accounts.leaves),
            "names": tuple(map(bounded, accounts.names)),
            "tables": known_tables(accounts.tables),
        }
    )
    check(profile)
    return profile


def known_tables(tables: dict[str, TableRows]) -> dict[str, TableRows]:
    """``tables`` without those that this version does not know, or has with other columns."""
    return {name: _shaped(name, table) for name, table in tables.items() if name in OF_FILES and _fits(name, table)}


def _fits(name: str, table: TableRows) -> bool:
    schema, values = table_schema(name), table.values
    keys_fit = all(len(key) == len(schema.keys) for key in table.keys)
    return keys_fit and (not len(values) or values.shape[1] == len(schema.columns))


def _shaped(name: str, table: TableRows) -> TableRows:
    """``table``; JSON does not have the number of columns of one without rows."""
    return (
        table if len(table.values) else replace(table, values=np.zeros((0, len(table_schema(name).columns)), np.int64))
    )


def _file_name(file: TraceFile) -> str:
    """Without folders, and of a URL without its query, which may hold a key."""
    return TraceFile(file.path.partition("?")[0], file.member).name if "://" in file.path else file.name


def _rising(accounts: Accounts, change: Callable[[Int64], Int64]) -> Accounts:
    """``accounts`` with each column of their tables that rises changed."""
    changed: dict[str, Any] = {}
    for name in TABLES:
        table = getattr(accounts, name)
        columns = {column: change(getattr(table, column)) for column, holds in columns_of(table).items() if holds.rises}
        changed[name] = replace(table, **columns)
    return replace(accounts, **changed)


def _relative(leaves: LeafTable) -> LeafTable:
    """``leaves`` with total_ns and longest_ns as what path_ns exceeds them by, since most are one event on the path; of
    these the leaves again.
    """
    path_ns = leaves.path_ns
    return replace(leaves, total_ns=path_ns - leaves.total_ns, longest_ns=path_ns - leaves.longest_ns)


def with_used_names(profile: Profile) -> Profile:
    """``profile`` without names that only metadata, flows and instants have. Codes keep their order, so that rows do;
    those of categories are fixed and stay.
    """
    calls, named = profile.calls, profile.calls.kind != PHASE  # the name of a phase is no code of a name
    tables: dict[str, Any] = {name: getattr(profile, name) for name in TABLES if name != "calls"}
    columns = [
        (table, name)
        for table, rows in tables.items()
        for name, column in columns_of(rows).items()
        if column.refers_to == "names"
    ]
    used = np.unique(np.concatenate([calls.name[named], *(getattr(tables[table], name) for table, name in columns)]))
    used = used[used >= 0]

    def again(codes: Int64) -> Int64:
        return np.where(codes >= 0, np.searchsorted(used, codes), -1)

    for table, name in columns:
        tables[table] = replace(tables[table], **{name: again(getattr(tables[table], name))})
    calls = replace(calls, name=np.where(named, again(calls.name), calls.name))
    return replace(profile, calls=calls, names=tuple(profile.names[code] for code in used.tolist()), **tables)
