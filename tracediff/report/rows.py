"""The tables of a comparison for CSV files and DataFrames; times in µs and counts per step. The CSV files, and folded
stacks, one line per path of calls.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from tracediff.diff.call_trees import folded, merge_calls
from tracediff.diff.comparison import Comparison
from tracediff.errors import printable
from tracediff.present.columns import (
    CSV,
    GROUPS,
    MEMBERS,
    NUMBERS,
    OPS,
    STATES,
    RowColumn,
    RowSchema,
    Scaled,
    both_sides,
    members,
)
from tracediff.present.tables import table_columns
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.escape import csv_cell
from tracediff.report.json_types import Row
from tracediff.report.to_json import tables_of
from tracediff.structs import SIDES, FrozenStruct


class OutputTable(FrozenStruct):
    """A table. Attributes: columns: their names. values: of each row."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]


def output_table(schema: RowSchema, output: str, scaled: Scaled, rows: Iterable[Any]) -> OutputTable:
    """The columns that ``output`` has of ``rows``."""
    names = tuple(column.name for column in schema.of[output])
    return OutputTable(names, [tuple(schema.values(output, scaled, row)) for row in rows])


def table(schema: TableSchema, rows: Sequence[Row], prefixes: Sequence[str] = ("control_", "test_")) -> OutputTable:
    """A further table (`--table`), of which columns have these prefixes."""
    columns = tuple(table_columns(schema, prefixes))
    return OutputTable(columns, [tuple(row[name] for name in columns) for row in rows])


def _members(comparison: Comparison) -> OutputTable:
    """The members of all groups; group k is row k of their table."""
    every = [(k, row) for k, group in enumerate(comparison.work.groups) for side in members(group) for row in side]
    table = output_table(MEMBERS, CSV, comparison, [row for _, row in every])
    rows = [(k, *values) for (k, _), values in zip(every, table.values, strict=True)]
    return OutputTable(("group", *table.columns), rows)


def health(comparison: Comparison) -> OutputTable:
    """The health notes of both sides."""
    sides = zip(SIDES, comparison.sides, strict=True)
    rows = [(name, note.code, note.message, note.count) for name, side in sides for note in side.notes]
    return OutputTable(("side", "code", "message", "count"), rows)


TREE = RowSchema(
    (
        RowColumn("parent", "number of the row of the call around it, −1 of a phase"),
        RowColumn("depth", "0 of a phase"),
        RowColumn("kind", "phase, annotation, module or op", "call.kind"),
        RowColumn("name", "name for people", "call.display_name"),
        RowColumn("shapes", "shapes of its inputs; empty where unknown", "call.shapes"),
        RowColumn("side", "which side makes it: both, control or test"),
        *NUMBERS[:2],
        *both_sides("*_host_us", "duration on the host, µs per step", "host.*"),
        *NUMBERS[2:],
    )
)


def tree(comparison: Comparison) -> OutputTable:
    """The merged call tree; row k is the call that `parent` numbers k."""
    return output_table(TREE, CSV, comparison, merge_calls(comparison.trees, comparison.pairing)[0])


def steps(comparison: Comparison) -> OutputTable:
    """The used steps of both sides; with several ranks, each step's slowest."""
    rows = [
        (side, run, step.number, step.rank, step.period_ns / 1000)
        for side, summary in zip(SIDES, comparison.sides, strict=True)
        for run, used_steps in summary.steps.items()
        for step in used_steps
    ]
    return OutputTable(("side", "run", "step", "rank", "period_us"), rows)


def to_csv(comparison: Comparison) -> dict[str, str]:
    """File name → content. Line k of groups.csv (from 0) is the group that members.csv numbers k."""
    further = zip(comparison.tables, tables_of(comparison).values(), strict=True)
    tables = {
        "step_time": output_table(STATES, CSV, comparison, comparison.step_time.states),
        "groups": output_table(GROUPS, CSV, comparison, comparison.work.groups),
        "members": _members(comparison),
        "tree": tree(comparison),
        "ops": output_table(OPS, CSV, comparison, comparison.ops),
        "steps": steps(comparison),
        "health": health(comparison),
        **{f"table_{one.schema.name}": table(one.schema, rows) for one, rows in further},
    }
    return {f"{name}.csv": _csv_text(one) for name, one in tables.items()}


def _csv_text(rows: OutputTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows([csv_cell(value) for value in row] for row in rows.values)
    return out.getvalue()


def to_folded(comparison: Comparison) -> str:
    """One line per stack with the work of both sides in whole ns per step."""
    scale = comparison.scale
    stacks = folded(comparison.trees)
    return "".join(
        f"{printable(stack).replace(' ', '_')} {round(control / scale)} {round(test / scale)}\n"
        for stack, control, test in stacks
    )
