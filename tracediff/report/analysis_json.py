"""The JSON document of one set as types (schema ``tracediff.profile/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `tracediff.report.json_schema` generates the published JSON
Schema from these types; docs/analysis.md is the same in prose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tracediff.analysis import Analysis, Operation
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.ingest.model.health import Note
from tracediff.present.tables import row_object
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.json_text import JsonObject, filled, json_text, per_step
from tracediff.report.json_types import Category, Count, DisplayName, Family, Microseconds, RawName, Row, Set
from tracediff.report.to_json import set_of


class StateTime(JsonObject):
    """One state of the step."""

    name: str
    """state of the step account (docs/concepts.md)"""
    us: Microseconds


class SetStepTime(JsonObject):
    """The step account: where the time of a step goes."""

    us: Microseconds
    states: list[StateTime]
    """states in order of precedence; they add up to the step"""
    foreign_gpu_us: float
    """part of the GPU states in which all work was launched outside the used steps, µs per step"""
    draining_us: float
    """how long the GPU ran earlier work before the first used step, µs per run; in no period"""
    residual_us: float
    """part of the step that the states do not explain: 0"""


class ShareRow(JsonObject):
    """Work of one name."""

    name: str
    count: Count
    us: Microseconds


class SetGpuTime(JsonObject):
    """The kernel account; 0 and empty where there is no GPU."""

    us: float
    """summed durations of GPU events, µs per step"""
    busy_us: float
    """union of the events per GPU, summed over GPUs, µs per step"""
    unattributed_us: float
    """part kept out of families, modules and phases; a health note gives the reason. µs per step"""
    tensor_core_share: float | None
    """part of kernel time on tensor cores (0 to 1); null without kernels"""
    families: list[ShareRow]
    """GPU time by family, the largest first"""


class OperationRow(JsonObject):
    """One operation by category and name."""

    name: DisplayName
    raw_name: RawName
    category: Category
    family: Family
    count: Count
    total_us: float
    """total time; a recursive call counts at each level. µs per step"""
    self_us: float
    """self time: without children in the same lane, µs per step"""


class Rank(JsonObject):
    """The step account of one rank's own steps."""

    rank: int
    states: list[StateTime]


class SetFinding(JsonObject):
    """One finding about the set."""

    code: str
    """stable code (docs/analysis.md)"""
    title: str
    """the finding in a line"""
    detail: str
    """the evidence, and what to do"""


class ProfileDocument(JsonObject):
    """The analysis of one set. Times are µs per step, counts and bytes per step, all means."""

    schema: Literal["tracediff.profile/1"]
    set: Set
    step_time: SetStepTime
    gpu_time: SetGpuTime
    ops: list[OperationRow]
    """operators and runtime calls, the largest self time first"""
    kernels: list[OperationRow]
    """kernels, copies and memsets, the longest first"""
    modules: list[ShareRow]
    """GPU time (without a GPU: self time of operators) by nn.Module, the largest first"""
    phases: list[ShareRow]
    """the same work by phase of the step"""
    ranks: list[Rank]
    tables: dict[str, list[Row]]
    """tables that the set was loaded with (docs/analysis.md): name → rows"""
    findings: list[SetFinding]
    """findings, the largest part of the step first"""
    health: list[Note]


def document(analysis: Analysis) -> ProfileDocument:
    """The document: times in µs per step, counts and bytes per step."""
    return ProfileDocument(
        schema="tracediff.profile/1",
        set=set_of(analysis.side),
        step_time=_step_time(analysis),
        gpu_time=_gpu_time(analysis),
        ops=[_operation(analysis, o) for o in analysis.operations if o.category in HOST_WORK],
        kernels=[_operation(analysis, o) for o in analysis.operations if o.category in GPU_WORK],
        modules=shares_of(analysis, "module"),
        phases=shares_of(analysis, "phase"),
        ranks=[
            Rank(rank, [StateTime(name, us) for name, us in states.items()])
            for rank, states in analysis.side.rank_states.items()
        ],
        tables={schema.name: _table(analysis, schema, rows) for schema, rows in analysis.tables},
        findings=[filled(SetFinding, f) for f in analysis.findings],
        health=list(analysis.side.notes),
    )


def to_json(analysis: Analysis) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(analysis))


def _step_time(analysis: Analysis) -> SetStepTime:
    us = analysis.us
    return SetStepTime(
        us=us(analysis.period),
        states=[StateTime(s.name, us(s.ns)) for s in analysis.states],
        foreign_gpu_us=us(analysis.foreign),
        draining_us=us(analysis.draining),
        residual_us=us(analysis.period - sum(s.ns for s in analysis.states)),
    )


def _gpu_time(analysis: Analysis) -> SetGpuTime:
    us, has_gpu = analysis.us, analysis.side.has_gpu
    return SetGpuTime(
        us=us(analysis.work) if has_gpu else 0.0,
        busy_us=us(analysis.busy),
        unattributed_us=us(analysis.unattributed),
        tensor_core_share=analysis.tensor_cores,
        families=shares_of(analysis, "family") if has_gpu else [],
    )


def shares_of(analysis: Analysis, view: str) -> list[ShareRow]:
    """The work summed by one of the views of ``analysis``."""
    return [per_step(ShareRow, s, analysis, us=analysis.us(s.ns)) for s in analysis.views[view]]


def _operation(analysis: Analysis, operation: Operation) -> OperationRow:
    return per_step(OperationRow, operation, analysis, self_us=analysis.us(operation.self_ns))


def _table(
    analysis: Analysis, schema: TableSchema, rows: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]
) -> list[Row]:
    return [row_object(schema, key, [n / analysis.scale for n in row], analysis.side.gpu) for key, row in rows]
