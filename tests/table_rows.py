"""The rows of a table of one small trace, by step and key."""

from __future__ import annotations

from pathlib import Path

from build_trace import Event, document, write
from one_file import profile_file

from tracediff.aggregate.averages import SetTable
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.model.profile import Profile
from tracediff.profile.tables import table_schema

Rows = dict[tuple[int, tuple[str, ...]], dict[str, int]]


def profile_with(folder: Path, events: list[Event], *names: str) -> Profile:
    """The profile of a file of ``events`` with the tables ``names``."""
    return profile_file(TraceFile(str(write(folder / "trace.json", document(events), layout="compact"))), tables=names)


def rows_of(profile: Profile, name: str) -> Rows:
    """(step position, key) → column → value, each row once."""
    table = profile.tables[name]
    columns = [column.name for column in table_schema(name).columns]
    out: Rows = {}
    for step, key, values in zip(table.step.tolist(), table.key.tolist(), table.values.tolist(), strict=True):
        assert (step, table.keys[key]) not in out
        out[step, table.keys[key]] = dict(zip(columns, values, strict=True))
    return out


def measured(folder: Path, events: list[Event], name: str) -> Rows:
    """The rows of one table of a file of ``events``."""
    return rows_of(profile_with(folder, events, name), name)


def first_step(rows: Rows, column: str) -> dict[tuple[str, ...], int]:
    """Key → ``column`` of the rows of the first step."""
    return {key: values[column] for (step, key), values in rows.items() if step == 0}


def per_step(table: SetTable) -> dict[tuple[str, ...], dict[str, float]]:
    """Key → column → value per step, in the table's units."""
    names = [column.name for column in table.schema.columns]
    return {
        key: {name: value / table.denominator for name, value in zip(names, values, strict=True)}
        for key, values in table.rows.items()
    }
