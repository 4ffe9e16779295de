"""The files that describe a collection: `manifest.json` of each variant, `collection.json` above them. What else they
hold is not read. What torch.compile did is described alike by a manifest and by a log.
"""

from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import msgspec

from tracediff.ingest.files.documents import read_json
from tracediff.structs import FrozenStruct

REMEDY = "give a folder that `tracediff collect -o` wrote, or collect again with this version"
Scalar = str | int | float | bool | None
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Norm = Annotated[float, msgspec.Meta(ge=0)]
StepTime = Annotated[float, msgspec.Meta(ge=1e-3, le=1e15)]
"""In µs; a step takes time."""


class Sample(FrozenStruct):
    """One step: its wall time in µs."""

    wall_us: StepTime


class GraphBreak(FrozenStruct):
    """One graph break, with its place and reason."""

    file: str
    line: Count
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return place + (self.reason.splitlines()[0] if self.reason else "")


class CompileFacts(FrozenStruct):
    """What torch.compile did in one run."""

    graph_count: Count
    graph_breaks: list[GraphBreak]


class CompiledKernel(FrozenStruct):
    """One kernel that inductor made.

    Attributes:
        name: as traces have it. graph: key of its graph in inductor's cache, None where unknown.
        phase: forward, backward or inference; empty where unknown.
        ops: its original operators. lines: of code outside of torch, ``model.py(12): forward``.
    """

    name: str
    graph: str | None
    phase: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]


class CompiledCall(FrozenStruct):
    """A call that the code of a compiled graph makes: of an operator, or of a kernel.

    Attributes:
        graph: key of the graph in inductor's cache. name: as traces have it. lines: as for `CompiledKernel`.
    """

    graph: str
    name: str
    lines: tuple[str, ...]


class TorchLog(FrozenStruct):
    """What torch.compile did, by its log.

    Attributes:
        graph_breaks, recompiles: each with its place and reason. compile_us: by `tracediff.ingest.torch_log.PHASES`.
        rank: that wrote it, None where unknown. calls: of each graph in order.
    """

    kernels: tuple[CompiledKernel, ...]
    graph_breaks: tuple[GraphBreak, ...]
    recompiles: tuple[GraphBreak, ...]
    compile_us: tuple[float, ...]
    rank: int | None = None
    calls: tuple[CompiledCall, ...] = ()


class PeakMemory(FrozenStruct):
    """Peak bytes on the host, and allocated on the device."""

    host: Bytes | None = None
    device: Bytes | None = None


class Computed(FrozenStruct):
    """What a step computed: the norms of what it returned and of the gradients that it left.

    Attributes:
        value, gradients: None where there are none. finite: whether both are numbers; else they are None.
    """

    value: Norm | None = None
    gradients: Norm | None = None
    finite: bool = True


class Results(FrozenStruct):
    """What the first and the fourth step computed.

    Attributes:
        dtype: the least exact one. is_random: whether the step draws random numbers, so that results may differ.
    """

    dtype: str
    is_random: bool
    first: Computed
    later: Computed


class RunFacts(FrozenStruct, kw_only=True):
    """One run: seconds to build and to the end of the first step, its steps without the profiler. What is None or empty
    was not measured: a loop of the user's records traces and peak memory only.

    Attributes:
        contended: whether other processes disturbed it.
        clocks_error: why the clocks of the GPU could not be read; None if they were, and without a GPU.
        results: None in manifests of versions that did not check them.
    """

    run: Count
    peak_memory_bytes: PeakMemory
    contended: bool = False
    build_s: Seconds | None = None
    first_step_s: Seconds | None = None
    unprofiled_steps: list[Sample] = msgspec.field(default_factory=list)
    clocks_error: str | None = None
    compile: CompileFacts | None = None
    results: Results | None = None


class Settings(FrozenStruct, kw_only=True):
    """The settings of a collection, or of a recorded loop."""

    device: str
    threads: Count
    detail: str


class CompiledNode(FrozenStruct):
    """One node of a compiled graph: its original op and module."""

    name: str
    op: str
    module: str


class CompiledGraph(FrozenStruct):
    """One graph that inductor compiled.

    Attributes:
        id: its number in the kernels' names (``graph_<id>_``). phase: forward or backward.
        kernels: ``name:k`` of each kernel in ascending k as the graph launches them → names of the nodes that it
            computes.
    """

    nodes: list[CompiledNode]
    kernels: dict[str, list[str]] = msgspec.field(default_factory=dict)
    id: int | None = None
    phase: str = "forward"


class Manifest(FrozenStruct):
    """One variant of a collection.

    Attributes:
        modules: profiler's name (``Linear_7``) → qualified name.
        provenance: each compiled graph: which kernel computes what.
        items: examples that a step handles; None if unknown.
        lost_format: operators that lose the channels_last format → how often in a step.
        fx_nodes: nodes of the annotated FX graph → what each calls.
        runs: in order.
    """

    schema: Literal["tracediff.manifest/1"]
    variant: str
    settings: Settings
    environment: dict[str, Scalar]
    runs: list[RunFacts]
    workload: str | None = None
    target: str | None = None
    size: str | None = None
    git_commit: str | None = None
    world_size: Count = 1
    modules: dict[str, str] = msgspec.field(default_factory=dict)
    provenance: list[CompiledGraph] = msgspec.field(default_factory=list)
    items: Count | None = None
    lost_format: dict[str, Count] = msgspec.field(default_factory=dict)
    fx_nodes: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def run_medians_us(self) -> list[float]:
        """The median step without the profiler of each run that has such steps."""
        return [median(step.wall_us for step in run.unprofiled_steps) for run in self.runs if run.unprofiled_steps]

    @property
    def unprofiled_us(self) -> float | None:
        """Median over runs of the median step without the profiler, in µs."""
        return median(self.run_medians_us) if self.run_medians_us else None


class Collected(FrozenStruct):
    """One variant of a collection: its folder in that of the collection, or why it failed."""

    variant: str
    folder: Annotated[str, msgspec.Meta(max_length=255, pattern=r"^(?!\.\.?$)[^/\0]+$")]
    failed: str | None = None


class CollectionFacts(FrozenStruct):
    """A whole collection, its variants in order."""

    schema: Literal["tracediff.collection/1"]
    name: str
    variants: list[Collected]
    size: str | None = None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the variant in ``folder``.

    Raises:
        TracediffError: it is missing, no JSON, or of another form.
    """
    return read_json(folder / "manifest.json", Manifest, "a manifest of this version", REMEDY)


def read_collection(folder: Path) -> CollectionFacts:
    """The contents of ``collection.json`` in ``folder``.

    Raises:
        TracediffError: it is missing, no JSON, or of another form.
    """
    return read_json(folder / "collection.json", CollectionFacts, "a collection of this version", REMEDY)
