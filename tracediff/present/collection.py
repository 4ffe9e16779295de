"""Titles and cells of a collection's table, the same for terminal and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from tracediff import bounds
from tracediff.collected import CollectionTable, FxNode, VariantRow
from tracediff.formatting import Unit, byte_unit, count, percent, plural, signed_percent, time_unit
from tracediff.present.tables import ColumnFormat, amount_format

HEAD = (
    "variant",
    "runs",
    "build",
    "first",
    "warm",
    "step",
    "IQR",
    "items/s",
    "speed-up",
    "95 %",
    "peak",
    "kernels",
    "ops",
    "breaks",
    "profiler",
)


def title(collection: CollectionTable) -> str:
    """What was collected, how large, where, with which torch."""
    environment = collection.environment
    threads = environment.get("threads")
    where = environment.get("gpu") or ("CPU" if threads is None else f"CPU, {plural(threads, 'thread')}")
    return " · ".join(
        str(x) for x in (collection.name, collection.size, where, f"torch {environment.get('torch', '?')}") if x
    )


def formats_of(rows: Sequence[VariantRow]) -> dict[str, ColumnFormat]:
    """Column of times or bytes → its format; without those that no row has."""
    amounts: dict[str, tuple[Callable[[Iterable[float]], Unit], Sequence[float | None], float]] = {
        "build": (time_unit, [row.build_s for row in rows], 1e6),
        "first": (time_unit, [row.first_step_s for row in rows], 1e6),
        "warm": (time_unit, [row.warm_first_step_s for row in rows], 1e6),
        "step": (time_unit, [row.step_us for row in rows], 1.0),
        "IQR": (time_unit, [row.iqr_us for row in rows], 1.0),
        "peak": (byte_unit, [row.peak_bytes for row in rows], 1.0),
    }
    formats = {}
    for name, (unit_of, values, factor) in amounts.items():
        if recorded := [factor * value for value in values if value is not None]:
            formats[name] = amount_format(unit_of, recorded)
    return formats


def heads(formats: dict[str, ColumnFormat]) -> list[str]:
    """`HEAD` with units."""
    return [f"{name} {formats[name].unit}".rstrip() if name in formats else name for name in HEAD]


def cells_of(row: VariantRow, formats: dict[str, ColumnFormat]) -> list[str]:
    """The texts of a row, one for each of `HEAD`; empty where a value is unknown."""

    def text(column: str, value: float | None, factor: float = 1.0) -> str:
        return "" if value is None else formats[column].text(factor * value)

    interval = "" if row.speedup_low is None else f"{row.speedup_low:.2f}–{row.speedup_high:.2f}"
    return [
        row.variant,
        str(row.runs),
        text("build", row.build_s, 1e6),
        text("first", row.first_step_s, 1e6),
        text("warm", row.warm_first_step_s, 1e6),
        text("step", row.step_us),
        text("IQR", row.iqr_us),
        "" if row.items_per_s is None else count(row.items_per_s),
        "" if row.speedup is None else f"{row.speedup:.2f}",
        interval,
        text("peak", row.peak_bytes),
        *("" if number is None else count(number) for number in (row.kernels, row.ops, row.graph_breaks)),
        "" if row.overhead is None else signed_percent(row.overhead),
    ]


def notes_of(row: VariantRow) -> list[str]:
    """What is to be known of a row besides its cells."""
    notes = []
    if row.failed:
        reason = row.failed.replace(f"--variant {row.variant}: ", "", 1)
        notes.append(f"{row.variant} failed: {reason}")
    if row.contended:
        notes.append(f"{row.variant}: other processes disturbed {row.contended} of {row.runs} runs")
    if row.clocks_error:
        notes.append(f"{row.variant}: whether the GPU was throttled is unknown: {row.clocks_error}")
    if row.not_finite:
        notes.append(f"{row.variant}: the result or the gradients of the {row.not_finite} step are not finite")
    if row.different:
        notes.append(f"{row.variant} does not do the same work: {row.different}")
    if row.lost_format:
        operators = ", ".join(f"{name} ({count(times)})" for name, times in row.lost_format.items())
        notes.append(f"{row.variant}: the channels_last format is lost at {operators} per step")
    return notes


def fx_lines(variant: str, nodes: Sequence[FxNode]) -> list[str]:
    """The first nodes in aligned columns; nothing without nodes."""
    if not nodes:
        return []
    unit = time_unit([node.us for node in nodes])
    rows = [(n.node, n.calls, unit.text(n.us), percent(n.share)) for n in nodes[: bounds.FX_NODES]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left_out = [f"… and {count(len(nodes) - bounds.FX_NODES)} more"] if len(nodes) > bounds.FX_NODES else []
    return [
        f"FX nodes of {variant}, per step",
        *(
            f"  {node:{widths[0]}}  {target:{widths[1]}}  {time:>{widths[2]}}  {share:>{widths[3]}}"
            for node, target, time, share in rows
        ),
        *left_out,
    ]


STAGES = {
    "eager": "without torch.compile",
    "compile:backend=eager": "Dynamo captures graphs",
    "compile:backend=aot_eager": "AOTAutograd traces the backward pass",
    "compile": "Inductor generates code",
}
"""Variant → what it adds to the one before it."""
MINIFIER = {"compile:backend=aot_eager": "dynamo", "compile": "aot"}
"""Stage → TORCHDYNAMO_REPRO_AFTER. The minifier compares a graph with its backend, so it cannot find a wrong graph."""
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
    timed = [(row.variant, row.step_us) for row in stages if row.step_us and row.runs > row.contended]
    if len(timed) < len(stages):
        return []
    unit = time_unit([us for _, us in timed])
    (_, before), (variant, after) = max(pairwise(timed), key=lambda pair: abs(pair[1][1] - pair[0][1]))
    where = f"{variant} ({STAGES[variant]})"
    return [f"The step time changes most at {where}: {unit.plain(before)} → {unit.text(after)}"]
