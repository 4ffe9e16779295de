"""Pairs of traces of two sizes: what a comparison costs grows with the size, not with its square."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from build_trace import call, document, kernel, op, step
from odd_values import text

from fuzz.invariants import require
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.report.to_json import to_json

FEW, TIMES = 200, 4
"""Kernels of the smaller pair, and how many times as many the larger one has."""
GROWTH = 9
"""How many times as much the larger pair may cost: more than TIMES for what is worth sorting, less than its square."""
LEAST_S, LEAST_BYTES = 0.15, 2 << 20
"""Costs of the smaller pair below which they are mostly the same for any size."""

NAMES: tuple[Callable[[int, int, int], str], ...] = (
    lambda side, k, _count: f"kernel_{side}_{k}x",
    lambda _side, k, _count: f"kernel_{k}x",
    lambda side, k, count: f"kernel_{k + side * count // 2}x",
    lambda side, k, count: f"kernel_{k * 7919 % count if side else k}x",
    lambda side, k, _count: f"gemm_{side}_{k}x_tn",
    lambda side, k, _count: f"triton_poi_fused_add_mul_op{k}_{side}x_0",
    lambda _side, k, _count: f"softmax_{k % 7}x",
    lambda _side, _k, _count: "ampere_sgemm_128x64_tn",
)
"""Names of kernels by side, position and number: of one side, of both, in another order, of a family, recurring."""
OPERATORS = ("", "aten::add", "aten::op{k}", "aten::op{side}_{k}", "aten::mm")
"""Operators that launch them; none for a replay."""


def use_pair(content: bytes, folder: Path, _random: Random) -> None:
    """Compare pairs of two sizes and of the structure that the seed ``content`` chooses; neither time nor memory grows
    out of proportion.
    """
    chosen = Random(content)
    structure = [(chosen.choice(NAMES), chosen.choice(OPERATORS), chosen.choice((1, 2, 10))) for _ in range(2)]
    if chosen.random() < 0.5:
        structure[1] = (structure[0][0], *structure[1][1:])
    (few_s, few_bytes), (many_s, many_bytes) = (
        _cost([_trace(side, count, *structure[side]) for side in (0, 1)], folder) for count in (FEW, TIMES * FEW)
    )
    require(many_s <= GROWTH * max(few_s, LEAST_S), f"{few_s:.2f} → {many_s:.2f} s for {TIMES} times the size")
    require(
        many_bytes <= GROWTH * max(few_bytes, LEAST_BYTES),
        f"{few_bytes:,} → {many_bytes:,} bytes for {TIMES} times the size",
    )


def _trace(side: int, count: int, name: Callable[[int, int, int], str], operator: str, shared: int) -> bytes:
    """One step of ``count`` kernels, of which each operator launches ``shared``; without operators, of one replay."""
    events: list[dict[str, Any]] = [step(1, 0, 20 * count + 100)]
    if not operator:
        events.append(call("cudaGraphLaunch", 5, 5, 1))
    for k in range(count):
        group = k // shared
        if operator and k % shared == 0:
            events.append(op(operator.format(side=side, k=group), 10 + 20 * k, 15))
            events.append(call("cudaLaunchKernel", 12 + 20 * k, 5, group + 2))
        events.append(kernel(name(side, k, count), 25 + 20 * k, 3 + k % 11, group + 2 if operator else 1))
    return text(document(events))


def _cost(traces: list[bytes], folder: Path) -> tuple[float, int]:
    """Processor seconds of a comparison, and the most bytes that it holds."""
    paths = [folder / f"{side}.json" for side in range(len(traces))]
    for path, content in zip(paths, traces, strict=True):
        path.write_bytes(content)
    tracemalloc.start()
    try:
        begin = time.process_time()
        control, test = load_sets([str(path) for path in paths])
        to_json(compare_sets(control, test, force=True))
        return time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
