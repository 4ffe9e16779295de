"""`TraceSet`: the profiles of one side, arranged as runs and ranks, and the steps of them that count."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracediff.aggregate.number_ranges import ranges
from tracediff.aggregate.recorded import Recorded
from tracediff.formatting import plural
from tracediff.ingest.health import Note
from tracediff.ingest.manifest import Manifest
from tracediff.ingest.torch_log import TorchLog
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.model import Profile
from tracediff.profile.selection import Selection
from tracediff.profile.tables import ALL


@dataclass
class Run:
    """One execution: rank → its files in order (several where one worker wrote several cycles)."""

    name: str
    ranks: dict[int, list[Profile]] = field(default_factory=dict)


def world_size(run: Run) -> int:
    """How many ranks the program of ``run`` has, as its files record; 0 where none does."""
    return max((p.origin.world_size or 0 for files in run.ranks.values() for p in files), default=0)


@dataclass(kw_only=True, repr=False)
class TraceSet:
    """One side of a comparison.

    Attributes:
        label: its short name.
        runs: the runs in order.
        selection: the steps used.
        notes: health notes of the set and of all its files.
        manifest: what the collector wrote of it, None for traces from elsewhere.
        torch_log: what logs of torch.compile say of its compiled kernels, None without logs.
        families: rules that tell what kind of work a name is.
        tables: names of the further tables that it was loaded with; ``all`` for those that its files have.
        recorded: of what, in a history; None for other sets.
    """

    label: str
    runs: list[Run]
    selection: Selection
    notes: tuple[Note, ...]
    manifest: Manifest | None = None
    torch_log: TorchLog | None = None
    families: Families = DEFAULT
    tables: tuple[str, ...] = (ALL,)
    recorded: Recorded | None = None

    @property
    def profiles(self) -> list[Profile]:
        """All files' profiles."""
        return [p for run in self.runs for files in run.ranks.values() for p in files]

    @property
    def ranks(self) -> list[int]:
        """All ranks, ascending."""
        return sorted({r for run in self.runs for r in run.ranks})

    @property
    def has_gpu(self) -> bool:
        """Whether any file holds GPU events."""
        return any(p.has_gpu for p in self.profiles)

    @property
    def steps_used(self) -> list[int]:
        """The numbers of the used steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers[self.selection.used(p)]})

    @property
    def steps_recorded(self) -> list[int]:
        """The numbers of all steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers})

    def __repr__(self) -> str:
        runs, ranks = plural(len(self.runs), "run"), plural(len(self.ranks), "rank")
        steps = f"steps {ranges(self.steps_used)} of {ranges(self.steps_recorded)}"
        return f"<TraceSet {self.label}: {runs}, {ranks}, {steps}>"
