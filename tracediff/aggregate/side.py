"""`Side`: what control or test was made of."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.averages import UsedStep, communication_us, rank_states
from tracediff.aggregate.representative_step import TypicalStep, typical_step
from tracediff.aggregate.traceset import TraceSet
from tracediff.ingest.health import Note
from tracediff.ingest.manifest import Manifest
from tracediff.ingest.torch_log import TorchLog
from tracediff.profile.placement.gpu_events import NOT_RECORDED


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one side was made of.

    Attributes:
        label: its name in the report.
        files: file names without folders.
        ranks, steps_used, steps_recorded: numbers, ascending.
        devices: names of the GPUs in the metadata, which need not have any event. torch: version, where recorded.
        steps: run name → its used steps.
        notes: health notes.
        rank_states: rank → state → µs per used step of that rank.
        typical: the step that a timeline shows, None for a snapshot.
        communication_us: rank → communication kernels per used step, in µs.
        manifest: what the collector wrote of it, None for traces from elsewhere.
        torch_log: what logs of torch.compile say, None without logs.
    """

    label: str
    files: tuple[str, ...]
    runs: int
    ranks: tuple[int, ...]
    steps_used: tuple[int, ...]
    steps_recorded: tuple[int, ...]
    devices: tuple[str, ...]
    torch: str | None
    whole_file: bool
    has_gpu: bool
    steps: dict[str, list[UsedStep]]
    notes: tuple[Note, ...]
    communication_us: dict[int, float]
    rank_states: dict[int, dict[str, float]]
    typical: TypicalStep | None
    manifest: Manifest | None
    torch_log: TorchLog | None = None

    @property
    def gpu(self) -> tuple[str, ...]:
        """Names of the GPUs whose events the tables show."""
        return self.devices if self.has_gpu else ()

    @property
    def unrecorded_launches(self) -> int:
        """Launches in files without any GPU event."""
        return sum(note.count for note in self.notes if note.code == NOT_RECORDED)

    @property
    def graph_breaks(self) -> tuple[str, ...] | None:
        """Where and why the graph broke in the last compiled run; None without a manifest or a log that says."""
        runs = [r.compile for r in self.manifest.runs if r.compile] if self.manifest else []
        if runs:
            return tuple(map(str, runs[-1].graph_breaks))
        return tuple(map(str, self.torch_log.graph_breaks)) if self.torch_log else None

    @property
    def recompiles(self) -> tuple[str, ...] | None:
        """Where and why code was compiled again; None without a log of torch.compile."""
        return tuple(map(str, self.torch_log.recompiles)) if self.torch_log else None

    @property
    def unprofiled_us(self) -> float | None:
        """Median over runs of the median step without the profiler, where the collector measured it."""
        return self.manifest.unprofiled_us if self.manifest else None


def side_of(traces: TraceSet, steps: dict[str, list[UsedStep]]) -> Side:
    """What ``traces`` are made of; ``steps`` are the used steps by run."""
    profiles = traces.profiles
    torch = sorted({p.origin.torch for p in profiles if p.origin.torch})
    return Side(
        label=traces.label,
        files=tuple(p.origin.file.name for p in profiles),
        runs=len(traces.runs),
        ranks=tuple(traces.ranks),
        steps_used=tuple(traces.steps_used),
        steps_recorded=tuple(traces.steps_recorded),
        devices=tuple(sorted({g for p in profiles for g in p.origin.gpus})),
        torch=", ".join(torch) or None,
        whole_file=all(p.whole_file for p in profiles),
        has_gpu=traces.has_gpu,
        steps=steps,
        notes=traces.notes,
        communication_us=communication_us(traces),
        rank_states=rank_states(traces),
        typical=typical_step(traces, steps),
        manifest=traces.manifest,
        torch_log=traces.torch_log,
    )
