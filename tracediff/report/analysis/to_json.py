"""`Analysis` → the JSON document of schema ``tracediff.profile/1`` (docs/analysis.md#json)."""

from __future__ import annotations

from collections.abc import Sequence

from tracediff.analysis.analysis import Analysis
from tracediff.analysis.shares import Operation
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.present.tables import row_object
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.analysis import json_types
from tracediff.report.json_text import filled, json_text, per_step
from tracediff.report.json_types import Row
from tracediff.report.to_json import set_of


def document(analysis: Analysis) -> json_types.ProfileDocument:
    """The document: times in µs per step, counts and bytes per step."""
    return json_types.ProfileDocument(
        schema="tracediff.profile/1",
        set=set_of(analysis.side),
        step_time=_step_time(analysis),
        gpu_time=_gpu_time(analysis),
        ops=[_operation(analysis, o) for o in analysis.operations if o.category in HOST_WORK],
        kernels=[_operation(analysis, o) for o in analysis.operations if o.category in GPU_WORK],
        modules=shares_of(analysis, "module"),
        phases=shares_of(analysis, "phase"),
        ranks=[
            json_types.Rank(rank, [json_types.StateTime(name, us) for name, us in states.items()])
            for rank, states in analysis.side.rank_states.items()
        ],
        tables={schema.name: _table(analysis, schema, rows) for schema, rows in analysis.tables},
        findings=[filled(json_types.SetFinding, f) for f in analysis.findings],
        health=list(analysis.side.notes),
    )


def to_json(analysis: Analysis) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(analysis))


def _step_time(analysis: Analysis) -> json_types.SetStepTime:
    us = analysis.us
    return json_types.SetStepTime(
        us=us(analysis.period),
        states=[json_types.StateTime(s.name, us(s.ns)) for s in analysis.states],
        foreign_gpu_us=us(analysis.foreign),
        draining_us=us(analysis.draining),
        residual_us=us(analysis.period - sum(s.ns for s in analysis.states)),
    )


def _gpu_time(analysis: Analysis) -> json_types.SetGpuTime:
    us, has_gpu = analysis.us, analysis.side.has_gpu
    return json_types.SetGpuTime(
        us=us(analysis.work) if has_gpu else 0.0,
        busy_us=us(analysis.busy),
        unattributed_us=us(analysis.unattributed),
        tensor_core_share=analysis.tensor_cores,
        families=shares_of(analysis, "family") if has_gpu else [],
    )


def shares_of(analysis: Analysis, view: str) -> list[json_types.ShareRow]:
    """The work summed by one of the views of ``analysis``."""
    return [per_step(json_types.ShareRow, s, analysis, us=analysis.us(s.ns)) for s in analysis.views[view]]


def _operation(analysis: Analysis, operation: Operation) -> json_types.OperationRow:
    return per_step(json_types.OperationRow, operation, analysis, self_us=analysis.us(operation.self_ns))


def _table(
    analysis: Analysis, schema: TableSchema, rows: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]
) -> list[Row]:
    return [row_object(schema, key, [n / analysis.scale for n in row], analysis.side.gpu) for key, row in rows]
