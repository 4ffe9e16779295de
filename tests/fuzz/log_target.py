"""The target of logs of torch.compile: records with odd values, of another frame or lost, damaged, or both."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from accounts import assert_closes
from build_torch_log import CODE, GRAPH, PREFIX, artifact, record, stack
from build_trace import call, document, kernel, op, step
from odd_values import text

from fuzz import mutate
from fuzz.invariants import require
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.ingest.torch_log import MAPPINGS, STACKS
from tracediff.report.to_json import to_json

NAME = "triton_poi_fused_mul_relu_0"
BREAK = "Graph break in user code at /u/model.py:7\nGraph Break Reason: Unsupported: print\n"
METRICS = {"co_filename": "/u/model.py", "co_firstlineno": 5, "dynamo_cumulative_compile_time_us": 900}


def _payloads() -> list[tuple[str, Any]]:
    return [
        (STACKS, {f"{NAME}:2": [stack(3, 41)], "extern_kernels.mm:1": [stack(7)]}),
        (MAPPINGS, {"cppCodeToPost": {f"{NAME}:2": ["relu", "mul"]}, "postToPre": {"relu": ["y"], "mul": ["x"]}}),
        ("fx_graph_cache_miss", {"key": "fabc"}),
        ("recompile_reasons", ["0/0: L['x'] == 3"]),
    ]


def make_log(random: Random) -> bytes:
    """A log of two graphs, spoiled or damaged or both."""
    way = random.random()
    parts = []
    for frame in (0, 1):
        parts += [record(GRAPH, frame, dynamo_output_graph={}), record(CODE, frame, inductor_output_code={})]
        for name, payload in _payloads():
            written = text(mutate.spoil(random, payload) if way < 0.7 and random.random() < 0.3 else payload)
            parts.append(artifact(name, written.decode("utf-8", "replace"), frame))
        parts.append(record(BREAK, frame, artifact={"name": "dynamo_graph_break_reason"}))
        fields = {"compilation_metrics": dict(METRICS), "rank": frame}
        whole = text(mutate.spoil(random, fields) if way < 0.7 and random.random() < 0.3 else fields)
        parts.append(f"{PREFIX}{whole.decode('utf-8', 'replace')}\n")
    if random.random() < 0.3:
        parts = random.sample(parts, random.randint(1, len(parts)))
    content = "".join(parts).encode()
    return mutate.damage(random, content) if way > 0.5 else content


def use_log(content: bytes, folder: Path, _random: Random) -> None:
    """Compare a trace of its kernel with the same trace without the log; the log changes no time."""
    path, log = folder / "compiled.json", folder / "dedicated_log_torch_trace_rank_0.log"
    launched = [step(1, 0, 90), op("CompiledFunction", 1, 30), call("cuLaunchKernel", 2, 3, 1), kernel(NAME, 20, 40, 1)]
    path.write_bytes(text(document(launched)))
    log.write_bytes(content)
    (bare,) = load_sets([str(path)])
    (named,) = load_sets([str(path)], LoadOptions(sets=(SetOptions(torch_trace=str(log)),)))
    comparison = compare_sets(bare, named)
    assert_closes(comparison)
    require(comparison.step_time.delta == 0, "a log changes the step time")
    json.loads(to_json(comparison))
