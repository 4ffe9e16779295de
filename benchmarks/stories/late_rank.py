"""A rank that is late at its first collective, so that all others wait for it there."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path

from plant import Event, complete, inserted

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.runtimes import is_communication


def late_rank(folder: Path, rng: random.Random, shows_misses: bool) -> bool:
    """Whether the first finding names the rank that was made late by 3–8 ms."""
    files = sorted(folder.iterdir())
    documents = [json.loads(gzip.decompress(file.read_bytes())) for file in files]
    late, delay = rng.randrange(len(files)), rng.uniform(3_000, 8_000)
    with tempfile.TemporaryDirectory() as place:
        for rank, (file, document) in enumerate(zip(files, documents, strict=True)):
            document["traceEvents"] = _delayed(document["traceEvents"], rank == late, delay)
            Path(place, file.name.removesuffix(".gz")).write_text(json.dumps(document))
        findings = compare_sets(*load_sets([str(folder), place])).findings
    hit = bool(findings) and findings[0].code == "straggler" and f"rank {late} " in findings[0].title
    if shows_misses and not hit:
        print(f"rank {late} late by {delay:.0f} µs")
        for finding in findings[:3]:
            print(f"    {finding.code} [{finding.weight_us:+.1f} µs] {finding.title}")
    return hit


def _delayed(events: list[Event], is_late: bool, delay: float) -> list[Event]:
    """The late rank works longer on its host before its first collective; the others are longer in that collective."""
    first = min((e for e in complete(events, "kernel") if is_communication(e["name"])), key=lambda e: e["ts"])
    correlation = first["args"]["correlation"]
    launch = next(e for e in complete(events, "cuda_runtime") if e.get("args", {}).get("correlation") == correlation)
    return inserted(events, [(launch["ts"] - 0.001 if is_late else first["ts"] + first["dur"] / 2, delay)])
