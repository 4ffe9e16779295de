"""Findings of the rate of equal work: FLOPs and bytes per second, against the device's peak. Only if both sets have the
table `rates`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.formatting import change, number, percents, plural
from tracediff.profile.perf_model.device_peaks import Device, device_of
from tracediff.profile.tables.rates import SCHEMA, Attained, attained

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.table_changes import TableRowDiff

COLUMNS = [column.name for column in SCHEMA.columns]
LEAST_GAIN = 0.01
"""Smallest saving at the better rate that is reported, as a fraction of all work of the slower side."""
LEAST_CHANGE = 0.1
"""Relative change of the attained share or rate below which it counts as equal."""
ADVICE = "Check kernels, dtypes, layouts and alignment of these shapes, and clocks."
SHOWN = 5
TIME, CALLS, FLOP, BYTES = (COLUMNS.index(name) for name in ("time", "calls", "flop", "bytes"))


@dataclass(frozen=True, kw_only=True)
class EqualWork:
    """The calls with equal shapes and dtype that both sides make.

    Attributes:
        kind, shapes, dtype: the work. calls: how many both sides make, numerator over the comparison's scale.
        control, test: the columns of the table, scaled to that number of calls.
    """

    kind: str
    shapes: str
    dtype: str
    calls: int
    control: tuple[float, ...]
    test: tuple[float, ...]


def efficiency(comparison: Comparison) -> list[Finding]:
    """efficiency: equal work attains another share of the device's peak or, without a known peak, another rate."""
    rows = next((table.rows for table in comparison.tables if table.schema.name == "rates"), ())
    whole = sum(row.control[TIME] for row in rows), sum(row.test[TIME] for row in rows)
    by_kind: dict[tuple[str, str], list[EqualWork]] = defaultdict(list)
    for equal in map(_equal_work, rows):
        if equal:
            by_kind[equal.kind, equal.dtype].append(equal)
    found = [
        finding
        for (kind, dtype), work in by_kind.items()
        if (finding := _finding(comparison, kind, dtype, work, whole))
    ]
    return sorted(found, key=lambda f: (-abs(f.delta_us), f.title))[:SHOWN]


def _equal_work(row: TableRowDiff) -> EqualWork | None:
    """The work of a row that both sides do; None if one does not, or if neither FLOPs nor bytes are known."""
    calls = min(row.control[CALLS], row.test[CALLS])
    if not calls or not all(side[TIME] and (side[FLOP] or side[BYTES]) for side in (row.control, row.test)):
        return None
    control, test = (tuple(n * calls / side[CALLS] for n in side) for side in (row.control, row.test))
    kind, shapes, dtype = row.key
    return EqualWork(kind=kind, shapes=shapes, dtype=dtype, calls=calls, control=control, test=test)


def _sides(work: list[EqualWork]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [w.control for w in work], [w.test for w in work]


def _finding(
    comparison: Comparison, kind: str, dtype: str, work: list[EqualWork], whole: tuple[int, int]
) -> Finding | None:
    """The finding of one kind of work in one dtype; ``whole`` is the time of all work per side."""
    devices = device_of(comparison.control.gpu), device_of(comparison.test.gpu)
    shares = [_share(dtype, side, device) for side, device in zip(_sides(work), devices, strict=True)]
    rates = [attained(dtype, [sum(column) for column in zip(*side, strict=True)], None) for side in _sides(work)]
    two_devices = devices[0] != devices[1]
    if two_devices:  # shares of two peaks say little of the time
        shares = [None, None]
    before, after = shares
    if before is None or after is None:
        before, after = (r.tflop_s if r.tflop_s is not None else r.gb_s for r in rates)
    if not before or not after:
        return None
    times = [sum(side[TIME] for side in sides) for sides in _sides(work)]
    gain = 1 - min(before, after) / max(before, after)
    if gain < LEAST_CHANGE or gain * times[before > after] < LEAST_GAIN * whole[before > after]:
        return None
    us = comparison.us
    shown = _rates(*rates) if None in shares else f"{percents(before, after)} of peak"
    title = f"{kind}{f' in {dtype}' if dtype else ''} at {shown} for equal work"
    numbers = f"{collapsed(change(us(round(times[0])), us(round(times[1]))))} per step, {collapsed(_rates(*rates))}"
    note = "" if two_devices else _peak_note(devices, shares)
    detail = f"{plural(len(work), 'shape')} that both sides compute: {numbers}.{note} {ADVICE}"
    delta = us(round(times[1] - times[0]))
    largest = sorted(work, key=lambda w: (-abs(w.test[TIME] - w.control[TIME]), w.shapes))[:SHOWN]
    return Finding(
        kinds.EFFICIENCY,
        title,
        detail,
        delta_us=delta,
        evidence=tuple(_evidence(comparison, w) for w in largest),
    )


def _share(dtype: str, rows: list[tuple[float, ...]], device: Device | None) -> float | None:
    """The share of the roofline that ``rows`` attain together: their time at the roofline divided by their time; None
    if the peak is not known for all of them.
    """
    at_peak = 0.0
    for row in rows:
        share = attained(dtype, row, device).part
        if share is None:
            return None
        at_peak += share * row[TIME]
    return at_peak / sum(row[TIME] for row in rows)


def _peak_note(devices: tuple[Device | None, Device | None], shares: list[float | None]) -> str:
    if None in shares:
        return " The device's peak is not known for all of this work."
    names = dict.fromkeys(d.name for d in devices if d)
    return f" The peak is that of {' and '.join(names)}: arithmetic or memory, whichever limits the shape."


def _rates(control: Attained, test: Attained) -> str:
    """``61.0 → 48.2 TFLOP/s``."""
    if control.tflop_s is not None and test.tflop_s is not None:
        return f"{number(control.tflop_s)} → {number(test.tflop_s)} TFLOP/s"
    return f"{number(control.gb_s or 0)} → {number(test.gb_s or 0)} GB/s"


def _evidence(comparison: Comparison, work: EqualWork) -> Evidence:
    rates = _rates(attained(work.dtype, work.control, None), attained(work.dtype, work.test, None))
    calls = comparison.number(work.calls)
    times = comparison.us(round(work.control[TIME])), comparison.us(round(work.test[TIME]))
    return Evidence(f"{work.shapes}: {rates}", calls, calls, *times)


RULES = (efficiency,)
