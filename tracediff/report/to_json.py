"""`Comparison` → the JSON document of schema ``tracediff.diff/1`` (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from tracediff.aggregate.side import Side
from tracediff.diff.comparison import Comparison
from tracediff.diff.gpu_time import Outside
from tracediff.diff.groups import Group, Member, WorkTime
from tracediff.diff.ops import Op
from tracediff.diff.preflight import Reason
from tracediff.diff.table_changes import TableDiff
from tracediff.diff.verdict import Verdict
from tracediff.present.answer import answer_of
from tracediff.present.tables import row_object
from tracediff.profile.kernels.display_names import display_name
from tracediff.report import json_types
from tracediff.report.explanation_json import explanation_of
from tracediff.report.json_text import filled, json_text, per_step
from tracediff.runtimes import DEVICE_CATEGORIES

Work = TypeVar("Work", bound=json_types.DiffWorkTime)


def document(comparison: Comparison) -> json_types.DiffDocument:
    """The document: times in µs per step, counts per step, null where something was not tested."""
    host = comparison.host_time
    return json_types.DiffDocument(
        schema="tracediff.diff/1",
        control=set_of(comparison.control),
        test=set_of(comparison.test),
        comparability=filled(
            json_types.DiffComparability,
            comparison.comparability,
            reasons=reasons_of(comparison.comparability.reasons),
        ),
        verdict=verdict_of(comparison.verdict),
        answer=answer_of(comparison),
        unprofiled=filled(json_types.DiffUnprofiled, comparison.unprofiled) if comparison.unprofiled else None,
        step_time=_step_time(comparison),
        gpu_time=_gpu_time(comparison),
        host_time=_work_time(json_types.DiffWorkTime, comparison, host) if host.groups else None,
        ops=[op_of(comparison, op) for op in comparison.ops],
        common_change=comparison.common_change,
        families=[filled(json_types.FamilyChange, f) for f in comparison.families],
        tables=tables_of(comparison),
        changed_code=comparison.changed_code,
        explanation=explanation_of(comparison.explanation, (comparison.control, comparison.test)),
        health=json_types.Health(list(comparison.control.notes), list(comparison.test.notes)),
    )


def to_json(comparison: Comparison) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(comparison))


def plain(document: msgspec.Struct) -> dict[str, Any]:
    """A document as dicts, lists, texts and numbers: the rows of frames and CSV files."""
    out: dict[str, Any] = msgspec.to_builtins(document)
    return out


def set_of(side: Side) -> json_types.Set:
    """What a set was made of."""
    return filled(json_types.Set, side)


def reasons_of(reasons: Iterable[Reason]) -> list[json_types.ReasonRow]:
    """What differs between the sides."""
    return [filled(json_types.ReasonRow, reason) for reason in reasons]


def verdict_of(verdict: Verdict) -> json_types.DiffVerdict:
    """How the step time differs."""
    return filled(json_types.DiffVerdict, verdict)


def _step_time(comparison: Comparison) -> json_types.DiffStepTime:
    step, us = comparison.step_time, comparison.us
    return per_step(
        json_types.DiffStepTime,
        step,
        comparison,
        states=[per_step(json_types.StateRow, state, comparison) for state in step.states],
        foreign_gpu_us=json_types.BothSides(us(step.foreign_control), us(step.foreign_test)),
        draining_us=json_types.BothSides(*map(us, step.draining)),
    )


def _work_time(kind: type[Work], comparison: Comparison, work: WorkTime, **more: Any) -> Work:
    residual = work.delta - work.matched - work.placed - work.added - work.removed - work.unattributed
    return per_step(
        kind,
        work,
        comparison,
        count_control=comparison.number(sum(g.control_count for g in work.groups)),
        count_test=comparison.number(sum(g.test_count for g in work.groups)),
        groups=[group_of(comparison, g) for g in work.groups],
        residual_us=comparison.us(residual),
        **more,
    )


def _gpu_time(comparison: Comparison) -> json_types.DiffGpuTime:
    gpu, us = comparison.gpu_time, comparison.us
    return _work_time(
        json_types.DiffGpuTime,
        comparison,
        gpu,
        overlap_control_us=us(gpu.control - gpu.busy_control),
        overlap_test_us=us(gpu.test - gpu.busy_test),
        tensor_core_share=json_types.TensorCoreShare(*(gpu.tensor_core_shares or (None, None))),
        spilled=_other_events(gpu.spilled),
        outside=_other_events(gpu.outside),
    )


def _other_events(events: Outside) -> json_types.OtherEvents:
    times = {"control_us": events.control_ns / 1000, "test_us": events.test_ns / 1000}
    return filled(json_types.OtherEvents, events, **times)


def group_of(comparison: Comparison, group: Group) -> json_types.GroupRow:
    """A group with its members."""
    by_count, by_mean = (float(part / (comparison.scale * 1000)) for part in group.parts)
    return per_step(
        json_types.GroupRow,
        group,
        comparison,
        control=[_member(comparison, m, comparison.control) for m in group.control],
        test=[_member(comparison, m, comparison.test) for m in group.test],
        control_ops=None if group.control_ops is None else comparison.number(group.control_ops),
        test_ops=None if group.test_ops is None else comparison.number(group.test_ops),
        count_part_us=by_count,
        mean_part_us=by_mean,
    )


def _member(comparison: Comparison, member: Member, side: Side) -> json_types.MemberRow:
    first, on_gpu = member.first, member.category in DEVICE_CATEGORIES
    return per_step(
        json_types.MemberRow,
        member,
        comparison,
        name=display_name(member.name),
        raw_name=member.name,
        us=comparison.us(member.ns),
        first=json_types.First(
            file=side.files[first.file],
            ts=first.ns / 1000,
            stream=int(first.lane) if on_gpu and first.lane else None,
            thread=first.lane if not on_gpu else None,
        ),
    )


def op_of(comparison: Comparison, op: Op) -> json_types.OpRow:
    """An operation; its change is that of its total time."""
    delta_count = comparison.number(op.test_count - op.control_count)
    delta_us = comparison.us(op.total_delta)
    return per_step(json_types.OpRow, op, comparison, delta_count=delta_count, delta_us=delta_us)


def tables_of(comparison: Comparison) -> dict[str, list[json_types.Row]]:
    """Name → rows of the further tables that both sets were loaded with."""
    return {table_diff.schema.name: _table(comparison, table_diff) for table_diff in comparison.tables}


def _table(comparison: Comparison, table_diff: TableDiff) -> list[json_types.Row]:
    """Rows with the columns and rates of both sides."""
    out = []
    for row in table_diff.rows:
        line: json_types.Row = {}
        for prefix, values, side in (
            ("control_", row.control, comparison.control),
            ("test_", row.test, comparison.test),
        ):
            line |= row_object(table_diff.schema, row.key, [n / comparison.scale for n in values], side.gpu, prefix)
        out.append(line)
    return out
