"""`Comparison`: everything that is said of two sets."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.diff.families import TestedFamily
from tracediff.diff.findings.finding import Finding
from tracediff.diff.gpu_time import GpuTime
from tracediff.diff.groups import WorkTime
from tracediff.diff.matching.calls import Pairing
from tracediff.diff.measures import MeasureDiff
from tracediff.diff.ops import Op
from tracediff.diff.preflight import REFUSED, Comparability
from tracediff.diff.step_time import StepTime
from tracediff.diff.verdict import Verdict
from tracediff.ingest.health import Note
from tracediff.ingest.manifest import Manifest
from tracediff.profile.average import UsedStep
from tracediff.profile.calltree import CallTree
from tracediff.profile.typical import TypicalStep


@dataclass(frozen=True)
class Side:
    """What one side was made of.

    Attributes:
        label: its name in the report.
        files: file names without folders.
        ranks, steps_used, steps_recorded: numbers, ascending.
        gpu: device names. torch: version, where recorded.
        steps: run name → its used steps.
        notes: health notes.
        host_us: mean duration of a used step on the host, in µs.
        rank_states: rank → state → µs per used step of that rank.
        typical: the step that a timeline shows, None for a snapshot.
        communication_us: rank → communication kernels per used step, in µs.
        manifest: what the collector wrote of it, None for traces from elsewhere.
    """

    label: str
    files: tuple[str, ...]
    runs: int
    ranks: tuple[int, ...]
    steps_used: tuple[int, ...]
    steps_recorded: tuple[int, ...]
    gpu: tuple[str, ...]
    torch: str | None
    whole_file: bool
    has_gpu: bool
    steps: dict[str, list[UsedStep]]
    notes: tuple[Note, ...]
    host_us: float
    communication_us: dict[int, float]
    rank_states: dict[int, dict[str, float]]
    typical: TypicalStep | None
    manifest: Manifest | None

    @property
    def graph_breaks(self) -> tuple[str, ...] | None:
        """Where and why the graph broke in the last compiled run; None without a manifest that says."""
        runs = [r.compile for r in self.manifest.runs if r.compile] if self.manifest else []
        return tuple(f"{b.file}:{b.line}: {b.reason.splitlines()[0] if b.reason else ''}" for b in runs[-1].graph_breaks) if runs else None

    @property
    def unprofiled_us(self) -> float | None:
        """Median over runs of the median step without the profiler, where the collector measured it."""
        return self.manifest.unprofiled_us if self.manifest else None


@dataclass(frozen=True)
class Comparison:
    """Control and test side by side. Counts and times are integer numerators: x / scale events, x / scale nanoseconds.

    Attributes:
        scale: the common denominator.
        control, test: what the sides were made of.
        comparability: whether like was compared with like.
        verdict, step_time, gpu_time, ops: see their classes; where `comparability` is refused and not forced, gpu_time has no groups and ops is empty.
        host_time: where neither side has a GPU, the self time of operators in groups; else empty.
        trees, pairing: the call trees of both sides, and which calls are the same.
        families: what testing says of the work by family.
        findings: what explains the change, the largest part of it first.
        measures: further tables, those that both sets were loaded with.
        common_change: relative change that all tested operators have in common, 0 where none was tested.
    """

    scale: int
    control: Side
    test: Side
    comparability: Comparability
    verdict: Verdict
    step_time: StepTime
    gpu_time: GpuTime
    host_time: WorkTime
    ops: tuple[Op, ...]
    trees: tuple[CallTree, CallTree]
    pairing: Pairing
    families: tuple[TestedFamily, ...]
    common_change: float
    findings: tuple[Finding, ...] = ()
    measures: tuple[MeasureDiff, ...] = ()

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale

    @property
    def work(self) -> WorkTime:
        """What matching was done on: GPU events where there are any, else the self time of operators."""
        return self.gpu_time if self.gpu_time.groups else self.host_time

    @property
    def was_refused(self) -> bool:
        """Whether the sides were not compared."""
        return self.comparability.level == REFUSED and not self.ops
