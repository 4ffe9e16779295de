"""`Comparison` → the JSON document of schema ``tracediff.diff/1`` (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tracediff.aggregate.side import Side
from tracediff.diff.comparison import Comparison
from tracediff.diff.gpu_time import Outside
from tracediff.diff.groups import Group, Member, WorkTime
from tracediff.diff.ops import Op
from tracediff.diff.preflight import Reason
from tracediff.diff.step_time import State
from tracediff.diff.table_changes import TableDiff
from tracediff.diff.unprofiled import Unprofiled
from tracediff.diff.verdict import Verdict
from tracediff.ingest.health import Note
from tracediff.present.answer import answer_of
from tracediff.present.tables import row_object
from tracediff.profile.kernels.display_names import display_name
from tracediff.report import json_types
from tracediff.report.explanation_json import explanation_of
from tracediff.report.json_text import json_text
from tracediff.runtimes import DEVICE_CATEGORIES


def document(comparison: Comparison) -> json_types.DiffDocument:
    """The document: times in µs per step, counts per step, null where something was not tested."""
    return json_types.DiffDocument(
        schema="tracediff.diff/1",
        control=set_of(comparison.control),
        test=set_of(comparison.test),
        comparability=json_types.Comparability(
            comparison.comparability.level, reasons_of(comparison.comparability.reasons)
        ),
        verdict=verdict_of(comparison.verdict),
        answer=answer_of(comparison),
        unprofiled=_unprofiled(comparison.unprofiled),
        step_time=_step_time(comparison),
        gpu_time=_gpu_time(comparison),
        host_time=_host_time(comparison) if comparison.host_time.groups else None,
        ops=[_op(comparison, op) for op in comparison.ops],
        common_change=comparison.common_change,
        families=[json_types.FamilyChange(**vars(f)) for f in comparison.families],
        tables=tables_of(comparison),
        explanation=explanation_of(comparison.explanation, (comparison.control, comparison.test)),
        health=json_types.Health(notes_of(comparison.control.notes), notes_of(comparison.test.notes)),
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
    return json_types.Set(
        label=side.label,
        files=list(side.files),
        runs=side.runs,
        ranks=list(side.ranks),
        steps_used=list(side.steps_used),
        gpu=list(side.gpu),
        torch=side.torch,
        unprofiled_us=side.unprofiled_us,
    )


def reasons_of(reasons: Iterable[Reason]) -> list[json_types.Reason]:
    """What differs between the sides."""
    return [json_types.Reason(r.code, r.message, r.control, r.test) for r in reasons]


def verdict_of(verdict: Verdict) -> json_types.Verdict:
    """How the step time differs."""
    return json_types.Verdict(**{name: getattr(verdict, name) for name in json_types.Verdict.__struct_fields__})


def _unprofiled(found: Unprofiled | None) -> json_types.Unprofiled | None:
    names = json_types.Unprofiled.__struct_fields__
    return json_types.Unprofiled(**{name: getattr(found, name) for name in names}) if found else None


def notes_of(notes: Iterable[Note]) -> list[json_types.HealthNote]:
    """Health notes."""
    return [json_types.HealthNote(n.code, n.message, n.count) for n in notes]


def _step_time(comparison: Comparison) -> json_types.StepTime:
    step, us = comparison.step_time, comparison.us
    return json_types.StepTime(
        control_us=us(step.control),
        test_us=us(step.test),
        delta_us=us(step.delta),
        states=[_state(comparison, s) for s in step.states],
        foreign_gpu_us=json_types.ForeignGpuTime(us(step.foreign_control), us(step.foreign_test)),
        draining_us=json_types.Draining(*map(us, step.draining)),
        residual_us=us(step.residual),
    )


def _state(comparison: Comparison, state: State) -> json_types.State:
    us = comparison.us
    return json_types.State(
        name=state.name,
        control_us=us(state.control),
        test_us=us(state.test),
        delta_us=us(state.delta),
        time_change=state.time_change,
        p_value=state.p_value,
        q_value=state.q_value,
    )


def _work_time(comparison: Comparison, work: WorkTime) -> dict[str, Any]:
    """The fields of `json_types.WorkTime`."""
    us, number = comparison.us, comparison.number
    residual = work.delta - work.matched - work.placed - work.added - work.removed - work.unattributed
    return {
        "control_us": us(work.control),
        "test_us": us(work.test),
        "delta_us": us(work.delta),
        "count_control": number(sum(g.control_count for g in work.groups)),
        "count_test": number(sum(g.test_count for g in work.groups)),
        "groups": [_group(comparison, g) for g in work.groups],
        "matched_us": us(work.matched),
        "placed_us": us(work.placed),
        "added_us": us(work.added),
        "removed_us": us(work.removed),
        "unattributed_us": us(work.unattributed),
        "residual_us": us(residual),
    }


def _host_time(comparison: Comparison) -> json_types.WorkTime:
    return json_types.WorkTime(**_work_time(comparison, comparison.host_time))


def _gpu_time(comparison: Comparison) -> json_types.GpuTime:
    gpu, us = comparison.gpu_time, comparison.us
    return json_types.GpuTime(
        **_work_time(comparison, gpu),
        busy_control_us=us(gpu.busy_control),
        busy_test_us=us(gpu.busy_test),
        overlap_control_us=us(gpu.control - gpu.busy_control),
        overlap_test_us=us(gpu.test - gpu.busy_test),
        tensor_core_share=json_types.TensorCoreShare(*(comparison.gpu_time.tensor_core_shares or (None, None))),
        spilled=_other_events(gpu.spilled),
        outside=_other_events(gpu.outside),
    )


def _other_events(events: Outside) -> json_types.OtherEvents:
    return json_types.OtherEvents(
        events.control_count, events.control_ns / 1000, events.test_count, events.test_ns / 1000
    )


def _group(comparison: Comparison, group: Group) -> json_types.Group:
    by_count, by_mean = (float(part / (comparison.scale * 1000)) for part in group.parts)
    return json_types.Group(
        level=group.level,
        name=group.name,
        family=group.family,
        module=group.module,
        phase=group.phase,
        lines=list(group.lines),
        control=[_member(comparison, m, comparison.control) for m in group.control],
        test=[_member(comparison, m, comparison.test) for m in group.test],
        control_ops=None if group.control_ops is None else comparison.number(group.control_ops),
        test_ops=None if group.test_ops is None else comparison.number(group.test_ops),
        delta_us=comparison.us(group.delta),
        count_part_us=by_count,
        mean_part_us=by_mean,
    )


def _member(comparison: Comparison, member: Member, side: Side) -> json_types.Member:
    first, on_gpu = member.first, member.category in DEVICE_CATEGORIES
    return json_types.Member(
        name=display_name(member.name),
        raw_name=member.name,
        op=member.op,
        family=member.family,
        count=comparison.number(member.count),
        us=comparison.us(member.ns),
        first=json_types.First(
            file=side.files[first.file],
            ts=first.ns / 1000,
            stream=int(first.lane) if on_gpu and first.lane else None,
            thread=first.lane if not on_gpu else None,
        ),
    )


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


def _op(comparison: Comparison, op: Op) -> json_types.Op:
    us, number = comparison.us, comparison.number
    return json_types.Op(
        name=op.name,
        raw_name=op.raw_name,
        device=op.device,
        category=op.category,
        family=op.family,
        control_count=number(op.control_count),
        test_count=number(op.test_count),
        control_total_us=us(op.control_total),
        test_total_us=us(op.test_total),
        control_self_us=us(op.control_self),
        test_self_us=us(op.test_self),
        delta_count=number(op.test_count - op.control_count),
        delta_us=us(op.total_delta),
        count_change=op.count_change,
        time_change=op.time_change,
        p_value=op.p_value,
        q_value=op.q_value,
        relative=op.relative,
        counts_vary=op.counts_vary,
    )
