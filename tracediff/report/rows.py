"""The tables of a comparison as rows, the same for CSV files and DataFrames; times in µs and counts per step. The CSV
files, and folded stacks, one line per path of calls.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from tracediff.diff.call_trees import folded, merge_trees
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import Sum, WorkChange
from tracediff.errors import printable
from tracediff.present.sections import NUMBERS, numbers
from tracediff.present.tables import table_columns
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import is_generated
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.escape import csv_cell
from tracediff.report.json_text import JsonObject
from tracediff.report.json_types import DiffDocument, GroupRow, MemberRow, OpRow, Row, StateRow
from tracediff.report.to_json import document

SIDES = ("control", "test")
OF_CALL = ("operator", "shapes", "control_kernels", "test_kernels")
"""What a group of work is a call of, and the kernels of both sides; in files its members have them."""


class OutputTable(Struct, frozen=True):
    """A table. Attributes: columns: their names, which are those of the JSON document. values: of each row."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]

    def without(self, columns: Collection[str]) -> OutputTable:
        """The table without these columns."""
        kept = [k for k, name in enumerate(self.columns) if name not in columns]
        return OutputTable(tuple(self.columns[k] for k in kept), [tuple(row[k] for k in kept) for row in self.values])


def rows_of(kind: type[JsonObject], objects: Iterable[JsonObject]) -> OutputTable:
    """The fields of objects of a document."""
    columns = kind.__struct_fields__
    return OutputTable(columns, [tuple(getattr(one, name) for name in columns) for one in objects])


def states(document: DiffDocument) -> OutputTable:
    """The states of the step, without their significance."""
    return rows_of(StateRow, document.step_time.states).without(("time_change", "p_value", "q_value"))


def ops(document: DiffDocument) -> OutputTable:
    """The operations."""
    return rows_of(OpRow, document.ops).without(("relative", "counts_vary"))


def health(document: DiffDocument) -> OutputTable:
    """The health notes of both sides."""
    notes = {"control": document.health.control, "test": document.health.test}
    return OutputTable(
        ("side", "code", "message", "count"),
        [(side, note.code, note.message, note.count) for side in SIDES for note in notes[side]],
    )


def table(schema: TableSchema, rows: Sequence[Row], prefixes: Sequence[str] = ("control_", "test_")) -> OutputTable:
    """A further table (`--table`), of which columns have these prefixes."""
    columns = tuple(table_columns(schema, prefixes))
    return OutputTable(columns, [tuple(row[name] for name in columns) for row in rows])


def groups(comparison: Comparison, document: DiffDocument) -> OutputTable:
    """The groups of work, with the sums of their members."""
    columns = (
        "level",
        "name",
        *OF_CALL,
        "family",
        "module",
        "phase",
        "lines",
        *NUMBERS,
        "count_part_us",
        "mean_part_us",
    )
    rows = []
    for group, written in zip(comparison.work.groups, _groups(document), strict=True):
        operator, _, shapes = (group.call or "").partition("(")
        control, test = written.control, written.test
        own: dict[str, Any] = {
            "operator": operator or None,
            "shapes": f"({shapes}" if shapes else None,
            "control_kernels": [member.name for member in control],
            "test_kernels": [member.name for member in test],
            "lines": ", ".join(written.lines),
            "control_count": sum(member.count for member in control),
            "test_count": sum(member.count for member in test),
            "control_us": sum(member.us for member in control),
            "test_us": sum(member.us for member in test),
        }
        rows.append(tuple(own[name] if name in own else getattr(written, name) for name in columns))
    return OutputTable(columns, rows)


def _groups(document: DiffDocument) -> list[GroupRow]:
    return (document.host_time or document.gpu_time).groups


def members(document: DiffDocument) -> OutputTable:
    """The members of all groups; group k is row k of `groups`."""
    whose = [
        (k, side, member)
        for k, group in enumerate(_groups(document))
        for side, found in zip(SIDES, (group.control, group.test), strict=True)
        for member in found
    ]
    found = rows_of(MemberRow, [member for *_, member in whose]).without(("first",))
    rows = [(k, side, *values) for (k, side, _), values in zip(whose, found.values, strict=True)]
    return OutputTable(("group", "side", *found.columns), rows)


def fusions(comparison: Comparison) -> OutputTable:
    """The groups of level fusion: operators one by one on one side, fused kernels on the other."""
    rows = []
    for group in comparison.work.groups:
        if group.level == "fusion":
            every = list(chain(*group.members))
            separate = dict.fromkeys(m.op or display_name(m.name) for m in every if not is_generated(m.name))
            fused = dict.fromkeys(display_name(m.name) for m in every if is_generated(m.name))
            what = ", ".join(separate), ", ".join(fused), group.module, group.phase
            rows.append((*what, *numbers(comparison, group).values()))
    return OutputTable(("ops", "kernels", "module", "phase", *NUMBERS), rows)


def changes(comparison: Comparison, found: Iterable[WorkChange]) -> OutputTable:
    """Matched work with its instances merged."""
    rows = [
        (
            *(change.operator or None, change.shapes or None, change.module or None),
            *change.short_names.map(list),
            *numbers(comparison, change).values(),
        )
        for change in found
    ]
    return OutputTable(("operator", "shapes", "module", "control_kernels", "test_kernels", *NUMBERS), rows)


def sums(comparison: Comparison, found: Iterable[Sum]) -> OutputTable:
    """The lines of a view of the work."""
    return OutputTable(("name", *NUMBERS), [(line.name, *numbers(comparison, line).values()) for line in found])


def tree(comparison: Comparison) -> OutputTable:
    """The merged call tree; row k is the call that `parent` numbers k."""
    us, number = comparison.us, comparison.number
    call = ("parent", "depth", "kind", "name", "shapes", "side")
    rows = [
        (
            *(getattr(node, name) for name in call),
            *node.count.map(number),
            *node.host.map(us),
            *(*node.work.map(us), us(node.work.delta)),
        )
        for node in merge_trees(comparison.trees, comparison.pairing, comparison.scale)
    ]
    return OutputTable((*call, *NUMBERS[:2], "control_host_us", "test_host_us", *NUMBERS[2:]), rows)


def steps(comparison: Comparison) -> OutputTable:
    """The used steps of both sides; with several ranks, each step's slowest."""
    rows = [
        (side, run, step.number, step.rank, step.period_ns / 1000)
        for side, summary in zip(SIDES, (comparison.control, comparison.test), strict=True)
        for run, found in summary.steps.items()
        for step in found
    ]
    return OutputTable(("side", "run", "step", "rank", "period_us"), rows)


def to_csv(comparison: Comparison) -> dict[str, str]:
    """File name → content. Line k of groups.csv (from 0) is the group that members.csv numbers k."""
    whole = document(comparison)
    tables = {
        "step_time": states(whole),
        "groups": groups(comparison, whole).without(OF_CALL),
        "members": members(whole),
        "tree": tree(comparison),
        "ops": ops(whole),
        "steps": steps(comparison),
        "health": health(whole),
        **{
            f"table_{found.schema.name}": table(found.schema, whole.tables[found.schema.name])
            for found in comparison.tables
        },
    }
    return {f"{name}.csv": _csv_text(found) for name, found in tables.items()}


def _csv_text(rows: OutputTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows([csv_cell(value) for value in row] for row in rows.values)
    return out.getvalue()


def to_folded(comparison: Comparison) -> str:
    """One line per stack with the work of both sides in whole ns per step."""
    scale = comparison.scale
    stacks = folded(comparison.trees, scale)
    return "".join(
        f"{printable(stack).replace(' ', '_')} {round(control / scale)} {round(test / scale)}\n"
        for stack, control, test in stacks
    )
