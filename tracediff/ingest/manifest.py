"""The files that describe a collection: `manifest.json` of each variant, `collection.json` above them."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

import msgspec

from tracediff.errors import TracediffError

S = TypeVar("S")


class Sample(msgspec.Struct, frozen=True):
    """One step: wall and process time in µs, and how often the system preempted it."""

    wall_us: float
    cpu_us: float
    involuntary_switches: int


class GraphBreak(msgspec.Struct, frozen=True):
    """One graph break, with its place and reason."""

    file: str
    line: int
    reason: str


class Recompile(msgspec.Struct, frozen=True):
    """One recompilation, with its place and reason."""

    function: str
    file: str
    line: int
    reason: str


class CompileFacts(msgspec.Struct, frozen=True):
    """What torch.compile did in one run; times in seconds."""

    graph_count: int
    graph_breaks: list[GraphBreak]
    recompiles: list[Recompile]
    cudagraph_skips: int
    cache_hits: int
    cache_misses: int
    compile_s: float
    backend_compile_s: float
    guards: int


class PeakMemory(msgspec.Struct, frozen=True):
    """Peak bytes on host and device."""

    host: int | None = None
    device: int | None = None


class RunFacts(msgspec.Struct, frozen=True):
    """One run: seconds to build and to the end of the first step, its steps without and with the profiler.

    Attributes:
        order: its position in the collection. attempts: how often it was collected. contended: whether other processes
            disturbed it.
        occupancy, profiled_occupancy: process time / (wall × threads) of the unprofiled and of the profiled steps;
            the latter is None where it was not measured.
    """

    run: int
    order: int
    attempts: int
    contended: bool
    build_s: float
    first_step_s: float
    unprofiled_steps: list[Sample]
    profiled_steps: list[Sample]
    occupancy: float
    peak_memory_bytes: PeakMemory
    load_average: float | None = None
    clocks: dict[str, float] | None = None
    compile: CompileFacts | None = None
    profiled_occupancy: float | None = None


class Settings(msgspec.Struct, frozen=True):
    """The settings of a collection."""

    device: str
    threads: int
    seed: int
    wait: int
    warmup: int
    active: int
    timed: int
    detail: str
    annotate: str | None = None


class Node(msgspec.Struct, frozen=True):
    """One node of a compiled graph: its original op, module and phase."""

    name: str
    op: str
    module: str
    phase: str


class CompiledGraph(msgspec.Struct, frozen=True):
    """One graph that inductor compiled.

    Attributes:
        id: its number in the kernels' names (``graph_<id>_``). phase: forward or backward.
        kernels: ``name:k`` of each kernel in ascending k as the graph launches them → names of the nodes that it
            computes.
    """

    nodes: list[Node]
    kernels: dict[str, list[str]] = {}
    id: int | None = None
    phase: str = "forward"


class Manifest(msgspec.Struct, frozen=True):
    """One variant of a collection.

    Attributes:
        modules: profiler's name (``Linear_7``) → qualified name.
        provenance: each compiled graph: which kernel computes what.
        runs: in order.
    """

    schema: Literal["tracediff.manifest/1"]
    variant: str
    settings: Settings
    environment: dict[str, Any]
    runs: list[RunFacts]
    workload: str | None = None
    target: str | None = None
    size: str | None = None
    git_commit: str | None = None
    world_size: int = 1
    interleaved: bool = False
    modules: dict[str, str] = {}
    provenance: list[CompiledGraph] = []

    @property
    def unprofiled_us(self) -> float | None:
        """Median over runs of the median step without the profiler, in µs."""
        runs = [median(s.wall_us for s in r.unprofiled_steps) for r in self.runs if r.unprofiled_steps]
        return median(runs) if runs else None


class Collected(msgspec.Struct, frozen=True):
    """One variant of a collection: its folder, or why it failed."""

    variant: str
    folder: str
    failed: str | None = None


class CollectionFacts(msgspec.Struct, frozen=True):
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
    return _read(folder / "manifest.json", Manifest)


def read_collection(folder: Path) -> CollectionFacts:
    """The contents of ``collection.json`` in ``folder``.

    Raises:
        TracediffError: it is missing, no JSON, or of another form.
    """
    return _read(folder / "collection.json", CollectionFacts)


def _read(path: Path, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise TracediffError(str(path), "no such file", "give the folder that `tracediff collect -o` wrote") from None
    except OSError as error:
        raise TracediffError(
            str(path), f"cannot be read ({(error.strerror or str(error)).lower()})", "check its permissions"
        ) from None
    except msgspec.DecodeError as error:
        raise TracediffError(
            str(path), f"not a {path.stem} of this version ({error})", "collect again with this version"
        ) from None
