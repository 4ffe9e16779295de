"""The JSON document of one set as types (schema ``tracediff.profile/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `docs/site/json_schema.py` makes the published JSON
Schema from these types; docs/analysis.md is the same in prose.
"""

from tracediff.analysis import Analysis, SetFinding
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.ingest.model.health import Note
from tracediff.present.columns import SET_OPS, SET_STATES, SHARES
from tracediff.present.tables import row_object
from tracediff.report.json_text import JsonObject, filled, json_text
from tracediff.report.json_types import Row, Set

OperationRow, ShareRow, StateTime = (schema.json_type for schema in (SET_OPS, SHARES, SET_STATES))


class SetStepTime(JsonObject):
    """The step account: where the time of a step goes."""

    us: float
    """µs per step"""
    states: list[StateTime]  # type: ignore[valid-type]
    """states in order of precedence; they add up to the step"""
    foreign_gpu_us: float
    """part of the GPU states in which all work was launched outside the used steps, µs per step"""
    draining_us: float
    """how long the GPU ran earlier work before the first used step, µs per run; in no period"""
    residual_us: float
    """part of the step that the states do not explain: 0"""


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
    families: list[ShareRow]  # type: ignore[valid-type]
    """GPU time by family, the largest first"""


class Rank(JsonObject):
    """The step account of one rank's own steps."""

    rank: int
    states: list[StateTime]  # type: ignore[valid-type]


class ProfileDocument(JsonObject, tag_field="schema", tag="tracediff.profile/1"):
    """The analysis of one set. Times are µs per step, counts and bytes per step, all means."""

    set: Set
    step_time: SetStepTime
    gpu_time: SetGpuTime
    ops: list[OperationRow]  # type: ignore[valid-type]
    """operators and runtime calls, the largest self time first"""
    kernels: list[OperationRow]  # type: ignore[valid-type]
    """kernels, copies and memsets, the longest first"""
    modules: list[ShareRow]  # type: ignore[valid-type]
    """GPU time (without a GPU: self time of operators) by nn.Module, the largest first"""
    phases: list[ShareRow]  # type: ignore[valid-type]
    """the same work by phase of the step"""
    ranks: list[Rank]
    tables: dict[str, list[Row]]
    """tables that the set was loaded with (docs/analysis.md): name → rows"""
    findings: list[SetFinding]
    """findings, the largest part of the step first"""
    health: tuple[Note, ...]


def document(analysis: Analysis) -> ProfileDocument:
    """The document: times in µs per step, counts and bytes per step."""
    us, has_gpu, gpus = analysis.us, analysis.side.has_gpu, analysis.side.gpu
    return filled(
        ProfileDocument,
        analysis,
        set=analysis.side,
        step_time=filled(
            SetStepTime,
            analysis,
            "us",
            us,
            us=us(analysis.period),
            states=SET_STATES.json(analysis, analysis.states),
            foreign_gpu_us=us(analysis.foreign),
            residual_us=us(analysis.period - sum(s.ns for s in analysis.states)),
        ),
        gpu_time=filled(
            SetGpuTime,
            analysis,
            "us",
            us,
            us=us(analysis.work) if has_gpu else 0.0,
            tensor_core_share=analysis.tensor_cores,
            families=SHARES.json(analysis, analysis.views["family"]) if has_gpu else [],
        ),
        ops=SET_OPS.json(analysis, (o for o in analysis.operations if o.category in HOST_WORK)),
        kernels=SET_OPS.json(analysis, (o for o in analysis.operations if o.category in GPU_WORK)),
        modules=SHARES.json(analysis, analysis.views["module"]),
        phases=SHARES.json(analysis, analysis.views["phase"]),
        ranks=[
            Rank(rank, [StateTime(name, time_us) for name, time_us in states.items()])
            for rank, states in analysis.side.rank_states.items()
        ],
        tables={
            table.schema.name: [row_object(table.schema, key, values, gpus) for key, values in table.per_step()]
            for table in analysis.tables
        },
        health=analysis.side.notes,
    )


def to_json(analysis: Analysis) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(analysis))
