"""`Comparison` → CSV files, one a table; times in µs per step."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tracediff.diff.comparison import Comparison
from tracediff.report.to_json import document

STATE_COLUMNS = ("name", "control_us", "test_us", "delta_us")
GROUP_COLUMNS = (
    "level", "name", "family", "module", "phase", "control_count", "test_count", "control_us", "test_us", "delta_us", "count_part_us", "mean_part_us",
)  # fmt: skip
MEMBER_COLUMNS = ("group", "side", "name", "raw_name", "op", "count", "us")
OP_COLUMNS = (
    "name", "raw_name", "device", "category", "family", "control_counts", "test_counts", "control_total_us", "test_total_us",
    "control_self_us", "test_self_us", "diff_counts", "diff_us", "counts_change", "time_change", "p_value", "q_value",
)  # fmt: skip
STEP_COLUMNS = ("side", "run", "step", "rank", "period_us")
HEALTH_COLUMNS = ("side", "code", "message", "count")
SIDES = ("control", "test")


def to_csv(comparison: Comparison) -> dict[str, str]:
    """File name → content. Line k of gpu_groups.csv (from 0) is the group that gpu_members.csv numbers k."""
    whole = document(comparison)
    return {
        "step_time.csv": _written(STATE_COLUMNS, whole["step_time"]["states"]),
        "gpu_groups.csv": _written(GROUP_COLUMNS, group_rows(whole)),
        "gpu_members.csv": _written(MEMBER_COLUMNS, member_rows(whole)),
        "ops.csv": _written(OP_COLUMNS, whole["ops"]),
        "steps.csv": _written(STEP_COLUMNS, step_rows(comparison)),
        "health.csv": _written(HEALTH_COLUMNS, health_rows(whole)),
    }


def group_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups of the document with the sums of their members."""
    groups = whole["gpu_time"]["groups"]
    return [{**g, **{f"{side}_{key}": sum(m[key] for m in g[side]) for side in SIDES for key in ("count", "us")}} for g in groups]


def member_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of all groups."""
    return [{"group": i, "side": side, **member} for i, g in enumerate(whole["gpu_time"]["groups"]) for side in SIDES for member in g[side]]


def health_rows(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The health notes of both sides."""
    return [{"side": side, **note} for side, notes in whole["health"].items() for note in notes]


def step_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The used steps of both sides; of several ranks each step's slowest."""
    for side, of in zip(SIDES, (comparison.control, comparison.test), strict=True):
        for run, steps in of.steps.items():
            for step in steps:
                yield {"side": side, "run": run, "step": step.number, "rank": step.rank, "period_us": step.period_ns / 1000}


def _written(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A spreadsheet takes text that begins with =, +, - or @ for a formula: names are untrusted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
