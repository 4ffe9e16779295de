"""Findings of how fast equal work is done: FLOPs and bytes against what the device can do. Only where both sets hold
the table `rates`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.step import BUSY_STATES
from tracediff.formatting import change, number, percents, plural
from tracediff.profile.perf_model.device_peaks import Device, device_of
from tracediff.profile.tables.rates import SCHEMA, Attained, attained

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.table_changes import TableRowDiff

COLUMNS = [column.name for column in SCHEMA.columns]
LEAST_GAIN = 0.01
"""Part of all work of a side that it would save at the other side's rate, from which a kind of work is told."""
LEAST_CHANGE = 0.1
"""Relative change of what is attained below which it counts as the same."""
SHOWN = 5
TIME, CALLS, FLOP, BYTES = (COLUMNS.index(name) for name in ("time", "calls", "flop", "bytes"))


@dataclass(frozen=True, kw_only=True)
class Same:
    """Calls of equal work that both sides make.

    Attributes:
        kind, shapes, dtype: the work. calls: how many both make, numerator over the comparison's scale.
        control, test: the columns of the table, less the calls that the other side does not make.
    """

    kind: str
    shapes: str
    dtype: str
    calls: int
    control: tuple[float, ...]
    test: tuple[float, ...]


def efficiency(comparison: Comparison) -> list[Finding]:
    """efficiency: the same work attains another part of the device's peak, or where no peak is known another rate."""
    rows = next((of.rows for of in comparison.tables if of.schema.name == "rates"), ())
    whole = sum(row.control[TIME] for row in rows), sum(row.test[TIME] for row in rows)
    kinds: dict[tuple[str, str], list[Same]] = defaultdict(list)
    for same in map(_same, rows):
        if same:
            kinds[same.kind, same.dtype].append(same)
    found = [
        finding for (kind, dtype), work in kinds.items() if (finding := _finding(comparison, kind, dtype, work, whole))
    ]
    return sorted(found, key=lambda f: (-abs(f.weight_us), f.title))[:SHOWN]


def _same(row: TableRowDiff) -> Same | None:
    """What both sides do of a row; None where one does not, or where neither FLOPs nor bytes are known."""
    calls = min(row.control[CALLS], row.test[CALLS])
    if not calls or not all(side[TIME] and (side[FLOP] or side[BYTES]) for side in (row.control, row.test)):
        return None
    control, test = (tuple(n * calls / side[CALLS] for n in side) for side in (row.control, row.test))
    kind, shapes, dtype = row.key
    return Same(kind=kind, shapes=shapes, dtype=dtype, calls=calls, control=control, test=test)


def _sides(work: list[Same]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [w.control for w in work], [w.test for w in work]


def _finding(comparison: Comparison, kind: str, dtype: str, work: list[Same], whole: tuple[int, int]) -> Finding | None:
    """The finding of one kind of work in one dtype; ``whole`` is all work of both sides."""
    devices = device_of(comparison.control.gpu), device_of(comparison.test.gpu)
    parts = [_part(dtype, side, device) for side, device in zip(_sides(work), devices, strict=True)]
    rates = [attained(dtype, [sum(column) for column in zip(*side, strict=True)], None) for side in _sides(work)]
    before, after = parts
    if before is None or after is None:
        before, after = (r.tflop_s if r.tflop_s is not None else r.gb_s for r in rates)
    if not before or not after:
        return None
    times = [sum(side[TIME] for side in sides) for sides in _sides(work)]
    gain = 1 - min(before, after) / max(before, after)
    if gain < LEAST_CHANGE or gain * times[before > after] < LEAST_GAIN * whole[before > after]:
        return None
    us = comparison.us
    shown = _rates(*rates) if None in parts else f"{percents(before, after)} of peak"
    title = f"same work, {shown}: {kind}{f' in {dtype}' if dtype else ''}"
    moved = f"{change(us(round(times[0])), us(round(times[1])))} a step, {_rates(*rates)}"
    detail = f"{plural(len(work), 'shape')} that both sides compute: {moved}.{_of_peak(devices, parts)}"
    delta = us(round(times[1] - times[0]))
    largest = sorted(work, key=lambda w: (-abs(w.test[TIME] - w.control[TIME]), w.shapes))[:SHOWN]
    return Finding(
        kinds.EFFICIENCY,
        title,
        detail,
        delta_us=delta,
        weight_us=delta * _busy(comparison),
        evidence=tuple(_evidence(comparison, w) for w in largest),
    )


def _part(dtype: str, rows: list[tuple[float, ...]], device: Device | None) -> float | None:
    """Part of the roofline that ``rows`` attain together: the time that they would take on it by the time that they
    take.
    """
    at_peak = 0.0
    for row in rows:
        share = attained(dtype, row, device).part
        if share is None:
            return None
        at_peak += share * row[TIME]
    return at_peak / sum(row[TIME] for row in rows)


def _of_peak(devices: tuple[Device | None, Device | None], parts: list[float | None]) -> str:
    if None in parts:
        return " No peak of the device is known for all of it."
    names = dict.fromkeys(d.name for d in devices if d)
    return f" The peak is that of {' and of '.join(names)}: arithmetic or memory, whichever bounds the shape."


def _rates(control: Attained, test: Attained) -> str:
    """``61.0 → 48.2 TFLOP/s``."""
    if control.tflop_s is not None and test.tflop_s is not None:
        return f"{number(control.tflop_s)} → {number(test.tflop_s)} TFLOP/s"
    return f"{number(control.gb_s or 0)} → {number(test.gb_s or 0)} GB/s"


def _evidence(comparison: Comparison, work: Same) -> Evidence:
    rates = _rates(attained(work.dtype, work.control, None), attained(work.dtype, work.test, None))
    calls = comparison.number(work.calls)
    times = comparison.us(round(work.control[TIME])), comparison.us(round(work.test[TIME]))
    return Evidence(f"{work.shapes}: {rates}", calls, calls, *times)


def _busy(comparison: Comparison) -> float:
    """What a change of kernel time can be of the step's: the part of it in which the GPU works."""
    step = comparison.step_time
    if not (comparison.control.has_gpu and comparison.test.has_gpu):
        return 1.0
    return sum(step.within(BUSY_STATES)) / max(step.control + step.test, 1)


RULES = (efficiency,)
