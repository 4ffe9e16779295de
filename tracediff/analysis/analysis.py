"""`Analysis`: all results of one set."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.call_tree import CallTree
from tracediff.aggregate.side import Side
from tracediff.analysis.finding import Finding
from tracediff.analysis.shares import Operation, Share
from tracediff.profile.tables.schema import TableSchema


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All results of one set. Counts and times per step are integer numerators: x / scale events, x / scale ns.

    Attributes:
        scale: the common denominator.
        side: the files, ranks and steps of the set.
        period: the step time. states: name → time; they sum to it.
        foreign: GPU time launched outside the used steps. draining: per run, see `StepTime`.
        work: Σ durations of GPU events, without a GPU of the self time of operators. busy: union of GPU events per GPU,
            summed.
        unattributed: the part of `work` that a health note keeps out of the views.
        tensor_cores: part of kernel time on tensor cores, None without kernels.
        views: family, phase, module, op, kernel → the work summed by it, largest first.
        tree: the calls, with the work below them.
        operations: by self time. tables: the further tables with which the set was loaded: (schema, rows of key and
            numerators).
        findings: the causes of its step time, and facts about it.
    """

    scale: int
    side: Side
    period: int
    states: tuple[Share, ...]
    foreign: int
    draining: int
    work: int
    busy: int
    unattributed: int
    tensor_cores: float | None
    views: dict[str, tuple[Share, ...]]
    tree: CallTree
    operations: tuple[Operation, ...]
    tables: tuple[tuple[TableSchema, tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]], ...]
    findings: tuple[Finding, ...] = ()

    def us(self, numerator: int) -> float:
        """Microseconds of a time numerator: the one division."""
        return numerator / (self.scale * 1000)

    def number(self, numerator: int) -> float:
        """Events per step of a count numerator: the one division."""
        return numerator / self.scale
