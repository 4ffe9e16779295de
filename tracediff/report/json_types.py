"""The JSON document of a comparison as types (schema ``tracediff.diff/1``): what each key means, and in which unit.

The fields are in the order in which they are written. `docs/site/json_schema.py` makes the published JSON
Schema from these types; docs/reference/json.md is the same in prose.
"""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from tracediff.diff.preflight import CAUTION, OK, REFUSED, Reason
from tracediff.diff.verdict import DiffUnprofiled, DiffVerdict
from tracediff.explain.lines import Amount
from tracediff.explain.reasons import CauseReason
from tracediff.ingest.model.health import Note
from tracediff.present.answer import Answer
from tracediff.present.columns import FAMILIES, GROUPS, OPS, STATES
from tracediff.present.limits import Limit
from tracediff.report.json_text import JsonObject, one_of
from tracediff.source.changed_code import ChangedCode

Row = dict[str, str | float | None]


class Set(JsonObject):
    """One set: which runs, ranks and steps, on which device."""

    label: str
    """name of the set in reports"""
    files: list[str]
    """names of the trace files, without folders"""
    runs: int
    """number of runs"""
    ranks: list[int]
    """ranks, ascending"""
    steps_used: list[int]
    """numbers of the used steps, ascending"""
    gpu: list[str]
    """names of the GPUs; empty without GPU events"""
    torch: str | None
    """version of torch; null where it was not recorded"""
    driver: str | None
    """version of CUDA or HIP; null where it was not recorded"""
    unprofiled_us: float | None
    """median step without the profiler, in µs; null where the collector did not measure it"""


class Preflight(JsonObject):
    """Whether the two sets are comparable."""

    level: Annotated[str, one_of(OK, CAUTION, REFUSED)]
    """refused: the sides cannot be compared, unless compare is told to (--force)"""


class DiffComparability(Preflight):
    """The preflight: whether the two sets are comparable."""

    reasons: list[Reason]
    """what differs; empty where nothing does"""


T = TypeVar("T")


class Sides(JsonObject, Generic[T]):
    """What both sides have of the same thing."""

    control: T
    test: T


class BothSides(Sides[float]):
    """A time of both sides, in µs."""


class Limits(Sides[Limit]):
    """What limits both sides."""


class SidesTime(JsonObject):
    """A time of both sides."""

    control_us: float
    """µs per step"""
    test_us: float
    """µs per step"""
    delta_us: float
    """test − control, µs per step"""


class DiffStepTime(SidesTime):
    """The step account: where the time of a step goes."""

    states: list[STATES.json_type]  # type: ignore[name-defined]  # made from its columns
    """states in order of precedence"""
    foreign_gpu_us: BothSides
    """part of the GPU states in which all work was launched outside the used steps, µs per step"""
    range_control_us: tuple[float, float] | None
    """the shortest and the longest used step, in µs; null without steps"""
    range_test_us: tuple[float, float] | None
    """the shortest and the longest used step, in µs; null without steps"""
    limits: Limits | None
    """the larger part of the critical path of both sides, and how long their GPUs are busy; null where it is unknown"""
    draining_us: BothSides
    """how long the GPU ran earlier work before the first used step, per run; in no period"""
    residual_us: float
    """part of the change that the states do not explain: 0"""


class DiffWorkTime(SidesTime):
    """Work of both sides in groups; matched + placed + added + removed + unattributed = delta."""

    count_control: float
    """occurrences per step; a mean, so it may be a fraction"""
    count_test: float
    """occurrences per step; a mean, so it may be a fraction"""
    groups: list[GROUPS.json_type]  # type: ignore[name-defined]  # made from its columns
    """all work, the largest change first"""
    matched_us: float
    """change within matched groups with members on both sides, µs per step"""
    placed_us: float
    """change within groups of the same module or family in which too much differs to pair members, µs per step"""
    added_us: float
    """change by groups that only test has, µs per step"""
    removed_us: float
    """change by groups that only control has, µs per step"""
    unattributed_us: float
    """change by work kept out of matching; a health note gives the reason. µs per step"""
    residual_us: float
    """part of the change that the parts do not explain: 0"""


class TensorCoreShare(Sides[float | None]):
    """Part of kernel time on tensor cores (0 to 1); null without kernels on both sides."""


class OtherEvents(JsonObject):
    """GPU events that belong to no used step: totals of the whole set."""

    control_count: int
    """events of the whole set, not per step"""
    control_us: float
    """µs of the whole set, not per step"""
    test_count: int
    """events of the whole set, not per step"""
    test_us: float
    """µs of the whole set, not per step"""


class DiffGpuTime(DiffWorkTime):
    """The kernel account: the summed durations of GPU events, in groups. All 0 where there is no GPU."""

    busy_control_us: float
    """union of the events per GPU, summed over GPUs, µs per step"""
    busy_test_us: float
    """the same on the test side"""
    overlap_control_us: float
    """control_us − busy_control_us"""
    overlap_test_us: float
    """test_us − busy_test_us"""
    tensor_core_share: TensorCoreShare
    spilled: OtherEvents
    """events whose launch is not in the file"""
    outside: OtherEvents
    """events launched outside every step"""


class FactRow(JsonObject):
    """Something that differs between the recordings; it carries no time."""

    code: str
    """stable code (docs/explanation.md)"""
    text: str
    """what differs, in a sentence without a full stop"""
    control: str
    """value on the control side; may be empty"""
    test: str
    """value on the test side; may be empty"""


class LineSignificance(JsonObject):
    """What the runs of both sides say of a line's time."""

    result: Annotated[str, one_of("faster", "slower", "same", "unclear", "untested", "overlapping")]
    """significance of the change of time between runs"""
    q_value: float | None
    """p-value corrected for the number of tests (Benjamini–Hochberg); null where untested"""
    interval: tuple[float, float] | None
    """95 % confidence interval of the relative change; null where untested"""


class FirstEvent(JsonObject):
    """Where a single event is in its file."""

    side: Annotated[str, one_of("control", "test")]
    """whose file"""
    file: str
    """name of the trace file"""
    ts: float
    """start in µs, as in the file"""


class TimedPart(JsonObject):
    """A part of the step, with all of its time and that on the critical path, µs per step."""

    label: str
    """what it is, of a line what changed"""
    control_us: float
    """all of its time in the step, waited for or not"""
    test_us: float
    """the same on the test side"""
    path_control_us: float
    """its time on the critical path; of lines and the rest together, the step's"""
    path_test_us: float
    """the same on the test side"""
    amount: Amount | None
    """null where the trace does not tell, and of nodes in no line"""
    reasons: list[CauseReason]
    first: FirstEvent | None
    """of a single event; else null"""


class CauseRow(TimedPart):
    """One line: a cause of the step's change. Lines, exposure and rest add up to the change."""

    trail: list[str]
    """the labels around it in the tree, from the outermost on"""
    delta_us: float
    """what of the step's change it accounts for itself, as far as the step can wait for it, µs per step"""
    effect: Annotated[str, one_of("presence", "amount", "speed", "time")]
    """the effect that is most of it (docs/explanation.md)"""
    what: str
    """what happened, in words; may be empty"""
    significance: LineSignificance


class NodeEffects(JsonObject):
    """What a node's change is made of, µs per step; together it is delta_us."""

    presence: float
    """work of one side only"""
    amount: float
    """more or less work"""
    speed: float
    """time per unit of work"""
    time: float
    """longer or shorter where the amount is not known"""
    exposure: float
    """the same work, now on or off the critical path"""


class ExplanationNode(TimedPart):
    """A part of the step. Its children add up to it: what is below 1 % is one child of kind rest."""

    kind: Annotated[str, one_of(*("step", "part", "group", "replaced", "event", "rest"))]
    """part: named work; group: matched work of one name; replaced: what one side has in place of what the other has;
    event: a single event; rest: all that is smaller
    """
    delta_us: float
    """path_test_us - path_control_us: its part of the step's change"""
    effects: NodeEffects
    significance: LineSignificance | None
    """null of nodes in no line"""
    children: list[ExplanationNode]


class DiffExplanation(JsonObject):
    """Why the step changed (docs/explanation.md): lines, exposure_us and rest_us add up to change_us."""

    facts: list[FactRow]
    lines: list[CauseRow]
    """in the direction of the step's change first, the largest first"""
    exposure_us: float
    """the same work, now on or off the critical path, µs per step"""
    rest_us: float
    """what is in no line, µs per step"""
    change_us: float
    """change of the critical path of the step, µs"""
    profiled: bool
    """whether that is of the steps that were profiled; false where these changed in the other direction than the steps
    without the profiler, which are then explained: as GPU work and time in which the GPU is idle
    """
    tree: ExplanationNode


class Health(Sides[tuple[Note, ...]]):
    """Health notes of both sides."""


class DiffDocument(JsonObject, tag_field="schema", tag="tracediff.diff/1"):
    """A comparison of two sets. Times are µs per step, counts per step, both means; null where something is unknown or
    was not tested.
    """

    control: Set
    test: Set
    comparability: DiffComparability
    verdict: DiffVerdict
    answer: Answer
    """the answer in sentences, as every output has it"""
    unprofiled: DiffUnprofiled | None
    """null where a side has no such steps"""
    step_time: DiffStepTime
    gpu_time: DiffGpuTime
    host_time: DiffWorkTime | None
    """self time of operators if neither side has a GPU, else null"""
    ops: list[OPS.json_type]  # type: ignore[name-defined]  # made from its columns
    """all operations, the largest change of self time first"""
    common_change: float
    """relative change that all tested operations have in common; 0 where none was tested"""
    families: list[FAMILIES.json_type]  # type: ignore[name-defined]  # made from its columns
    """work by family, the largest change first"""
    tables: dict[str, list[Row]]
    """tables that both sets were loaded with (docs/analysis.md), the largest change first"""
    changed_code: ChangedCode | None
    """the changed lines that changed work runs for; null without --source"""
    explanation: DiffExplanation | None
    """why the step changed; null if compare refused"""
    health: Health
