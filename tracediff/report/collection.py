"""The table of a collection: what each variant costs to build and to run, and how much faster it is than the first."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median, quantiles, stdev
from typing import Any

from tracediff.aggregate.averages import op_average
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.manifest import Manifest, read_collection, read_manifest

LEAST_SD = 0.005
"""Standard deviation of log step times below which runs are taken as no more alike: few runs agree by chance."""


@dataclass(frozen=True, kw_only=True)
class VariantRow:
    """One variant. Times in s or µs as named; medians over runs of the run's own figure; None where not known.

    Attributes:
        build_s, first_step_s: of the first run, which finds no compile cache.
        step_us, iqr_us: median over runs of the median unprofiled step, and the mean interquartile range within a run.
        speedup, speedup_low, speedup_high: the first variant's step time / this one's, with its 95 % interval from two
            runs a side on.
        peak_bytes: on the device where there is one, else on the host.
        kernels: GPU kernels a step, None without a GPU. ops: operator calls a step.
        overhead: profiled / unprofiled step time − 1.
        contended: runs that other processes disturbed.
        failed: why there are no runs.
    """

    variant: str
    runs: int = 0
    build_s: float | None = None
    first_step_s: float | None = None
    step_us: float | None = None
    iqr_us: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    peak_bytes: int | None = None
    kernels: float | None = None
    ops: float | None = None
    graph_breaks: int | None = None
    overhead: float | None = None
    contended: int = 0
    failed: str | None = None


@dataclass(frozen=True)
class CollectionTable:
    """A collection: its name and size, the environment of its first variant, and a row a variant."""

    name: str
    size: str | None
    environment: dict[str, Any]
    rows: list[VariantRow]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"schema": "tracediff.table/1", **asdict(self)}


def collection_table(out: Path) -> CollectionTable:
    """The table of the collection in ``out``.

    Raises:
        TracediffError: there is none, or a manifest cannot be read.
    """
    facts = read_collection(out)
    manifests = {
        v.variant: read_manifest(out / v.folder) for v in facts.variants if not v.failed and (out / v.folder).is_dir()
    }
    if not manifests and not any(v.failed for v in facts.variants):
        raise TracediffError(str(out), "holds no variant", "collect again")
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
    steps = _step_times(manifest)
    overheads = [
        median(s.wall_us for s in r.profiled_steps) / median(s.wall_us for s in r.unprofiled_steps) - 1 for r in runs
    ]
    memory = [r.peak_memory_bytes.device or r.peak_memory_bytes.host for r in runs]
    compiled = [r.compile for r in runs if r.compile]
    speedup, low, high = (None, None, None) if is_base or base is None else _speedup(_step_times(base), steps)
    kernels, ops = _counts(folder)
    return VariantRow(
        variant=manifest.variant,
        runs=len(runs),
        build_s=runs[0].build_s,
        first_step_s=runs[0].first_step_s,
        step_us=median(steps),
        iqr_us=mean(_iqr([s.wall_us for s in r.unprofiled_steps]) for r in runs),
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        peak_bytes=max((m for m in memory if m is not None), default=None),
        kernels=kernels,
        ops=ops,
        graph_breaks=len(compiled[0].graph_breaks) if compiled else None,
        overhead=median(overheads),
        contended=sum(r.contended for r in runs),
    )


def _step_times(manifest: Manifest) -> list[float]:
    """The median unprofiled step of each run, µs."""
    return [median(s.wall_us for s in r.unprofiled_steps) for r in manifest.runs]


def _iqr(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return high - low


def _speedup(base: list[float], steps: list[float]) -> tuple[float, float | None, float | None]:
    """base / steps on the logs of run medians, with the wider of Welch's and Student's 95 % interval; none with one run
    on a side.
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
    """(GPU kernels a step, operator calls a step)."""
    (traces,) = load_sets([folder])
    average = op_average(traces)
    kernels, ops = (
        sum(n for (c, _), (n, _, _) in average.ops.items() if c == category) / average.denominator
        for category in ("kernel", "cpu_op")
    )
    return (kernels if traces.has_gpu else None), ops
