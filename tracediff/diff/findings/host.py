"""Findings of the states in which no GPU works: which of them changed, and what the host does in them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.evidence import collapsed
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.state_change import StateChange, state_change
from tracediff.diff.ops import is_pair
from tracediff.diff.reach import BUSY_STATES, reach
from tracediff.formatting import change, count, counts, rose, signed_time
from tracediff.profile.kernels.display_names import display_name
from tracediff.runtimes import CALL_CATEGORIES, is_launch, is_synchronising

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison

LINE = re.compile(r"(?<=\.py)\(\d+\)")
"""A line number, which moves with every edit of the file above it."""
NOTHING_RECORDED = "(not recorded: with_stack=True records Python)"
MOSTLY = 0.5
"""Fraction of a state's change from which one operator or function is named in the title."""
OWN_LOADER = "_SingleProcessDataLoaderIter"
"""In the name of the scope of a DataLoader without worker processes."""
LOADS_ITSELF = 0.1
"""Part of the time in the DataLoader in which the process does other work, from which it loads itself."""
ONE_CALLER = 0.8
"""Part of the change of an operator from which the function that calls it is named."""
QUEUED = "It is time between the launch and the start of its work, not in launch calls: the queue of driver and GPU."
SHOWN = 5
SLOWER_CALLS = 0.5
"""Largest part of a change of launching that more launches explain for it to be a matter of slow calls."""
HOST_STATES, LAUNCH_STATES = ("op", "python"), ("launching", "gpu_queued")


def host_time(comparison: Comparison) -> list[Finding]:
    """host-time: the host's own work, while the GPU is idle; without a GPU, in Python."""
    on_gpu = comparison.control.has_gpu and comparison.test.has_gpu
    states = HOST_STATES if on_gpu else HOST_STATES[1:]
    found = state_change(comparison, states)
    if found is None:
        return []
    culprits = held_by(comparison, states)
    what = "host work that the GPU waits for" if on_gpu else "Python outside of operators"
    covered = _uncovered(comparison) if on_gpu else 0.0
    advice = "Look at these operators and Python functions on the host." if found.delta_us > 0 else ""
    if found.delta_us > 0 and culprits and culprits[0].name == NOTHING_RECORDED:
        advice = "Record with stacks (with_stack=True) to see which Python functions it is."
    if on_gpu and found.delta_us * covered > 0 and abs(covered) >= MOSTLY * abs(found.delta_us):
        busy = comparison.step_time.within(BUSY_STATES)
        advice = (
            f"{signed_time(covered)} of it is idle time that GPU work covered before or covers now "
            f"(GPU busy: {change(comparison.us(busy[0]), comparison.us(busy[1]))}). {advice}"
        )
    return [
        Finding(
            kinds.HOST_TIME,
            f"{what} {found.rose}{_mostly(culprits, found)}",
            f"{found.share} {advice}".rstrip(),
            delta_us=found.delta_us,
            weight_us=found.typical_us - covered,
            evidence=_evidence(culprits, found),
            covers=frozenset(states),
        )
    ]


def _uncovered(comparison: Comparison) -> float:
    """By how many µs the idle time rose only because GPU work became less without the step becoming shorter."""
    busy = comparison.typical.within(BUSY_STATES)
    return (1 - reach(comparison)) * (busy[0] - busy[1])


def data_loading(comparison: Comparison) -> list[Finding]:
    """data-loading: waiting for the DataLoader, or loading in the process itself."""
    found = state_change(comparison, ("data_loading",))
    if found is None:
        return []
    inside = [row for row in held_by(comparison, ("data_loading",)) if "DataLoader" not in row.name]
    return [
        Finding(
            kinds.DATA_LOADING,
            f"waiting for the DataLoader {found.rose}",
            f"{found.share} {_what_loads(comparison, found, inside)}",
            delta_us=found.delta_us,
            weight_us=found.typical_us,
            evidence=_evidence([replace(row, where="while loading") for row in inside], found),
            covers=frozenset(("data_loading",)),
        )
    ]


def _what_loads(comparison: Comparison, found: StateChange, inside: list[Evidence]) -> str:
    """Which side's process itself loads, as far as the trace shows it, and what to do if it takes longer."""
    themselves = [side.label for side in _load_themselves(comparison, found, inside)]
    if themselves:
        names = f" ({', '.join(row.name for row in inside[:3])})" if inside else ""
        where = "On both sides" if len(themselves) == 2 else f"In {themselves[0]}"
        text = f"{where} the process itself loads{names}."
        advice = "Use worker processes (num_workers > 0), or make this work cheaper."
    else:
        text = "The trace shows no other work in that time."
        advice = "Tune workers, prefetching and storage."
    return f"{text} {advice}" if found.delta_us > 0 else text


def _load_themselves(comparison: Comparison, found: StateChange, inside: list[Evidence]) -> list[Side]:
    """The sides whose process loads: their loader says so, or there is work inside of its calls."""
    loaders = [op for op in comparison.ops if OWN_LOADER in op.raw_name]
    own = any(op.control_count for op in loaders), any(op.test_count for op in loaders)
    work = sum(row.control_us or 0 for row in inside), sum(row.test_us or 0 for row in inside)
    times = found.control_us, found.test_us
    return [
        side
        for side, is_own, busy, time in zip((comparison.control, comparison.test), own, work, times, strict=True)
        if time and (is_own or busy >= LOADS_ITSELF * max(times))
    ]


def launch_bound(comparison: Comparison) -> list[Finding]:
    """launch-bound: the GPU waits for kernel launches: more of them, or slower ones."""
    found = state_change(comparison, LAUNCH_STATES)
    if found is None:
        return []
    queued = comparison.typical.within(("gpu_queued",))
    later = math.copysign(1, found.delta_us) * (queued[1] - queued[0])
    mostly_queued = later > MOSTLY * abs(found.delta_us)
    title = f"launched work starts {'later' if found.delta_us > 0 else 'sooner'}: {change(*queued)} per step"
    return [
        Finding(
            kinds.LAUNCH_BOUND,
            title if mostly_queued else f"waiting for kernel launches {found.rose}",
            f"{found.share} {QUEUED if mostly_queued else _why_launching(comparison, found)}",
            delta_us=found.delta_us,
            weight_us=found.typical_us,
            evidence=_evidence([_queued(comparison), *held_by(comparison, LAUNCH_STATES)], found),
            covers=frozenset(LAUNCH_STATES),
        )
    ]


def _why_launching(comparison: Comparison, found: StateChange) -> str:
    """Whether the launches became slower, or there are more of them."""
    calls = [op for op in comparison.ops if op.category in CALL_CATEGORIES and is_launch(op.raw_name)]
    before, after = (
        comparison.number(sum(op.control_count for op in calls)),
        comparison.number(sum(op.test_count for op in calls)),
    )
    totals = comparison.us(sum(op.control_self for op in calls)), comparison.us(sum(op.test_self for op in calls))
    number = collapsed(counts(before, after))
    if before and after and _slower(before, after, totals):
        return (
            f"{number} launches take {change(*totals)}: they are slower, not more (lazy loading of modules, warm-up, a "
            f"full queue).{_one_slow_call(comparison, found.delta_us)}"
        )
    return f"Launches per step: {number}. {kinds.advice_of(kinds.LAUNCH_BOUND)}"


def _queued(comparison: Comparison) -> Evidence:
    control, test = comparison.step_time.within(("gpu_queued",))
    return Evidence("between launch and start", None, None, comparison.us(control), comparison.us(test))


def _slower(before: float, after: float, totals: tuple[float, float]) -> bool:
    """Whether the calls became slower rather than more."""
    by_count = (after - before) * (totals[0] + totals[1]) / (before + after)
    return abs(by_count) < SLOWER_CALLS * abs(totals[1] - totals[0])


def _one_slow_call(comparison: Comparison, delta_us: float) -> str:
    """The operator call whose own time changed by most of ``delta_us``, if it is a single one."""
    best = None
    for control, test in comparison.pairing.test_of.items():
        x, y = comparison.trees[0].calls[control], comparison.trees[1].calls[test]
        own = (
            comparison.us(comparison.scale // comparison.trees[0].denominator * x.self_ns),
            comparison.us(comparison.scale // comparison.trees[1].denominator * y.self_ns),
        )
        if x.kind != "op" or (own[1] - own[0]) * delta_us <= 0:
            continue
        if best is None or abs(own[1] - own[0]) > abs(best[1] - best[0]):
            best = (*own, x.name)
    if best is None or abs(best[1] - best[0]) < MOSTLY * abs(delta_us):
        return ""
    return f" Most of it is at one place: {best[2]}, {change(best[0], best[1])}."


def synchronising(comparison: Comparison) -> list[Finding]:
    """synchronisation: the host waits in a synchronising call while no GPU works."""
    found = state_change(comparison, ("synchronising",))
    if found is None:
        return []
    return [
        Finding(
            kinds.SYNCHRONISATION,
            f"synchronising while the GPU is idle {found.rose}",
            found.share + (" Look for calls that read from the device." if found.delta_us > 0 else ""),
            delta_us=found.delta_us,
            weight_us=found.typical_us,
            evidence=_evidence(held_by(comparison, ("synchronising",)), found),
            covers=frozenset(("synchronising",)),
        )
    ]


def new_sync(comparison: Comparison) -> list[Finding]:
    """new-sync: more or fewer calls per step that wait for the device; not where the vendors differ, whose calls do."""
    number, us = comparison.number, comparison.us
    called = [op for op in comparison.ops if op.category in CALL_CATEGORIES]
    if any(is_pair(op) for op in called):
        return []
    calls = [op for op in called if is_synchronising(op.raw_name)]
    control, test = sum(op.control_count for op in calls), sum(op.test_count for op in calls)
    waits = [sum(op.control_total for op in calls), sum(op.test_total for op in calls)]
    if control == test or abs(number(test - control)) < 1:
        return []
    idle = comparison.step_time.within(("synchronising",))
    delta = us(idle[1] - idle[0])
    title = f"synchronising calls {rose(control, test)}: {count(number(control))} → {count(number(test))} per step"
    detail = f"They take {collapsed(change(us(waits[0]), us(waits[1])))} per step"
    detail += f"; the time in them with an idle GPU changed by {signed_time(delta)}. " if delta else ". "
    detail += "Look for `.item()`, `.cpu()` and printed tensors." if test > control else ""
    evidence = tuple(
        Evidence(op.raw_name, number(op.control_count), number(op.test_count), us(op.control_total), us(op.test_total))
        for op in calls[:SHOWN]
    )
    return [
        Finding(
            kinds.NEW_SYNC,
            title,
            detail.rstrip(),
            delta_us=delta,
            weight_us=delta,
            evidence=evidence,
            covers=frozenset(("synchronising",)),
        )
    ]


def held_by(comparison: Comparison, states: tuple[str, ...]) -> list[Evidence]:
    """What the host does in ``states``, the largest change first; one function is one row whatever its line."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    callers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in comparison.idle.rows:
        state, host, _, caller = row.key
        if state in states:
            name = _function(host) if host else NOTHING_RECORDED
            sums[name][0] += row.control[0]
            sums[name][1] += row.test[0]
            callers[name][_function(caller) if caller else ""] += row.test[0] - row.control[0]
    us = comparison.us
    rows = [
        Evidence(name, None, None, us(c), us(t), where=_caller(callers[name], t - c)) for name, (c, t) in sums.items()
    ]
    return sorted(rows, key=lambda e: (-abs((e.test_us or 0) - (e.control_us or 0)), e.name))


def _function(name: str) -> str:
    """A name as findings show it, without the line."""
    return LINE.sub("", display_name(name))


def _caller(callers: dict[str, int], delta: int) -> str:
    """``in loader.py: load`` if the calls in one Python function hold most of the change."""
    caller = max(callers, key=lambda c: (callers[c] * delta, c))
    return f"in {caller}" if caller and callers[caller] * delta >= ONE_CALLER * delta**2 else ""


def _delta(row: Evidence) -> float:
    return (row.test_us or 0.0) - (row.control_us or 0.0)


def _mostly(rows: list[Evidence], found: StateChange) -> str:
    """``, mostly aten::copy_ (+19.4 ms)`` if one row holds most of the change."""
    first = next(iter(rows), None)
    named = first is not None and not first.name.startswith("(")
    if first is None or not named or _delta(first) * found.delta_us < MOSTLY * found.delta_us**2:
        return ""
    return f", mostly {first.label} ({signed_time(_delta(first))})"


def _evidence(rows: list[Evidence], found: StateChange) -> tuple[Evidence, ...]:
    """The rows that changed the way the state did, the largest first."""
    same_way = [
        row for row in rows if _delta(row) * found.delta_us > 0 and abs(_delta(row)) >= 0.02 * abs(found.delta_us)
    ]
    return tuple(same_way[:SHOWN])


RULES = (data_loading, host_time, launch_bound, synchronising, new_sync)
