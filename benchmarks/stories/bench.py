"""Scores findings on planted causes: is the planted cause the first finding?

python benchmarks/stories/bench.py [--seeds N] [--only TEXT] [--misses] prints a row per kind of change.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import tempfile
from collections import defaultdict
from pathlib import Path

from late_rank import late_rank
from plant import PLANTS, Event, Planted

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.findings import Finding

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("TRACEDIFF_TRACES") or ROOT.parent / "shared" / "traces")
GPU_BOUND = ("tinylm_compile", "tinylm_cudagraph", "hta_control", "hta_test", "timesformer_h100", "timesformer_mi300")
ANY = (*GPU_BOUND, "resnet50_workers4", "falconsai_h100", "bertsmall_mi300", "transformer_h100_run1", "falconsai_mi300")
NEEDS_GPU_BOUND = ("every gemm 10 % slower", "one kernel twice as slow", "an operator added", "pinned → pageable")
"""Changes of GPU work, which are causes only where the step waits for the GPU."""
LATE = "a rank late"


def main() -> None:
    """Score every kind of change on several traces and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="only changes whose name contains this")
    parser.add_argument("--misses", action="store_true", help="print the findings of cases that fail")
    asked = parser.parse_args()
    scores: dict[str, list[bool]] = defaultdict(list)
    for trace in ANY:
        events = read(TRACES / trace)
        control = _loaded(events)
        for name, plant in PLANTS.items():
            if asked.only not in name or (name in NEEDS_GPU_BOUND and trace not in GPU_BOUND):
                continue
            for seed in range(asked.seeds):
                planted = plant(events, random.Random(f"{trace} {name} {seed}"))
                if planted:
                    _score(scores[name], f"{trace}, {name}, seed {seed}", control, planted, asked.misses)
    if asked.only in LATE:
        for seed in range(3 * asked.seeds):
            scores[LATE].append(late_rank(TRACES / "dlrm_8ranks", random.Random(seed), asked.misses))
    print("| planted | cases | first |\n|---|--:|--:|")
    for name, hits in scores.items():
        print(f"| {name} | {len(hits)} | {100 * sum(hits) / len(hits):.0f} % |")
    every = [hit for hits in scores.values() for hit in hits]
    print(f"| all | {len(every)} | {100 * sum(every) / len(every):.1f} % |")


def read(folder: Path) -> list[Event]:
    """The events of the only trace of ``folder``."""
    (file,) = (f for f in folder.iterdir() if ".json" in f.name)
    data = file.read_bytes()
    document = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    found: list[Event] = document["traceEvents"] if isinstance(document, dict) else document
    return found


def _loaded(events: list[Event]) -> TraceSet:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        (traces,) = load_sets([str(path)])
        return traces


def _score(hits: list[bool], case: str, control: TraceSet, planted: Planted, shows_misses: bool) -> None:
    findings = compare_sets(control, _loaded(planted.events), force=True).findings
    hit = is_first(findings, planted)
    hits.append(hit)
    if shows_misses and not hit:
        print(f"{case}: wanted {planted.codes or 'nothing'} {planted.named}")
        for finding in findings[:4]:
            print(
                f"    {finding.code} [{finding.weight_us:+.1f} µs] {finding.title}",
                *(f"| {e.name}" for e in finding.evidence[:2]),
            )


def is_first(findings: tuple[Finding, ...], planted: Planted) -> bool:
    """Whether the first finding names the planted cause; if there is none, whether no finding claims a change."""
    if not planted.codes:
        return not any(f.weight_us for f in findings)
    if not findings:
        return False
    first = findings[0]
    text = " ".join([first.title, first.detail, *(e.name for e in first.evidence)]).lower()
    return first.code in planted.codes and (planted.named.lower() in text or first.code == "slower-kernel")


if __name__ == "__main__":
    main()
