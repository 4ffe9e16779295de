"""Ranks that the others wait for in communication."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from tracediff.aggregate.side import Side
from tracediff.analysis.finding import Finding
from tracediff.formatting import time, time_unit
from tracediff.profile.step_states import LABELS

STRAGGLING = 0.1
"""Smallest difference between the ranks' times in communication that is reported, as a fraction of the step."""
LATE_RANGE = 0.2
"""Ranks are late if their wait is in this part of the range above the shortest."""
OWN_STATES = ("gpu_compute", "gpu_copy", "gpu_queued", "data_loading", "synchronising", "launching", "op", "python")
"""States in which a rank does something itself; in communication it waits."""
ADVICE = "Look at what these ranks do before their collectives."


def straggler(side: Side, step_us: float) -> list[tuple[float, Finding]]:
    """(µs that others wait per step, finding) of a set whose step takes ``step_us``; none if the ranks wait alike."""
    waits = side.communication_us
    if len(waits) < 2 or max(waits.values()) - min(waits.values()) < STRAGGLING * step_us:
        return []
    shortest, longest = min(waits.values()), max(waits.values())
    late = sorted(rank for rank, wait in waits.items() if wait <= shortest + LATE_RANGE * (longest - shortest))
    early = max(waits, key=lambda r: (waits[r], -r))
    one = len(late) == 1
    title = (
        f"{_listed(late)} of {side.label} {'is a straggler' if one else 'are stragglers'}: other ranks wait up to "
        f"{time(longest - shortest)} per step"
    )
    latest = min(late, key=lambda rank: waits[rank])
    spends, enters = ("spends", "it enters") if one else ("spend", "they enter")
    detail = (
        f"{_listed(late).capitalize()} {spends} {_range(waits[r] for r in late)} per step in communication, "
        f"rank {early} {time(longest)}: {enters} the collectives last. {_more_than_others(side, latest)}{ADVICE}"
    )
    evidence = tuple(
        f"rank {r}: {time(us)} in communication" for r, us in sorted(waits.items(), key=lambda item: item[1])
    )
    return [(longest - shortest, Finding("straggler", title, detail, evidence=evidence))]


def _listed(ranks: list[int]) -> str:
    """``rank 3``, ``ranks 3, 5 and 2 more``."""
    shown = ", ".join(map(str, ranks[:4])) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}"


def _range(waits: Iterable[float]) -> str:
    values = sorted(waits)
    unit = time_unit(values)
    shortest, longest = unit.plain(values[0]), unit.plain(values[-1])
    return f"{shortest} {unit.name}" if shortest == longest else f"{shortest} to {longest} {unit.name}"


def _more_than_others(side: Side, rank: int) -> str:
    """``Rank 7 spends 3.1 ms more than the median rank in: op. ``; empty where it does nothing longer."""
    own = side.rank_states.get(rank, {})
    more = {s: own.get(s, 0.0) - median(states.get(s, 0.0) for states in side.rank_states.values()) for s in OWN_STATES}
    state = max(more, key=lambda s: more[s])
    return (
        f"Rank {rank} spends {time(more[state])} per step more than the median rank in the state “{LABELS[state]}”. "
        if more[state] > 0
        else ""
    )
