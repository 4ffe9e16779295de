"""`Comparison` → the JSON document of schema ``tracediff.diff/1`` (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tracediff.aggregate.side import Side
from tracediff.diff.comparison import Comparison
from tracediff.diff.findings.finding import Finding
from tracediff.diff.findings.work import tensor_core_shares
from tracediff.diff.groups import Group, Member, WorkTime
from tracediff.diff.ops import Op
from tracediff.diff.step_time import State
from tracediff.diff.table_changes import TableDiff
from tracediff.ingest.health import Note
from tracediff.profile.kernels.display_names import readable
from tracediff.report.table import line_of

SCHEMA = "tracediff.diff/1"


def document(comparison: Comparison) -> dict[str, Any]:
    """The document as plain Python values: times in µs per step, counts per step, null where something was not
    tested.
    """
    return {
        "schema": SCHEMA,
        "control": set_of(comparison.control),
        "test": set_of(comparison.test),
        "comparability": {
            "level": comparison.comparability.level,
            "reasons": [
                {"code": r.code, "message": r.message, "control": r.control, "test": r.test}
                for r in comparison.comparability.reasons
            ],
        },
        "verdict": vars(comparison.verdict),
        "step_time": _step_time(comparison),
        "gpu_time": _gpu_time(comparison),
        "host_time": _work_time(comparison, comparison.host_time) if comparison.host_time.groups else None,
        "ops": [_op(comparison, op) for op in comparison.ops],
        "common_change": comparison.common_change,
        "families": [vars(f) for f in comparison.families],
        "tables": tables_of(comparison),
        "findings": [_finding(f) for f in comparison.findings],
        "health": {"control": notes_of(comparison.control.notes), "test": notes_of(comparison.test.notes)},
    }


def to_json(comparison: Comparison) -> str:
    """The document as indented text, with a new line at its end."""
    return msgspec.json.format(msgspec.json.encode(document(comparison)), indent=1).decode() + "\n"


def set_of(side: Side) -> dict[str, Any]:
    """What a set was made of."""
    return {
        "label": side.label,
        "files": list(side.files),
        "runs": side.runs,
        "ranks": list(side.ranks),
        "steps_used": list(side.steps_used),
        "gpu": list(side.gpu),
        "torch": side.torch,
        "unprofiled_us": side.unprofiled_us,
    }


def _step_time(comparison: Comparison) -> dict[str, Any]:
    step, us = comparison.step_time, comparison.us
    return {
        "control_us": us(step.control),
        "test_us": us(step.test),
        "delta_us": us(step.delta),
        "states": [_state(comparison, s) for s in step.states],
        "foreign_gpu_us": {"control": us(step.foreign_control), "test": us(step.foreign_test)},
        "residual_us": us(step.residual),
    }


def _state(comparison: Comparison, state: State) -> dict[str, Any]:
    us = comparison.us
    times = {"control_us": us(state.control), "test_us": us(state.test), "delta_us": us(state.delta)}
    return {
        "name": state.name,
        **times,
        "time_change": state.time_change,
        "p_value": state.p_value,
        "q_value": state.q_value,
    }


def _work_time(comparison: Comparison, work: WorkTime) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    residual = work.delta - work.matched - work.added - work.removed - work.unattributed
    return {
        "control_us": us(work.control),
        "test_us": us(work.test),
        "delta_us": us(work.delta),
        "count_control": number(sum(g.control_count for g in work.groups)),
        "count_test": number(sum(g.test_count for g in work.groups)),
        "groups": [_group(comparison, g) for g in work.groups],
        "matched_us": us(work.matched),
        "added_us": us(work.added),
        "removed_us": us(work.removed),
        "unattributed_us": us(work.unattributed),
        "residual_us": us(residual),
    }


def _gpu_time(comparison: Comparison) -> dict[str, Any]:
    gpu, us = comparison.gpu_time, comparison.us
    out = _work_time(comparison, gpu)
    out |= {
        "busy_control_us": us(gpu.busy_control),
        "busy_test_us": us(gpu.busy_test),
        "overlap_control_us": us(gpu.control - gpu.busy_control),
        "overlap_test_us": us(gpu.test - gpu.busy_test),
        "tensor_core_share": dict(
            zip(("control", "test"), tensor_core_shares(comparison) or (None, None), strict=True)
        ),
    }
    for name, events in (("spilled", gpu.spilled), ("outside", gpu.outside)):
        out[name] = {
            "control_count": events.control_count,
            "control_us": events.control_ns / 1000,
            "test_count": events.test_count,
            "test_us": events.test_ns / 1000,
        }
    return out


def _group(comparison: Comparison, group: Group) -> dict[str, Any]:
    by_count, by_mean = (float(part / (comparison.scale * 1000)) for part in group.parts)
    return {
        "level": group.level,
        "name": group.name,
        "family": group.family,
        "module": group.module,
        "phase": group.phase,
        "control": [_member(comparison, m) for m in group.control],
        "test": [_member(comparison, m) for m in group.test],
        "control_ops": None if group.control_ops is None else comparison.number(group.control_ops),
        "test_ops": None if group.test_ops is None else comparison.number(group.test_ops),
        "delta_us": comparison.us(group.delta),
        "count_part_us": by_count,
        "mean_part_us": by_mean,
    }


def _member(comparison: Comparison, member: Member) -> dict[str, Any]:
    return {
        "name": readable(member.name),
        "raw_name": member.name,
        "op": member.op,
        "family": member.family,
        "count": comparison.number(member.count),
        "us": comparison.us(member.ns),
    }


def tables_of(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """Name → rows of the further tables that both sets were loaded with."""
    return {of.schema.name: _table(comparison, of) for of in comparison.tables}


def _table(comparison: Comparison, of: TableDiff) -> list[dict[str, Any]]:
    """Rows with the columns and rates of both sides."""
    out = []
    for row in of.rows:
        line: dict[str, Any] = {}
        for prefix, values, side in (
            ("control_", row.control, comparison.control),
            ("test_", row.test, comparison.test),
        ):
            line |= line_of(of.schema, row.key, [n / comparison.scale for n in values], side.gpu, prefix)
        out.append(line)
    return out


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "title": finding.title,
        "detail": finding.detail,
        "delta_us": finding.delta_us,
        "evidence": [vars(e) for e in finding.evidence],
    }


def _op(comparison: Comparison, op: Op) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    return {
        "name": op.name,
        "raw_name": op.raw_name,
        "device": op.device,
        "category": op.category,
        "family": op.family,
        "control_counts": number(op.control_count),
        "test_counts": number(op.test_count),
        "control_total_us": us(op.control_total),
        "test_total_us": us(op.test_total),
        "control_self_us": us(op.control_self),
        "test_self_us": us(op.test_self),
        "diff_counts": number(op.test_count - op.control_count),
        "diff_us": us(op.total_delta),
        "counts_change": op.counts_change,
        "time_change": op.time_change,
        "p_value": op.p_value,
        "q_value": op.q_value,
        "relative": op.relative,
        "counts_vary": op.counts_vary,
    }


def notes_of(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Health notes."""
    return [{"code": n.code, "message": n.message, "count": n.count} for n in notes]
