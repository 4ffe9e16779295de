"""The flame graph as data for its script, which the report and the dashboard share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediff.diff.flame_graph import Frame, flame_graph, largest, of_one, pruned, total
from tracediff.formatting import change, part, signed_time, time
from tracediff.report.page.tables import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediff.analysis.analysis import Analysis
    from tracediff.diff.comparison import Comparison

KINDS = ("whole", "phase", "annotation", "module", "op", "kernel", "rest")
HOW = "Width: the larger side, and at least its parts. Colour: change relative to the larger side."
MOST_OF_CHANGE = 2
"""Times of the whole change up to which the title names the call that changed most: beyond it, calls only moved."""
KERNELS_FIRST = "Most calls are on one side only: inverted, equal kernels are one box."
HOW_ONE = "Width: time per step. Colour: kind of call."


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph of a page.

    Attributes:
        title: what it shows, in one sentence with its largest part or change. subtitle: how to read it.
        data: what the script reads; None where there is nothing to show, and ``title`` says why.
    """

    title: str
    subtitle: str = ""
    data: dict[str, Any] | None = None


def comparison_flame(comparison: Comparison) -> FlameGraph:
    """The flame graph of the difference."""
    if comparison.was_refused:
        return FlameGraph("The sides were not compared.")
    gpu = comparison.control.has_gpu or comparison.test.has_gpu
    frames = flame_graph(comparison.trees, comparison.pairing, comparison.scale)
    control, test = total(f.work for f in frames)
    title = f"{_what(gpu)} per step {change(comparison.us(control), comparison.us(test))}"
    name, sums = largest(frames, lambda pair: pair[1] - pair[0])
    delta = sums[1] - sums[0]
    if 0 < abs(delta) <= MOST_OF_CHANGE * abs(test - control):
        title += f"; {name} changed most, {signed_time(comparison.us(delta))}"
    alone = sum(sum(f.work) for f in frames if not all(f.work))
    how = f"{HOW} {KERNELS_FIRST}" if 2 * alone > control + test else HOW
    return _graph(title, how, frames, ("control", "test"), comparison.scale, gpu)


def analysis_flame(analysis: Analysis) -> FlameGraph:
    """The flame graph of one set."""
    gpu = analysis.side.has_gpu
    frames = of_one(analysis.tree, analysis.scale)
    whole, _ = total(f.work for f in frames)
    title = f"{_what(gpu)} per step {time(analysis.us(whole))}"
    if whole:
        name, sums = largest(frames, lambda pair: pair[0])
        title += f"; {part(sums[0], whole)} of it in {name}"
    return _graph(title, HOW_ONE, frames, ("control",), analysis.scale, gpu)


def _what(gpu: bool) -> str:
    return "GPU time" if gpu else "Self time of operators"


def _graph(title: str, subtitle: str, frames: list[Frame], sides: Sequence[str], scale: int, gpu: bool) -> FlameGraph:
    if not any(amount for f in frames for pair in f.quantities for amount in pair):
        return FlameGraph("No work belongs to a recorded call, so there is no flame graph.")
    shown, least = pruned(frames)
    names = Names()
    columns = {
        "parent": [k - frame.parent for k, frame in enumerate(shown)],
        "kind": [KINDS.index(frame.kind) for frame in shown],
        "name": [names.code(frame.name) for frame in shown],
        "instance": [-1 if frame.instance is None else frame.instance for frame in shown],
        "shapes": [names.code(frame.shapes) for frame in shown],
        "left_out": [frame.left_out for frame in shown],
        "work": [[_scaled(frame.work[k], scale) for frame in shown] for k in range(len(sides))],
        "host": [[_scaled(frame.host[k], scale) for frame in shown] for k in range(len(sides))],
        "count": [[_scaled(frame.count[k], scale) for frame in shown] for k in range(len(sides))],
    }
    data = {
        "title": title, "sides": list(sides), "gpu": gpu, "least": least,
        "kinds": list(KINDS), "names": names.texts, "frames": columns,
    }  # fmt: skip
    return FlameGraph(title, subtitle, data)


def _scaled(numerator: int, scale: int) -> float:
    """A number of ns or events, rounded to a thousandth to shorten the JSON."""
    amount = round(numerator / scale, 3)
    return int(amount) if amount == int(amount) else amount
