"""The table of a collection: what each variant costs to build and to run, and how much faster it is than the first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, quantiles, stdev
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tracediff.aggregate.averages import op_average
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.manifest import Manifest, read_collection, read_manifest
from tracediff.report.to_json import json_text

LEAST_SD = 0.005
"""Floor of the standard deviation of log step times: a few runs may agree by chance."""


Seconds = Annotated[
    float | None, Meta(description="in s, measured in the first run, which starts without a compile cache")
]


@dataclass(frozen=True, kw_only=True)
class VariantRow:
    """One variant of a collection: medians over runs of each run's own figure; null where unknown."""

    variant: str
    runs: Annotated[int, Meta(description="number of runs")] = 0
    build_s: Seconds = None
    first_step_s: Seconds = None
    step_us: Annotated[float | None, Meta(description="median over runs of the median unprofiled step, in µs")] = None
    iqr_us: Annotated[
        float | None, Meta(description="mean over runs of the interquartile range of a run's steps, in µs")
    ] = None
    speedup: Annotated[
        float | None, Meta(description="step time of the first variant / step time; null for the first variant")
    ] = None
    speedup_low: Annotated[
        float | None,
        Meta(description="lower end of the 95 % confidence interval; null with fewer than two runs per side"),
    ] = None
    speedup_high: Annotated[float | None, Meta(description="upper end of the same interval")] = None
    peak_bytes: Annotated[
        int | None, Meta(description="largest peak memory of any run: on the GPU, or on the host if there is no GPU")
    ] = None
    kernels: Annotated[float | None, Meta(description="GPU kernels per step; null without a GPU")] = None
    ops: Annotated[float | None, Meta(description="operator calls per step")] = None
    graph_breaks: Annotated[int | None, Meta(description="graph breaks of the first run; null if not compiled")] = None
    overhead: Annotated[float | None, Meta(description="profiled / unprofiled step time − 1")] = None
    contended: Annotated[int, Meta(description="runs that other processes disturbed")] = 0
    failed: Annotated[str | None, Meta(description="why the variant has no runs")] = None


@dataclass(frozen=True)
class CollectionTable:
    """A collection: its name and size, the environment of its first variant, and a row per variant."""

    name: str
    size: str | None
    environment: dict[str, Any]
    rows: list[VariantRow]

    def to_json(self) -> str:
        """The JSON document of schema ``tracediff.table/1`` (docs/reference/table.md), with a new line at its end."""
        return json_text(TableDocument("tracediff.table/1", self.name, self.size, self.environment, self.rows))


class TableDocument(Struct):
    """The table of a collection: what each variant costs to build and to run."""

    schema: Literal["tracediff.table/1"]
    name: Annotated[str, Meta(description="name of the collected workload or function")]
    size: Annotated[str | None, Meta(description="size of the workload; null for your own code")]
    environment: Annotated[
        dict[str, Any], Meta(description="versions, device and settings of the first variant, from its manifest")
    ]
    rows: Annotated[list[VariantRow], Meta(description="variants, in the order in which they were given")]


def collection_table(out: Path) -> CollectionTable:
    """The table of the collection in ``out``.

    Raises:
        TracediffError: there is none, or a manifest cannot be read.
    """
    facts = read_collection(out)
    manifests = {
        v.variant: read_manifest(out / v.folder) for v in facts.variants if not v.failed and (out / v.folder).is_dir()
    }
    if not facts.variants or (not manifests and not any(v.failed for v in facts.variants)):
        raise TracediffError(str(out), "the collection contains no variant", "run tracediff collect again")
    first = next((manifests[v.variant] for v in facts.variants if v.variant in manifests), None)
    base = facts.variants[0].variant
    rows = []
    for v in facts.variants:
        if v.variant in manifests:
            rows.append(_row(out / v.folder, manifests[v.variant], manifests.get(base), is_base=v.variant == base))
        else:
            rows.append(VariantRow(variant=v.variant, failed=v.failed or "its folder is missing"))
    return CollectionTable(facts.name, facts.size, first.environment if first else {}, rows)


def _row(folder: Path, manifest: Manifest, base: Manifest | None, is_base: bool) -> VariantRow:
    runs = manifest.runs
    if not runs:
        return VariantRow(variant=manifest.variant, failed="its manifest lists no run")
    steps = _step_times(manifest)
    spreads = [_iqr([s.wall_us for s in r.unprofiled_steps]) for r in runs if r.unprofiled_steps]
    overheads = [
        median(s.wall_us for s in r.profiled_steps) / median(s.wall_us for s in r.unprofiled_steps) - 1
        for r in runs
        if r.profiled_steps and r.unprofiled_steps
    ]
    memory = [r.peak_memory_bytes.device or r.peak_memory_bytes.host for r in runs]
    compiled = [r.compile for r in runs if r.compile]
    speedup, low, high = None, None, None
    if not is_base and base is not None and (base_steps := _step_times(base)) and steps:
        speedup, low, high = _speedup(base_steps, steps)
    kernels, ops = _counts(folder)
    return VariantRow(
        variant=manifest.variant,
        runs=len(runs),
        build_s=runs[0].build_s,
        first_step_s=runs[0].first_step_s,
        step_us=median(steps) if steps else None,
        iqr_us=mean(spreads) if spreads else None,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        peak_bytes=max((m for m in memory if m is not None), default=None),
        kernels=kernels,
        ops=ops,
        graph_breaks=len(compiled[0].graph_breaks) if compiled else None,
        overhead=median(overheads) if overheads else None,
        contended=sum(r.contended for r in runs),
    )


def _step_times(manifest: Manifest) -> list[float]:
    """The median unprofiled step of each run that has some, µs."""
    return [median(s.wall_us for s in r.unprofiled_steps) for r in manifest.runs if r.unprofiled_steps]


def _iqr(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return high - low


def _speedup(base: list[float], steps: list[float]) -> tuple[float, float | None, float | None]:
    """base / steps on the logs of run medians, with the wider of Welch's and Student's 95 % interval, which is missing
    if a side has one run.
    """
    a, b = [math.log(x) for x in base], [math.log(x) for x in steps]
    difference = mean(a) - mean(b)
    if min(len(a), len(b)) < 2:
        return math.exp(difference), None, None
    from scipy.stats import t

    va, vb = max(stdev(a), LEAST_SD) ** 2, max(stdev(b), LEAST_SD) ** 2
    na, nb = len(a), len(b)
    welch = math.sqrt(va / na + vb / nb)
    freedom = (va / na + vb / nb) ** 2 / ((va / na) ** 2 / (na - 1) + (vb / nb) ** 2 / (nb - 1))
    pooled = math.sqrt(((na - 1) * va + (nb - 1) * vb) / (na + nb - 2) * (1 / na + 1 / nb))
    half = max(t.ppf(0.975, freedom) * welch, t.ppf(0.975, na + nb - 2) * pooled)
    return math.exp(difference), math.exp(difference - half), math.exp(difference + half)


def _counts(folder: Path) -> tuple[float | None, float]:
    """(GPU kernels per step, operator calls per step)."""
    (traces,) = load_sets([folder])
    average = op_average(traces)
    kernels, ops = (
        sum(n for (c, _), (n, _, _) in average.ops.items() if c == category) / average.denominator
        for category in ("kernel", "cpu_op")
    )
    return (kernels if traces.has_gpu else None), ops
