"""The JSON document of a comparison as types (schema ``tracediff.diff/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `tracediff.report.json_schema` generates the published JSON
Schema from these types; docs/reference/json.md is the same in prose.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tracediff.diff.matching.match import LEVELS
from tracediff.diff.preflight import CAUTION, OK, REFUSED
from tracediff.diff.verdict import RESULTS
from tracediff.present.answer import Answer
from tracediff.report.json_text import one_of

Microseconds = Annotated[float, Meta(description="µs per step")]
Count = Annotated[float, Meta(description="occurrences per step; a mean, so it may be a fraction")]
EventCount = Annotated[int, Meta(description="events of the whole set, not per step")]
SetMicroseconds = Annotated[float, Meta(description="µs of the whole set, not per step")]
PValue = Annotated[float | None, Meta(description="p-value of the change; null where untested")]
QValue = Annotated[
    float | None,
    Meta(description="p-value corrected for the number of tests (Benjamini–Hochberg); null where untested"),
]
TimeChange = Annotated[
    str,
    one_of("significance of the change of time between runs", "faster", "slower", "same", "unclear", "untested"),
]
DisplayName = Annotated[str, Meta(description="name for people: without addresses, hashes, ids and namespaces")]
RawName = Annotated[str, Meta(description="name as recorded")]
Category = Annotated[str, Meta(description="category of the trace: cpu_op, kernel, gpu_memcpy, …")]
Family = Annotated[str, Meta(description="kind of work: gemm, conv, attention, … (docs/families.md)")]
Row = dict[str, str | float | None]


class Set(Struct):
    """One set: which runs, ranks and steps, on which device."""

    label: Annotated[str, Meta(description="name of the set in reports")]
    files: Annotated[list[str], Meta(description="names of the trace files, without folders")]
    runs: Annotated[int, Meta(description="number of runs")]
    ranks: Annotated[list[int], Meta(description="ranks, ascending")]
    steps_used: Annotated[list[int], Meta(description="numbers of the used steps, ascending")]
    gpu: Annotated[list[str], Meta(description="names of the GPUs; empty without GPU events")]
    torch: Annotated[str | None, Meta(description="version of torch; null where it was not recorded")]
    unprofiled_us: Annotated[
        float | None,
        Meta(description="median step without the profiler, in µs; null where the collector did not measure it"),
    ]


class Reason(Struct):
    """One difference between the sides that may make the comparison misleading."""

    code: Annotated[str, Meta(description="stable code (docs/preflight.md)")]
    message: Annotated[str, Meta(description="what it means for the comparison")]
    control: Annotated[str, Meta(description="value on the control side")]
    test: Annotated[str, Meta(description="value on the test side")]


class Comparability(Struct):
    """The preflight: whether the two sets are comparable."""

    level: Annotated[str, one_of("refused: not comparable; compared only with --force", OK, CAUTION, REFUSED)]
    reasons: Annotated[list[Reason], Meta(description="what differs; empty where nothing does")]


class Verdict(Struct):
    """How the step time differs, and whether the difference is significant."""

    result: Annotated[str, one_of("result of the significance test over runs", *RESULTS)]
    sentence: Annotated[str, Meta(description="the verdict in a sentence")]
    control_us: Microseconds
    test_us: Microseconds
    delta_us: Annotated[float, Meta(description="test − control, µs per step")]
    ratio: Annotated[float | None, Meta(description="test / control; null where control is 0")]
    median_control_us: Annotated[float, Meta(description="median over runs of the median step of control, in µs")]
    median_test_us: Annotated[float, Meta(description="median over runs of the median step of test, in µs")]
    ci95_us: Annotated[
        tuple[float, float] | None,
        Meta(description="95 % confidence interval of the change of the median, in µs; null where untested"),
    ]
    p_value: PValue
    unit: Annotated[str, one_of("unit of sampling", "run", "step")]
    n_control: Annotated[int, Meta(description="number of samples of control")]
    n_test: Annotated[int, Meta(description="number of samples of test")]
    min_detectable_us: Annotated[
        float | None,
        Meta(description="smallest change that these runs would detect in 80 % of cases, in µs; null where untested"),
    ]
    method: Annotated[
        str,
        one_of("statistical procedure (docs/statistics.md)", "none", "t", "ranks", "prediction", "paired", "assumed"),
    ]
    within_runs_us: Annotated[
        tuple[float, float] | None,
        Meta(
            description="95 % interval of the change, from the steps of one run per side, in µs; other runs may "
            "differ. null with several runs or too few steps"
        ),
    ]


class Unprofiled(Struct):
    """The steps that the collector measured without the profiler, and the test of their change."""

    control_us: Annotated[float, Meta(description="median over runs of the median step of control, in µs")]
    test_us: Annotated[float, Meta(description="median over runs of the median step of test, in µs")]
    result: Annotated[str, one_of("result of the significance test over runs", *RESULTS)]
    ci95_us: Annotated[
        tuple[float, float] | None,
        Meta(description="95 % confidence interval of the change of the median, in µs; null where untested"),
    ]
    p_value: PValue
    believed: Annotated[
        bool,
        Meta(
            description="whether the sentence and the result of the verdict are about these steps, because they were "
            "tested and contradict the profiled ones; all other numbers are of profiled steps"
        ),
    ]


class State(Struct):
    """One state of the step; the states add up to the step."""

    name: Annotated[str, Meta(description="state of the step account (docs/concepts.md)")]
    control_us: Microseconds
    test_us: Microseconds
    delta_us: Annotated[float, Meta(description="test − control, µs per step")]
    time_change: TimeChange
    p_value: PValue
    q_value: QValue


class ForeignGpuTime(Struct):
    """GPU time launched outside the used steps, µs per step."""

    control: Microseconds
    test: Microseconds


class Draining(Struct):
    """GPU time before the first used steps of a run, µs."""

    control: Microseconds
    test: Microseconds


class StepTime(Struct):
    """The step account: where the time of a step goes."""

    control_us: Microseconds
    test_us: Microseconds
    delta_us: Annotated[float, Meta(description="test − control, µs per step")]
    states: Annotated[list[State], Meta(description="states in order of precedence")]
    foreign_gpu_us: Annotated[
        ForeignGpuTime,
        Meta(description="part of the GPU states in which all work was launched outside the used steps"),
    ]
    draining_us: Annotated[
        Draining,
        Meta(description="how long the GPU ran earlier work before the first used step, per run; in no period"),
    ]
    residual_us: Annotated[float, Meta(description="part of the change that the states do not explain: 0")]


class First(Struct):
    """One event, to be found in the file; stream of a GPU event, thread of an operator, null where not recorded."""

    file: Annotated[str, Meta(description="name of the file")]
    ts: Annotated[float, Meta(description="the number as it is in the file, in µs")]
    stream: int | None
    thread: str | None


class Member(Struct):
    """Work of one kind on one side of a group."""

    name: DisplayName
    raw_name: RawName
    op: Annotated[str | None, Meta(description="operator that launched it; null if none did")]
    family: Family
    count: Count
    us: Microseconds
    first: Annotated[First, Meta(description="its first event in the first used step of the first file that has it")]


class Group(Struct):
    """Work of both sides that is the same, or work of one side without a counterpart; every GPU event (without a GPU:
    every operator) is in exactly one group.
    """

    level: Annotated[str, one_of("how the sides were matched (docs/matching.md)", *LEVELS)]
    name: Annotated[str, Meta(description="name of the largest member, for people")]
    family: Family
    module: Annotated[str | None, Meta(description="path of the nn.Module; null where unknown or several")]
    phase: Annotated[str, Meta(description="forward, backward, optimizer, other or unknown")]
    lines: Annotated[
        list[str],
        Meta(description="lines of code outside of torch that it runs for, file.py(12): function; the largest first"),
    ]
    control: Annotated[list[Member], Meta(description="members of control, the largest first")]
    test: Annotated[list[Member], Meta(description="members of test, the largest first")]
    control_ops: Annotated[
        float | None,
        Meta(description="occurrences per step of the operator that all members share; null where they share none"),
    ]
    test_ops: Annotated[float | None, Meta(description="the same on the test side")]
    delta_us: Annotated[float, Meta(description="test − control, µs per step: count_part_us + mean_part_us")]
    count_part_us: Annotated[float, Meta(description="part of the change by count, µs per step")]
    mean_part_us: Annotated[float, Meta(description="part of the change by mean duration, µs per step")]


class WorkTime(Struct):
    """Work of both sides in groups; matched + placed + added + removed + unattributed = delta."""

    control_us: Microseconds
    test_us: Microseconds
    delta_us: Annotated[float, Meta(description="test − control, µs per step")]
    count_control: Count
    count_test: Count
    groups: Annotated[list[Group], Meta(description="all work, the largest change first")]
    matched_us: Annotated[
        float, Meta(description="change within matched groups with members on both sides, µs per step")
    ]
    placed_us: Annotated[
        float,
        Meta(
            description="change within groups of the same module or family in which too much differs to pair members, "
            "µs per step"
        ),
    ]
    added_us: Annotated[float, Meta(description="change by groups that only test has, µs per step")]
    removed_us: Annotated[float, Meta(description="change by groups that only control has, µs per step")]
    unattributed_us: Annotated[
        float, Meta(description="change by work kept out of matching; a health note gives the reason. µs per step")
    ]
    residual_us: Annotated[float, Meta(description="part of the change that the parts do not explain: 0")]


class TensorCoreShare(Struct):
    """Part of kernel time on tensor cores (0 to 1); null without kernels on both sides."""

    control: float | None
    test: float | None


class OtherEvents(Struct):
    """GPU events that belong to no used step: totals of the whole set."""

    control_count: EventCount
    control_us: SetMicroseconds
    test_count: EventCount
    test_us: SetMicroseconds


class GpuTime(WorkTime):
    """The kernel account: the summed durations of GPU events, in groups. All 0 where there is no GPU."""

    busy_control_us: Annotated[float, Meta(description="union of the events per GPU, summed over GPUs, µs per step")]
    busy_test_us: Annotated[float, Meta(description="the same on the test side")]
    overlap_control_us: Annotated[float, Meta(description="control_us − busy_control_us")]
    overlap_test_us: Annotated[float, Meta(description="test_us − busy_test_us")]
    tensor_core_share: TensorCoreShare
    spilled: Annotated[OtherEvents, Meta(description="events whose launch is not in the file")]
    outside: Annotated[OtherEvents, Meta(description="events launched outside every step")]


class Op(Struct):
    """One operation by category and name."""

    name: DisplayName
    raw_name: RawName
    device: Annotated[str, one_of("where it runs", "cpu", "gpu")]
    category: Category
    family: Family
    control_count: Count
    test_count: Count
    control_total_us: Annotated[
        float, Meta(description="total time; a recursive call counts at each level. µs per step")
    ]
    test_total_us: Annotated[float, Meta(description="the same on the test side")]
    control_self_us: Annotated[float, Meta(description="self time: without children in the same lane, µs per step")]
    test_self_us: Annotated[float, Meta(description="the same on the test side")]
    delta_count: Annotated[float, Meta(description="test − control, occurrences per step")]
    delta_us: Annotated[float, Meta(description="test − control of the total time, µs per step")]
    count_change: Annotated[
        str, one_of("class of the change of count", "added", "deleted", "increased", "decreased", "unchanged")
    ]
    time_change: TimeChange
    p_value: PValue
    q_value: QValue
    relative: Annotated[
        float | None,
        Meta(description="relative change of self time beyond common_change; null where untested"),
    ]
    counts_vary: Annotated[bool, Meta(description="whether the count differs from step to step on a side")]


class FamilyChange(Struct):
    """Work of one family, tested over runs."""

    name: Family
    control_us: Annotated[float, Meta(description="mean over runs of the median over steps, µs per step")]
    test_us: Annotated[float, Meta(description="the same on the test side")]
    time_change: TimeChange
    p_value: PValue
    q_value: QValue
    relative: Annotated[
        float | None,
        Meta(description="relative change beyond what all families have in common; null where untested"),
    ]
    interval: Annotated[
        tuple[float, float] | None,
        Meta(description="95 % confidence interval of the relative change; null where untested"),
    ]


class Fact(Struct):
    """Something that differs between the recordings; it carries no time."""

    code: Annotated[str, Meta(description="stable code (docs/explanation.md)")]
    text: Annotated[str, Meta(description="what differs, in a sentence without a full stop")]
    control: Annotated[str, Meta(description="value on the control side; may be empty")]
    test: Annotated[str, Meta(description="value on the test side; may be empty")]


class Amount(Struct):
    """How much more work the test side does."""

    ratio: Annotated[float, Meta(description="test / control")]
    unit: Annotated[str, Meta(description="FLOPs, elements, threads, tiles, bytes, calls or events")]
    known_part: Annotated[float, Meta(description="part of the time whose amount is known, 0 to 1")]


class CauseReason(Struct):
    """What the data of a line says of why it changed."""

    code: Annotated[str, Meta(description="stable code (docs/explanation.md)")]
    text: Annotated[str, Meta(description="the reason in a few words")]


class Significance(Struct):
    """What the runs of both sides say of a line's time."""

    result: TimeChange
    q_value: QValue
    interval: Annotated[
        tuple[float, float] | None,
        Meta(description="95 % confidence interval of the relative change; null where untested"),
    ]


class FirstEvent(Struct):
    """Where a single event is in its file."""

    side: Annotated[str, one_of("whose file", "control", "test")]
    file: Annotated[str, Meta(description="name of the trace file")]
    ts: Annotated[float, Meta(description="start in µs, as in the file")]


LineAmount = Annotated[Amount | None, Meta(description="null where the trace does not tell, and of nodes in no line")]
LineFirst = Annotated[FirstEvent | None, Meta(description="of a single event; else null")]


class ExplanationLine(Struct):
    """One line: a cause of the step's change. Lines, exposure and rest add up to the change."""

    label: Annotated[str, Meta(description="what changed")]
    trail: Annotated[list[str], Meta(description="the labels around it in the tree, from the outermost on")]
    control_us: Annotated[float, Meta(description="all of its time in the step, waited for or not, µs per step")]
    test_us: Annotated[float, Meta(description="the same on the test side")]
    delta_us: Annotated[float, Meta(description="what of the step's change it accounts for, µs per step")]
    effect: Annotated[
        str, one_of("the effect that is most of it (docs/explanation.md)", "presence", "amount", "speed", "time")
    ]
    what: Annotated[str, Meta(description="what happened, in words; may be empty")]
    amount: LineAmount
    reasons: list[CauseReason]
    significance: Significance
    first: LineFirst


class Effects(Struct):
    """What a node's change is made of, µs per step; together it is delta_us."""

    presence: Annotated[float, Meta(description="work of one side only")]
    amount: Annotated[float, Meta(description="more or less work")]
    speed: Annotated[float, Meta(description="time per unit of work")]
    time: Annotated[float, Meta(description="longer or shorter where the amount is not known")]
    exposure: Annotated[float, Meta(description="the same work, now on or off the critical path")]


class ExplanationNode(Struct):
    """A part of the step. Its children add up to it: what is below 1 % is one child of kind rest."""

    label: Annotated[str, Meta(description="what it is")]
    kind: Annotated[
        str,
        one_of(
            "part: named work; group: matched work of one name; replaced: what one side has in place of what the "
            "other has; event: a single event; rest: all that is smaller",
            *("step", "part", "group", "replaced", "event", "rest"),
        ),
    ]
    control_us: Annotated[float, Meta(description="all of its time in the step, waited for or not, µs per step")]
    test_us: Annotated[float, Meta(description="the same on the test side")]
    path_control_us: Annotated[float, Meta(description="its time on the critical path, µs per step")]
    path_test_us: Annotated[float, Meta(description="the same on the test side")]
    delta_us: Annotated[float, Meta(description="path_test_us - path_control_us: its part of the step's change")]
    effects: Effects
    amount: LineAmount
    reasons: list[CauseReason]
    significance: Annotated[Significance | None, Meta(description="null of nodes in no line")]
    first: LineFirst
    children: list[ExplanationNode]


class Explanation(Struct):
    """Why the step changed (docs/explanation.md): lines, exposure_us and rest_us add up to change_us."""

    facts: list[Fact]
    lines: Annotated[
        list[ExplanationLine], Meta(description="in the direction of the step's change first, the largest first")
    ]
    exposure_us: Annotated[float, Meta(description="the same work, now on or off the critical path, µs per step")]
    rest_us: Annotated[float, Meta(description="what is in no line, µs per step")]
    change_us: Annotated[float, Meta(description="change of the critical path of the step, µs")]
    tree: ExplanationNode


class HealthNote(Struct):
    """What was dropped, repaired or guessed while the traces were read."""

    code: Annotated[str, Meta(description="stable code (docs/health.md)")]
    message: str
    count: Annotated[int, Meta(description="events or files concerned")]


class Health(Struct):
    """Health notes of both sides."""

    control: list[HealthNote]
    test: list[HealthNote]


class DiffDocument(Struct):
    """A comparison of two sets. Times are µs per step, counts per step, both means; null where something is unknown or
    was not tested.
    """

    schema: Literal["tracediff.diff/1"]
    control: Set
    test: Set
    comparability: Comparability
    verdict: Verdict
    answer: Annotated[Answer, Meta(description="the answer in sentences, as every output has it")]
    unprofiled: Annotated[Unprofiled | None, Meta(description="null where a side has no such steps")]
    step_time: StepTime
    gpu_time: GpuTime
    host_time: Annotated[
        WorkTime | None,
        Meta(description="self time of operators if neither side has a GPU, else null"),
    ]
    ops: Annotated[list[Op], Meta(description="all operations, the largest change of self time first")]
    common_change: Annotated[
        float, Meta(description="relative change that all tested operations have in common; 0 where none was tested")
    ]
    families: Annotated[list[FamilyChange], Meta(description="work by family, the largest change first")]
    tables: Annotated[
        dict[str, list[Row]],
        Meta(description="tables that both sets were loaded with (docs/analysis.md), the largest change first"),
    ]
    explanation: Annotated[Explanation | None, Meta(description="why the step changed; null if compare refused")]
    health: Health
