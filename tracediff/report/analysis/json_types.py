"""The JSON document of one set as types (schema ``tracediff.profile/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `tracediff.report.json_schema` generates the published JSON
Schema from these types; docs/analysis.md is the same in prose.
"""

from __future__ import annotations

from typing import Literal

from tracediff.ingest.health import Note
from tracediff.report.json_text import JsonObject
from tracediff.report.json_types import (
    Category,
    Count,
    DisplayName,
    Family,
    Microseconds,
    RawName,
    Row,
    Set,
)


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
