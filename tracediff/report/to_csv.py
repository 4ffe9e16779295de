"""`Comparison` → CSV files, one per table; times in µs per step."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tracediff.diff.comparison import Comparison
from tracediff.diff.tree import merge_trees
from tracediff.present.tables import table_columns
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import is_generated
from tracediff.report.escape import csv_cell
from tracediff.report.to_json import document, plain

STATE_COLUMNS = ("name", "control_us", "test_us", "delta_us")
GROUP_COLUMNS = (
    "level",
    "name",
    "family",
    "module",
    "phase",
    "lines",
    "control_count",
    "test_count",
    "control_us",
    "test_us",
    "delta_us",
    "count_part_us",
    "mean_part_us",
)
MEMBER_COLUMNS = ("group", "side", "name", "raw_name", "op", "family", "count", "us")
OP_COLUMNS = (
    "name",
    "raw_name",
    "device",
    "category",
    "family",
    "control_count",
    "test_count",
    "control_total_us",
    "test_total_us",
    "control_self_us",
    "test_self_us",
    "delta_count",
    "delta_us",
    "count_change",
    "time_change",
    "p_value",
    "q_value",
)
TREE_COLUMNS = (
    "parent",
    "depth",
    "kind",
    "name",
    "shapes",
    "side",
    "control_count",
    "test_count",
    "control_host_us",
    "test_host_us",
    "control_us",
    "test_us",
    "delta_us",
)
STEP_COLUMNS = ("side", "run", "step", "rank", "period_us")
HEALTH_COLUMNS = ("side", "code", "message", "count")
SIDES = ("control", "test")
PREFIXES = ("control_", "test_")
"""Prefixes of the columns of `--table` tables."""


def to_csv(comparison: Comparison) -> dict[str, str]:
    """File name → content. Line k of groups.csv (from 0) is the group that members.csv numbers k."""
    whole = plain(document(comparison))
    return {
        "step_time.csv": _csv_text(STATE_COLUMNS, whole["step_time"]["states"]),
        "groups.csv": _csv_text(GROUP_COLUMNS, group_rows(whole)),
        "members.csv": _csv_text(MEMBER_COLUMNS, member_rows(whole)),
        "tree.csv": _csv_text(TREE_COLUMNS, tree_rows(comparison)),
        "ops.csv": _csv_text(OP_COLUMNS, whole["ops"]),
        "steps.csv": _csv_text(STEP_COLUMNS, step_rows(comparison)),
        "health.csv": _csv_text(HEALTH_COLUMNS, health_rows(whole)),
        **{
            f"table_{table_diff.schema.name}.csv": _csv_text(
                table_columns(table_diff.schema, PREFIXES), whole["tables"][table_diff.schema.name]
            )
            for table_diff in comparison.tables
        },
    }


def group_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups of the document with the sums of their members."""
    return [
        {
            **g,
            "lines": ", ".join(g["lines"]),
            **{f"{side}_{key}": sum(m[key] for m in g[side]) for side in SIDES for key in ("count", "us")},
        }
        for g in _groups(whole)
    ]


def _groups(whole: dict[str, Any]) -> list[dict[str, Any]]:
    return list((whole["host_time"] or whole["gpu_time"])["groups"])


def member_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of all groups."""
    return [
        {"group": i, "side": side, **member}
        for i, g in enumerate(_groups(whole))
        for side in SIDES
        for member in g[side]
    ]


def fusion_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The groups of level fusion: operators one by one on one side, fused kernels on the other."""
    us, number = comparison.us, comparison.number
    rows = []
    for group in comparison.work.groups:
        if group.level == "fusion":
            members = (*group.control, *group.test)
            rows.append(
                {
                    "ops": ", ".join(
                        dict.fromkeys(m.op or display_name(m.name) for m in members if not is_generated(m.name))
                    ),
                    "kernels": ", ".join(dict.fromkeys(display_name(m.name) for m in members if is_generated(m.name))),
                    "module": group.module,
                    "phase": group.phase,
                    "control_count": number(group.control_count),
                    "test_count": number(group.test_count),
                    "control_us": us(group.control_ns),
                    "test_us": us(group.test_ns),
                    "delta_us": us(group.delta),
                }
            )
    return rows


def tree_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The merged call tree; line k (from 0) is the call that `parent` numbers k."""
    us, number = comparison.us, comparison.number
    return [
        {
            **{key: getattr(n, key) for key in ("parent", "depth", "kind", "name", "shapes", "side")},
            "control_count": number(n.control_count),
            "test_count": number(n.test_count),
            "control_host_us": us(n.control_host),
            "test_host_us": us(n.test_host),
            "control_us": us(n.control_work),
            "test_us": us(n.test_work),
            "delta_us": us(n.delta),
        }
        for n in merge_trees(comparison.trees, comparison.pairing, comparison.scale)
    ]


def health_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The health notes of both sides."""
    return [{"side": side, **note} for side, notes in whole["health"].items() for note in notes]


def step_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The used steps of both sides; with several ranks, each step's slowest."""
    for side, summary in zip(SIDES, (comparison.control, comparison.test), strict=True):
        for run, steps in summary.steps.items():
            for step in steps:
                yield {
                    "side": side,
                    "run": run,
                    "step": step.number,
                    "rank": step.rank,
                    "period_us": step.period_ns / 1000,
                }


def _csv_text(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: csv_cell(v) for k, v in row.items()} for row in rows)
    return out.getvalue()
