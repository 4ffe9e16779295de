"""The table of a collection: what each variant costs to build and to run, and how much faster it is than the first."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Annotated, Any

from msgspec import Meta, field

from tracediff.aggregate.averages import op_average, used_steps
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.preflight import different_results, not_finite
from tracediff.diff.statistics.runs import estimate
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.manifest import Manifest, read_collection, read_manifest
from tracediff.structs import FrozenStruct

Seconds = Annotated[
    float | None, Meta(description="in s, measured in the first run, which starts without a compile cache")
]


class VariantRow(FrozenStruct, kw_only=True):
    """One variant of a collection: medians over runs of each run's own figure; null where unknown."""

    variant: str
    runs: int = 0
    """number of runs"""
    build_s: Seconds = None
    first_step_s: Seconds = None
    warm_first_step_s: float | None = None
    """in s, median over the later runs, which find what the first run compiled"""
    step_us: float | None = None
    """median over runs of the median unprofiled step, in µs"""
    iqr_us: float | None = None
    """mean over runs of the interquartile range of a run's steps, in µs"""
    items_per_s: float | None = None
    """examples per second, such as images, at the median step; null if unknown"""
    speedup: float | None = None
    """step time of the first variant / step time; null for the first variant"""
    speedup_low: float | None = None
    """lower end of the 95 % confidence interval; null with fewer than two runs per side"""
    speedup_high: float | None = None
    """upper end of the same interval"""
    peak_bytes: int | None = None
    """largest peak memory of any run: on the GPU, or on the host if there is no GPU"""
    kernels: float | None = None
    """GPU kernels per step; null without a GPU"""
    ops: float | None = None
    """operator calls per step"""
    graph_breaks: int | None = None
    """graph breaks of the first run; null if not compiled"""
    overhead: float | None = None
    """profiled / unprofiled step time − 1"""
    contended: int = 0
    """runs that other processes disturbed"""
    clocks_error: str | None = None
    """why the GPU's clocks could not be read in a run; null if they were"""
    different: str | None = None
    """what the variant computed otherwise than the first one, by more than rounding explains; null if it computed the
    same, or if that is unknown
    """
    not_finite: str | None = None
    """the step, first or fourth, whose result or gradients are not all numbers; null if they are"""
    lost_format: dict[str, int] = field(default_factory=dict)
    """operators that lose the channels_last memory format, and how often in a step"""
    fx_nodes: list[FxNode] = field(default_factory=list)
    """with --annotate fx: the nodes of the graph, the longest first; else empty"""
    failed: str | None = None
    """which run failed and why; it and later ones are missing"""


class CollectionTable(FrozenStruct, tag_field="schema", tag="tracediff.table/1"):
    """The table of a collection: what each variant costs to build and to run."""

    name: str
    """name of the collected workload or function"""
    size: str | None
    """size of the workload; null for your own code"""
    environment: dict[str, Any]
    """versions, device and settings of the first variant, from its manifest"""
    rows: list[VariantRow]
    """variants, in the order in which they were given"""


def collection_table(out: Path) -> CollectionTable:
    """The table of the collection in ``out``.

    Raises:
        TracediffError: there is none, or a manifest cannot be read.
    """
    facts = read_collection(out)
    manifests = {
        v.variant: read_manifest(out / v.folder) for v in facts.variants if (out / v.folder / "manifest.json").is_file()
    }
    if not facts.variants or (not manifests and not any(v.failed for v in facts.variants)):
        raise TracediffError(out, "the collection contains no variant", "run tracediff collect again")
    first = next(iter(manifests.values()), None)
    rows: list[VariantRow] = []
    for v in facts.variants:
        if v.variant in manifests:
            base = manifests.get(facts.variants[0].variant) if rows else None
            row = _row(out / v.folder, manifests[v.variant], base)
            rows.append(row.replace(failed=row.failed or v.failed))
        else:
            rows.append(VariantRow(variant=v.variant, failed=v.failed or "no run of it is complete"))
    return CollectionTable(facts.name, facts.size, first.environment if first else {}, rows)


def _row(folder: Path, manifest: Manifest, base: Manifest | None) -> VariantRow:
    """The row of the variant in ``folder``, compared with ``base`` if that is another one."""
    runs = manifest.runs
    if not runs:
        return VariantRow(variant=manifest.variant, failed="its manifest lists no run")
    step_us = manifest.unprofiled_us
    spreads = [_iqr([s.wall_us for s in r.unprofiled_steps]) for r in runs if r.unprofiled_steps]
    memory = [r.peak_memory_bytes.device or r.peak_memory_bytes.host for r in runs]
    compiled = [r.compile for r in runs if r.compile]
    speedup, low, high = _speedup(base, manifest) if base else (None, None, None)
    (traces,) = load_sets([folder], timelines=False)
    kernels, ops = _counts(traces)
    cold = next((run for run in runs if run.run == 1), None)
    warm = [run.first_step_s for run in runs if run.run != 1 and run.compile and run.first_step_s is not None]
    return VariantRow(
        variant=manifest.variant,
        runs=len(runs),
        build_s=cold.build_s if cold else None,
        first_step_s=cold.first_step_s if cold else None,
        warm_first_step_s=median(warm) if warm else None,
        step_us=step_us,
        items_per_s=1e6 * manifest.items / step_us if manifest.items and step_us else None,
        lost_format=manifest.lost_format,
        fx_nodes=fx_nodes(traces, manifest.fx_nodes) if manifest.fx_nodes else [],
        iqr_us=mean(spreads) if spreads else None,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        peak_bytes=max((m for m in memory if m is not None), default=None),
        kernels=kernels,
        ops=ops,
        graph_breaks=len(compiled[0].graph_breaks) if compiled else None,
        overhead=_overhead(traces, step_us),
        contended=sum(r.contended for r in runs),
        clocks_error=next((r.clocks_error for r in runs if r.clocks_error), None),
        not_finite=not_finite(manifest),
        different=str(other) if (other := different_results(base, manifest)) else None,
    )


def _overhead(traces: TraceSet, unprofiled_us: float | None) -> float | None:
    """What the profiler adds to a step, as `compare` has it: the medians over runs of the median period of the used
    steps in the traces and of the median step without the profiler, as a quotient − 1.
    """
    periods = [median(s.period_ns for s in used_steps(traces, run)) / 1000 for run in traces.runs]
    return median(periods) / unprofiled_us - 1 if periods and unprofiled_us else None


def _iqr(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return high - low


def _speedup(base: Manifest, manifest: Manifest) -> tuple[float | None, float | None, float | None]:
    """The quotient of the medians, and the 95 % interval of the verdict's test; without one where there is no test."""
    if not (base.unprofiled_us and manifest.unprofiled_us):
        return None, None, None
    difference = estimate(*([math.log(us) for us in side.run_medians_us] for side in (base, manifest)))
    speedup = base.unprofiled_us / manifest.unprofiled_us
    if difference.interval is None:
        return speedup, None, None
    return speedup, math.exp(-difference.interval[1]), math.exp(-difference.interval[0])


def _counts(traces: TraceSet) -> tuple[float | None, float]:
    """(GPU kernels per step, operator calls per step)."""
    average = op_average(traces)
    kernels, ops = (
        sum(n for (c, _), (n, _, _) in average.rows.items() if c == category) / average.denominator
        for category in ("kernel", "cpu_op")
    )
    return (kernels if traces.has_gpu else None), ops


PREFIX = "fx:"
"""Of the scopes that `tracediff.collect` records for nodes."""


class FxNode(FrozenStruct):
    """One node of an FX graph, per step."""

    node: str
    """its name in the graph"""
    calls: str
    """what it calls, such as call_module Linear"""
    us: float
    """wall time of its scope per step, in µs"""
    share: float
    """part of the time of all nodes"""


def fx_nodes(traces: TraceSet, calls: dict[str, str]) -> list[FxNode]:
    """The nodes with a scope, the longest first.

    Args:
        calls: node → what it calls, from the manifest.
    """
    average = op_average(traces)
    times = {
        name.removeprefix(PREFIX): total / average.denominator / 1000
        for (_, name), (_, total, _) in average.rows.items()
        if name.startswith(PREFIX)
    }
    whole = sum(times.values())
    return [
        FxNode(node, calls.get(node, ""), us, us / whole if whole else 0.0)
        for node, us in sorted(times.items(), key=lambda item: (-item[1], item[0]))
    ]
