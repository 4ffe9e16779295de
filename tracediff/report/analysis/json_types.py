"""The JSON document of one set as types (schema ``tracediff.profile/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `tracediff.report.json_schema` generates the published JSON
Schema from these types; docs/analysis.md is the same in prose.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tracediff.report.json_types import (
    Category,
    Count,
    DisplayName,
    Family,
    HealthNote,
    Microseconds,
    RawName,
    Row,
    Set,
)


class StateTime(Struct):
    """One state of the step."""

    name: Annotated[str, Meta(description="state of the step account (docs/concepts.md)")]
    us: Microseconds


class StepTime(Struct):
    """The step account: where the time of a step goes."""

    us: Microseconds
    states: Annotated[list[StateTime], Meta(description="states in order of precedence; they add up to the step")]
    foreign_gpu_us: Annotated[
        float,
        Meta(description="part of the GPU states in which all work was launched outside the used steps, µs per step"),
    ]
    draining_us: Annotated[
        float,
        Meta(description="how long the GPU ran earlier work before the first used step, µs per run; in no period"),
    ]
    residual_us: Annotated[float, Meta(description="part of the step that the states do not explain: 0")]


class Share(Struct):
    """Work of one name."""

    name: str
    count: Count
    us: Microseconds


class GpuTime(Struct):
    """The kernel account; 0 and empty where there is no GPU."""

    us: Annotated[float, Meta(description="summed durations of GPU events, µs per step")]
    busy_us: Annotated[float, Meta(description="union of the events per GPU, summed over GPUs, µs per step")]
    unattributed_us: Annotated[
        float,
        Meta(description="part kept out of families, modules and phases; a health note gives the reason. µs per step"),
    ]
    tensor_core_share: Annotated[
        float | None, Meta(description="part of kernel time on tensor cores (0 to 1); null without kernels")
    ]
    families: Annotated[list[Share], Meta(description="GPU time by family, the largest first")]


class Operation(Struct):
    """One operation by category and name."""

    name: DisplayName
    raw_name: RawName
    category: Category
    family: Family
    count: Count
    total_us: Annotated[float, Meta(description="total time; a recursive call counts at each level. µs per step")]
    self_us: Annotated[float, Meta(description="self time: without children in the same lane, µs per step")]


class Rank(Struct):
    """The step account of one rank's own steps."""

    rank: int
    states: list[StateTime]


class SetFinding(Struct):
    """One finding about the set."""

    code: Annotated[str, Meta(description="stable code (docs/analysis.md)")]
    title: Annotated[str, Meta(description="the finding in a line")]
    detail: Annotated[str, Meta(description="the evidence, and what to do")]


class ProfileDocument(Struct):
    """The analysis of one set. Times are µs per step, counts and bytes per step, all means."""

    schema: Literal["tracediff.profile/1"]
    set: Set
    step_time: StepTime
    gpu_time: GpuTime
    ops: Annotated[list[Operation], Meta(description="operators and runtime calls, the largest self time first")]
    kernels: Annotated[list[Operation], Meta(description="kernels, copies and memsets, the longest first")]
    modules: Annotated[
        list[Share],
        Meta(description="GPU time (without a GPU: self time of operators) by nn.Module, the largest first"),
    ]
    phases: Annotated[list[Share], Meta(description="the same work by phase of the step")]
    ranks: list[Rank]
    tables: Annotated[
        dict[str, list[Row]], Meta(description="tables that the set was loaded with (docs/analysis.md): name → rows")
    ]
    findings: Annotated[list[SetFinding], Meta(description="findings, the largest part of the step first")]
    health: list[HealthNote]
