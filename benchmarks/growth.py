"""Measures how the cost of `tracediff compare` grows, one dimension at a time, each pair in its own process.

    python benchmarks/growth.py                     # all dimensions
    python benchmarks/growth.py names steps --write # two of them, and the table and chart in docs

benchmarks/README.md explains the measurements.
"""

from __future__ import annotations

import argparse
import json
import string
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Cost, command_line, measured, write_section

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "scale.md"
CHART = DOCUMENT.parent / "images" / "growth.png"
Event = dict[str, Any]
ALLOWED = 1.1
"""Largest exponent of time."""


# The traces. Times are microseconds.


def word(number: int) -> str:
    """A word of letters for a number, so that no two names differ only in digits."""
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 26)
        letters += string.ascii_lowercase[digit]
    return letters


def launches(start: int, names: list[tuple[str, str]], slower: float) -> Iterator[Event]:
    """One operator, its launch and its kernel, 10 µs each, for each pair of an operator's and a kernel's name."""
    for position, (operator, kernel) in enumerate(names):
        ts, link = start + 10 * position, start + position
        yield {"ph": "X", "cat": "cpu_op", "name": operator, "pid": 1, "tid": 1, "ts": ts, "dur": 8}
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
        yield launch | {"ts": ts + 1, "dur": 3, "args": {"correlation": link}}
        work = {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": ts + 5}
        dur = round((6 + position % 997 / 500) * slower, 3)
        yield work | {"dur": dur, "args": {"device": 0, "stream": 7, "correlation": link}}


def trace(steps: int, names: list[tuple[str, str]], slower: float) -> Iterator[Event]:
    """``steps`` steps in which every pair of names occurs once."""
    length = 10 * len(names) + 20
    for number in range(steps):
        start = number * length
        text = f"ProfilerStep#{number}"
        yield {"ph": "X", "cat": "user_annotation", "name": text, "pid": 1, "tid": 1, "ts": start, "dur": length}
        yield from launches(start + 5, names, slower)


def with_events(size: int, slower: float) -> Iterator[Event]:
    """5 steps of 40 pairs of names, as often as needed for ``size`` events."""
    pairs = [(f"aten::{word(k)}", f"{word(k)}_kernel") for k in range(40)]
    return trace(5, pairs * max(1, size // 600), slower)


def with_steps(size: int, slower: float) -> Iterator[Event]:
    """``size`` steps of 20 pairs of names."""
    return trace(size, [(f"aten::{word(k)}", f"{word(k)}_kernel") for k in range(20)], slower)


def with_names(size: int, slower: float) -> Iterator[Event]:
    """3 steps of ``size`` kernels, each with a name of its own, of 40 operators."""
    kernel = "void at::native::{}_kernel<4, at::native::{}Functor<float>, std::array<char*, 3ul> >(int)"
    return trace(3, [(f"aten::{word(k % 40)}", kernel.format(word(k), word(k))) for k in range(size)], slower)


def with_groups(size: int, slower: float) -> Iterator[Event]:
    """3 steps of ``size`` pairs of an operator's and a kernel's name."""
    return trace(3, [(f"aten::{word(k)}", f"{word(k)}_kernel") for k in range(size)], slower)


def with_depth(size: int, slower: float) -> Iterator[Event]:
    """3 steps with 20 stacks of ``size`` nested operators, the innermost of which launches a kernel."""
    length = 20 * (2 * size + 20) + 20
    for step in range(3):
        start = step * length
        text = f"ProfilerStep#{step}"
        yield {"ph": "X", "cat": "user_annotation", "name": text, "pid": 1, "tid": 1, "ts": start, "dur": length}
        for stack in range(20):
            first = start + 5 + stack * (2 * size + 20)
            for depth in range(size):
                scope = {"ph": "X", "cat": "cpu_op", "name": f"op_{word(depth)}", "pid": 1, "tid": 1}
                yield scope | {"ts": first + depth, "dur": 2 * (size - depth) + 10}
            yield from launches(first + size, [("aten::mm", "gemm")], slower)


def with_ranks(size: int, slower: float) -> Iterator[Event]:
    """One rank's file: 3 steps of 40 pairs of names."""
    del size
    return trace(3, [(f"aten::{word(k)}", f"{word(k)}_kernel") for k in range(40)], slower)


@dataclass(frozen=True)
class Dimension:
    """What grows.

    Attributes:
        events: of one file. sizes: from the smallest to the largest.
        is_number_of_files: whether a size is a number of ranks, each with a file of its own.
    """

    events: Callable[[int, float], Iterator[Event]]
    sizes: tuple[int, ...]
    is_number_of_files: bool = False


DIMENSIONS = {
    "events": Dimension(with_events, (10_000, 30_000, 100_000, 300_000, 1_000_000)),
    "steps": Dimension(with_steps, (100, 300, 1_000, 3_000, 10_000)),
    "names": Dimension(with_names, (1_000, 3_000, 10_000, 30_000, 100_000)),
    "groups": Dimension(with_groups, (100, 300, 1_000, 3_000, 10_000)),
    "depth": Dimension(with_depth, (10, 30, 100, 300, 1_000)),
    "ranks": Dimension(with_ranks, (16, 64, 256, 1_024, 2_048), is_number_of_files=True),
}


def write_side(folder: Path, dimension: Dimension, size: int, slower: float) -> int:
    """Write one side's files, in the text layout of json.dump; returns their bytes."""
    folder.mkdir(parents=True)
    ranks = size if dimension.is_number_of_files else 1
    for rank in range(ranks):
        about = {"rank": rank, "world_size": ranks, "backend": "nccl"} if ranks > 1 else {}
        with open(folder / f"rank{rank}.json", "w") as file:
            file.write(f'{{"schemaVersion": 1, "distributedInfo": {json.dumps(about)}, "traceEvents": [\n')
            before = ""
            for event in dimension.events(size, slower):
                file.write(before + json.dumps(event))
                before = ",\n"
            file.write("\n]}\n")
    return sum(file.stat().st_size for file in folder.iterdir())


# The measurements.


@dataclass(frozen=True)
class Point:
    """One measured size; ``json`` is the bytes of the files of both sides."""

    size: int
    json: int
    cost: Cost


def measure(dimension: Dimension, runs: int) -> list[Point]:
    """The cost of every size."""
    points = []
    for size in dimension.sizes:
        with tempfile.TemporaryDirectory() as folder:
            sides = [Path(folder, side) for side in ("before", "after")]
            total = sum(write_side(side, dimension, size, slower) for side, slower in zip(sides, (1, 1.1), strict=True))
            cost = measured(command_line("compare", *sides), runs)
        if cost.fault:
            raise SystemExit(f"size {size:,}: {cost.fault}")
        points.append(Point(size, total, cost))
    return points


def exponent(points: list[Point], start: Cost) -> float:
    """Slope of log CPU time over log size, by least squares, without the time of the start of the program.

    Only sizes that cost twice as much as the start count: below that the difference is noise.
    """
    grown = [(p.size, p.cost.cpu - start.cpu) for p in points if p.cost.cpu > 2 * start.cpu]
    if len(grown) < 2:
        return float("nan")
    sizes, seconds = zip(*grown, strict=True)
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def start_cost(runs: int) -> Cost:
    """The cost of the smallest pair there is: the program's start."""
    [point] = measure(Dimension(with_steps, (2,)), runs)
    return point.cost


def table(name: str, points: list[Point], start: Cost) -> list[str]:
    """Rows of the table in Markdown, one for each size, the last one with the exponent."""
    slope = exponent(points, start)
    mark = "" if np.isnan(slope) else f"{slope:.2f} {'✓' if slope <= ALLOWED else '✗'}"
    return [
        f"| {name} | {p.size:,} | {p.json / 1e6:,.1f} MB | {p.cost.cpu:.2f} s | {p.cost.peak / 1e6:,.0f} MB | "
        f"{mark if p is points[-1] else ''} |"
        for p in points
    ]


HEADER = ["| what grows | size | files | CPU | peak memory | exponent |", "|---|--:|--:|--:|--:|--:|"]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Measure how the cost of a comparison grows.")
    parser.add_argument("dimensions", nargs="*", choices=[*DIMENSIONS, []], help="what grows (default: all)")
    parser.add_argument("--runs", type=int, default=1, help="the best of this many runs counts (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"write the table and the chart to {DOCUMENT.name}")
    args = parser.parse_args()
    start = start_cost(3)
    lines, found = list(HEADER), {}
    for name in args.dimensions or DIMENSIONS:
        found[name] = measure(DIMENSIONS[name], args.runs)
        lines += table(name, found[name], start)
        print("\n".join(lines[-len(found[name]) :]), flush=True)
    if args.write:
        write_section(DOCUMENT, "growth", "growth.py --write", lines)
        draw(found)


def draw(found: dict[str, list[Point]]) -> None:
    """CPU time against size, both relative to the smallest size, in logarithms: a line of slope 1 is linear."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, points in found.items():
        sizes = [p.size / points[0].size for p in points]
        figure.add_scatter(x=sizes, y=[p.cost.cpu for p in points], name=name, mode="lines+markers")
    figure.update_xaxes(type="log", title="size, in multiples of the smallest")
    figure.update_yaxes(type="log", title="CPU time of a comparison in s")
    figure.update_layout(template="plotly_white", width=800, height=450, margin={"l": 60, "r": 20, "t": 20, "b": 50})
    figure.write_image(CHART, scale=2)


if __name__ == "__main__":
    sys.exit(main())
