"""`Comparison` → CSV files, one per table; times in µs per step."""

from __future__ import annotations

import csv
import io

from tracediff.diff.comparison import Comparison
from tracediff.report import rows
from tracediff.report.escape import csv_cell
from tracediff.report.rows import TableRows
from tracediff.report.to_json import document


def to_csv(comparison: Comparison) -> dict[str, str]:
    """File name → content. Line k of groups.csv (from 0) is the group that members.csv numbers k."""
    whole = document(comparison)
    tables = {
        "step_time": rows.states(whole),
        "groups": rows.groups(comparison, whole).without(rows.OF_CALL),
        "members": rows.members(whole),
        "tree": rows.tree(comparison),
        "ops": rows.ops(whole),
        "steps": rows.steps(comparison),
        "health": rows.health(whole),
        **{
            f"table_{found.schema.name}": rows.table(found.schema, whole.tables[found.schema.name])
            for found in comparison.tables
        },
    }
    return {f"{name}.csv": _csv_text(table) for name, table in tables.items()}


def _csv_text(table: TableRows) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([csv_cell(value) for value in row] for row in table.values)
    return out.getvalue()
