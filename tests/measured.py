"""The rows of a measure of one small trace, by step and key."""

from __future__ import annotations

from pathlib import Path

from build_trace import Event, document, write

from tracediff.engine import profile_file
from tracediff.ingest.source import TraceFile
from tracediff.profile.measures import measure
from tracediff.profile.profile import Profile

Rows = dict[tuple[int, tuple[str, ...]], dict[str, int]]


def profile_with(folder: Path, events: list[Event], *names: str) -> Profile:
    """The profile of a file of ``events`` with the measures ``names``."""
    return profile_file(TraceFile(str(write(folder / "trace.json", document(events), layout="compact"))), measures=names)


def rows_of(profile: Profile, name: str) -> Rows:
    """(step position, key) → column → value, each row once."""
    table = profile.measures[name]
    columns = [column.name for column in measure(name).columns]
    out: Rows = {}
    for step, key, values in zip(table.step.tolist(), table.key.tolist(), table.values.tolist(), strict=True):
        assert (step, table.keys[key]) not in out
        out[step, table.keys[key]] = dict(zip(columns, values, strict=True))
    return out


def measured(folder: Path, events: list[Event], name: str) -> Rows:
    """The rows of one measure of a file of ``events``."""
    return rows_of(profile_with(folder, events, name), name)


def first_step(rows: Rows, column: str) -> dict[tuple[str, ...], int]:
    """Key → ``column`` of the rows of the first step."""
    return {key: values[column] for (step, key), values in rows.items() if step == 0}
