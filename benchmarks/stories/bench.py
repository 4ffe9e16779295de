"""Scores explanations on planted causes: is the planted cause the first line, and is a line false?

python benchmarks/stories/bench.py [--seeds N] [--only TEXT] [--trace TEXT] [--misses] prints a row per kind of change.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from judge import Verdict, judge
from plant import PLANTS, Planted, renamed
from retime import Event, Trace

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("TRACEDIFF_TRACES") or ROOT.parent / "shared" / "traces")
NAMES = ("timesformer_h100", "timesformer_mi300", "hta_ns", "resnet50_workers4", "bertsmall_h100", "bertsmall_mi300",
         "falconsai_h100", "falconsai_mi300", "tinylm_compile", "tinylm_cudagraph", "transformer_h100_run1",
         "hta_sampled", "sglang_decode_mi300", "vllm_graph_mi300", "dlrm_8ranks", "triton_mi300", "mi210_gpu_only",
         "kineto_gpu_metrics")  # fmt: skip
"""The slowest to read first."""
LARGE = ("hta_ns", "resnet50_workers4", "timesformer_h100", "timesformer_mi300")
"""Traces of which fewer variants are made."""
ALIKE = "all names renamed alike"


def main() -> None:
    """Score every kind of change on several traces and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="only changes whose name contains this")
    parser.add_argument("--trace", default="", help="only traces whose name contains this")
    parser.add_argument("--misses", action="store_true", help="print the lines of cases that fail")
    asked = parser.parse_args()
    names = [name for name in NAMES if asked.trace in name]
    scores: dict[str, list[Verdict]] = defaultdict(list)
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(partial(_of_trace, seeds=asked.seeds, only=asked.only), names):
            for name, verdict, text in found:
                scores[name].append(verdict)
                if asked.misses and text:
                    print(text)
    print(*table(scores), sep="\n")


def table(scores: dict[str, list[Verdict]]) -> Iterator[str]:
    """The rows of the table."""
    yield "| planted | cases | causes | first | in two | cases with a false line | with a wrong effect |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    every = [verdict for verdicts in scores.values() for verdict in verdicts]
    kinds = [kind for kind in (*PLANTS, ALIKE) if kind in scores]
    for name, verdicts in (*((kind, scores[kind]) for kind in kinds), ("all", every)):
        causes = [v for v in verdicts if v.matters]
        parts = [
            f"{100 * sum(x) / len(x):.1f} %" if x else ""
            for x in ([v.first for v in causes], [v.second for v in causes])
        ]
        false, effects = (
            sum(bool(x) for x in found) for found in ([v.false for v in verdicts], [v.effects for v in verdicts])
        )
        yield f"| {name} | {len(verdicts)} | {len(causes)} | {' | '.join(parts)} | {false} | {effects} |"


def _of_trace(name: str, seeds: int, only: str) -> list[tuple[str, Verdict, str]]:
    trace = read(TRACES / name)
    control = loaded(trace, trace.events)
    out = []
    for kind, planted, seed in variants(name, trace, (seeds + 1) // 2 if name in LARGE else seeds):
        if only not in kind:
            continue
        test = loaded(trace, trace.apply(planted.change))
        comparison = compare_sets(*((test, control) if planted.turned else (control, test)), force=True)
        verdict = judge(comparison, planted.truth, -1 if planted.turned else 1)
        out.append((kind, verdict, _told(f"{name}, {kind}, seed {seed}", comparison, planted, verdict)))
        if seed == 0 and only in ALIKE and name not in LARGE and kind in ("one kernel slower", "one long call"):
            out.append((ALIKE, *_alike(name, trace, planted, comparison)))
    return out


def variants(name: str, trace: Trace, seeds: int, kinds: tuple[str, ...] = ()) -> Iterator[tuple[str, Planted, int]]:
    """(kind, variant, seed) of what can be planted into a trace."""
    for kind, plant in PLANTS.items():
        for seed in range(1 if kind == "an exact copy" else seeds):
            if (not kinds or kind in kinds) and (planted := plant(trace, random.Random(f"{name} {kind} {seed}"))):
                yield kind, planted, seed


def _alike(name: str, trace: Trace, planted: Planted, comparison: Comparison) -> tuple[Verdict, str]:
    """Whether both sides under other names have the same tree."""
    sides = [loaded(trace, renamed(events)) for events in (trace.events, trace.apply(planted.change))]
    other = compare_sets(*sides, force=True)
    is_same = shape(comparison) == shape(other)
    text = "" if is_same else f"{name}, {ALIKE}:\n{lines_of(comparison)}\nnow\n{lines_of(other)}"
    return Verdict(True, is_same, is_same, [], []), text


def shape(comparison: Comparison) -> list[tuple[float, ...]]:
    """The numbers of all nodes of the tree and of its lines, without their names."""
    explanation = comparison.explanation
    assert explanation is not None
    nodes = [(n.depth, *n.path.tolist(), *n.total.tolist(), *n.parts.tolist()) for n in explanation.root.walk()]
    lines = [(cause.delta_us, cause.control_us, cause.test_us) for cause in explanation.causes]
    return sorted(
        [*(tuple(round(x, 1) for x in row) for row in nodes), *(tuple(round(x, 3) for x in row) for row in lines)]
    )


def read(folder: Path) -> Trace:
    """The first trace of ``folder``."""
    file = min(f for f in folder.iterdir() if ".json" in f.name)
    data = file.read_bytes()
    return Trace(msgspec.json.decode(gzip.decompress(data) if file.suffix == ".gz" else data))


def loaded(trace: Trace, events: list[Event]) -> TraceSet:
    """The set of one file with ``events``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        document: dict[str, Any] = {"schemaVersion": 1, **trace.document, "traceEvents": events}
        path.write_bytes(msgspec.json.encode(document))
        (traces,) = load_sets([str(path)])
        return traces


def lines_of(comparison: Comparison) -> str:
    """The explanation as plain text."""
    explanation = comparison.explanation
    assert explanation is not None
    rows = ["  step {:.1f} → {:.1f} µs ({:+.1f})".format(*explanation.root.path / 1000, explanation.change_us)]
    rows += [f"  ! {fact.code}: {fact.text}" for fact in explanation.facts]
    rows += [
        f"    {' / '.join(cause.trail)} / {cause.label}: {cause.control_us:.1f} → {cause.test_us:.1f} "
        f"({cause.delta_us:+.1f}) {cause.effect} {cause.what} {'; '.join(r.text for r in cause.reasons)}"
        for cause in explanation.causes
    ]
    rows.append(
        f"    exposure {', '.join(f'{k} {part.exposure_us:+.1f}' for k, part in explanation.remainders.items())}, "
        f"rest {explanation.rest_us:+.1f}"
    )
    return "\n".join(rows)


def _told(case: str, comparison: Comparison, planted: Planted, verdict: Verdict) -> str:
    if (verdict.first or not verdict.matters) and not verdict.false and not verdict.effects:
        return ""
    truth = planted.truth
    gpu = {display[:70]: round(us, 1) for display, us in truth.gpu.items()}
    host = [(sorted(names)[:6], round(us, 1)) for names, us in truth.host]
    wrong = "".join(f"\n  FALSE {cause.label}" for cause in verdict.false) + "".join(
        f"\n  EFFECT {cause.label}: {cause.effect}" for cause in verdict.effects
    )
    first = "" if verdict.first or not verdict.matters else "\n  NOT FIRST"
    return f"{case}: {gpu} {host} {round(truth.operators, 1) or ''} {truth.fact}{first}{wrong}\n{lines_of(comparison)}"


if __name__ == "__main__":
    main()
