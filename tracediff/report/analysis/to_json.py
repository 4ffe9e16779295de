"""`Analysis` → the JSON document of schema ``tracediff.profile/1`` (docs/analysis.md#json)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tracediff.analysis.analysis import Analysis
from tracediff.analysis.shares import Operation, Share
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.table import line_of
from tracediff.report.to_json import notes_of, set_of

SCHEMA = "tracediff.profile/1"


def document(analysis: Analysis) -> dict[str, Any]:
    """The document as plain Python values: times in µs per step, counts and bytes per step."""
    us = analysis.us
    return {
        "schema": SCHEMA,
        "set": set_of(analysis.side),
        "step_time": {
            "us": us(analysis.period),
            "states": [{"name": s.name, "us": us(s.ns)} for s in analysis.states],
            "foreign_gpu_us": us(analysis.foreign),
            "residual_us": us(analysis.period - sum(s.ns for s in analysis.states)),
        },
        "gpu_time": {
            "us": us(analysis.work) if analysis.side.has_gpu else 0.0,
            "busy_us": us(analysis.busy),
            "unattributed_us": us(analysis.unattributed),
            "tensor_core_share": analysis.tensor_cores,
            "families": _shares(analysis, analysis.views["family"]) if analysis.side.has_gpu else [],
        },
        "ops": [_operation(analysis, o) for o in analysis.operations if o.category in HOST_WORK],
        "kernels": [_operation(analysis, o) for o in analysis.operations if o.category in GPU_WORK],
        "modules": _shares(analysis, analysis.views["module"]),
        "phases": _shares(analysis, analysis.views["phase"]),
        "ranks": [
            {"rank": rank, "states": [{"name": name, "us": t} for name, t in states.items()]}
            for rank, states in analysis.side.rank_states.items()
        ],
        "tables": {schema.name: _table(analysis, schema, rows) for schema, rows in analysis.tables},
        "findings": [{"code": f.code, "title": f.title, "detail": f.detail} for f in analysis.findings],
        "health": notes_of(analysis.side.notes),
    }


def to_json(analysis: Analysis) -> str:
    """The document as indented text, with a new line at its end."""
    return msgspec.json.format(msgspec.json.encode(document(analysis)), indent=1).decode() + "\n"


def _shares(analysis: Analysis, lines: Iterable[Share]) -> list[dict[str, Any]]:
    return [{"name": s.name, "count": analysis.number(s.count), "us": analysis.us(s.ns)} for s in lines]


def _operation(analysis: Analysis, operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "raw_name": operation.raw_name,
        "category": operation.category,
        "family": operation.family,
        "count": analysis.number(operation.count),
        "total_us": analysis.us(operation.total),
        "self_us": analysis.us(operation.own),
    }


def _table(
    analysis: Analysis, schema: TableSchema, rows: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]
) -> list[dict[str, Any]]:
    return [line_of(schema, key, [n / analysis.scale for n in row], analysis.side.gpu) for key, row in rows]
