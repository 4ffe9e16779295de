"""At which stage of torch.compile results or times turn, in a collection of its backends (``--bisect-backend``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tracediff.collected.variants import VariantRow
from tracediff.formatting import time_unit

STAGES = {
    "eager": "without torch.compile",
    "compile:backend=eager": "Dynamo captures graphs",
    "compile:backend=aot_eager": "AOTAutograd traces the backward pass",
    "compile": "Inductor generates code",
}
"""Variant → what it adds to the one before it."""
MINIFIER = {"compile:backend=aot_eager": "dynamo", "compile": "aot"}
"""Stage → TORCHDYNAMO_REPRO_AFTER. The minifier compares a graph with its backend: a wrong graph is no case for it."""
GRAPH = (
    "TORCH_LOGS=graph_code shows what Dynamo captured: look for torch.compiler.is_compiling(), globals that change, "
    "and side effects"
)
CRASHES, DIFFERS = 2, 4
"""TORCHDYNAMO_REPRO_LEVEL for errors, and for wrong results."""


def stage_lines(rows: Sequence[VariantRow]) -> list[str]:
    """Where it turns, and how to make a small program of it; nothing for other collections."""
    stages = [row for row in rows if row.variant in STAGES]
    if [row.variant for row in stages] != list(STAGES):
        return []
    return [*_turn(stages), *_times(stages)]


def _turn(stages: Sequence[VariantRow]) -> list[str]:
    for row in stages:
        if row.failed or row.different:
            what = f"fails: {row.failed}" if row.failed else f"computes something else: {row.different}"
            after, level = MINIFIER.get(row.variant), CRASHES if row.failed else DIFFERS
            minified = (
                f"TORCHDYNAMO_REPRO_AFTER={after} TORCHDYNAMO_REPRO_LEVEL={level} has torch's minifier write a small "
                "program that shows it"
            )
            return [
                f"From {row.variant} on ({STAGES[row.variant]}) the step {what}",
                minified if after else GRAPH,
            ]
    return ["Every stage of torch.compile computes the same, as far as that was checked"]


def _times(stages: Sequence[VariantRow]) -> list[str]:
    known = [(row.variant, row.step_us) for row in stages if row.step_us and row.runs > row.contended]
    if len(known) < len(stages):
        return []
    unit = time_unit([us for _, us in known])
    (_, before), (variant, after) = max(pairwise(known), key=lambda pair: abs(pair[1][1] - pair[0][1]))
    where = f"{variant} ({STAGES[variant]})"
    return [f"The step time changes most at {where}: {unit.plain(before)} → {unit.text(after)}"]
