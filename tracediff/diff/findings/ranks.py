"""Findings of ranks: which one the others wait for in communication."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING

from tracediff.diff.findings import kinds
from tracediff.diff.findings.finding import Evidence, Finding
from tracediff.diff.findings.step import named_sides
from tracediff.formatting import time, time_unit
from tracediff.profile.step_states import LABELS

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison

STRAGGLING = 0.1
"""Smallest difference between the ranks' times in communication that is reported, as a fraction of the step."""
LATER = 0.03
"""Smallest change of the others' waits that is reported, as a fraction of the step."""
OWN_CHANGE = 0.5
"""A rank whose wait changed by a smaller part of what the others' did is the one they wait for."""
LATE_RANGE = 0.2
"""Ranks are late if their wait is in this part of the range above the shortest."""
OWN_STATES = ("gpu_compute", "gpu_copy", "gpu_queued", "data_loading", "synchronising", "launching", "op", "python")
"""States in which a rank does something itself; in communication it waits."""


def stragglers(comparison: Comparison) -> list[Finding]:
    """straggler: the others wait longer, or less long, in communication for some ranks whose own wait did not change
    like that. A rank that is late on both sides alike is no cause of a change.
    """
    waits = comparison.control.communication_us, comparison.test.communication_us
    ranks = sorted(waits[0].keys() & waits[1].keys())
    if len(ranks) < 2:
        return []
    changes = {rank: waits[1][rank] - waits[0][rank] for rank in ranks}
    others = median(changes.values())
    step = comparison.us(max(comparison.step_time.control, comparison.step_time.test))
    odd = [rank for rank in ranks if others and changes[rank] / others < OWN_CHANGE]
    if abs(others) < LATER * step or not odd or 2 * len(odd) > len(ranks):
        return []
    _, name = named_sides(comparison)[1 if others > 0 else 0]
    listed, verb = _listed(odd), "is" if len(odd) == 1 else "are"
    longer = "longer" if others > 0 else "less"
    title = (
        f"{listed} {verb} late in {name}: the other ranks wait {time(abs(others))} {longer} per step in communication"
    )
    did = _did(comparison, odd[0])
    detail = kinds.advice_of(kinds.STRAGGLER)
    if did:
        more = "more" if others > 0 else "less"
        detail = f"Rank {odd[0]} spends {did[1]} per step {more} in the state “{LABELS[did[0]]}”. {detail}"
    evidence = tuple(Evidence(f"rank {r}, communication", None, None, waits[0][r], waits[1][r]) for r in ranks)
    return [
        Finding(
            kinds.STRAGGLER,
            title,
            detail,
            delta_us=others,
            weight_us=others,
            evidence=evidence,
            covers=frozenset(("gpu_comm", *((did[0],) if did else ()))),
        )
    ]


def _did(comparison: Comparison, rank: int) -> tuple[str, str] | None:
    """The state whose time changed most on ``rank``, and by how much."""
    before, after = (side.rank_states.get(rank, {}) for side in (comparison.control, comparison.test))
    deltas = {state: after.get(state, 0.0) - before.get(state, 0.0) for state in OWN_STATES}
    state = max(deltas, key=lambda s: abs(deltas[s]))
    return (state, time(abs(deltas[state]))) if deltas[state] else None


def _listed(ranks: list[int]) -> str:
    """``rank 3``, ``ranks 3, 5 and 2 more``."""
    shown = ", ".join(map(str, ranks[:4])) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}"


def straggler_of(side: Side, step_us: float, name: str) -> list[Finding]:
    """The finding of one set, called ``name``, whose step takes ``step_us``; none if the ranks wait alike."""
    waits = side.communication_us
    if len(waits) < 2 or max(waits.values()) - min(waits.values()) < STRAGGLING * step_us:
        return []
    shortest, longest = min(waits.values()), max(waits.values())
    late = sorted(rank for rank, wait in waits.items() if wait <= shortest + LATE_RANGE * (longest - shortest))
    early = max(waits, key=lambda r: (waits[r], -r))
    one = len(late) == 1
    title = (
        f"{_listed(late)} of {name} {'is a straggler' if one else 'are stragglers'}: other ranks wait up to "
        f"{time(longest - shortest)} per step"
    )
    latest = min(late, key=lambda rank: waits[rank])
    spends, enters = ("spends", "it enters") if one else ("spend", "they enter")
    detail = (
        f"{_listed(late).capitalize()} {spends} {_range(waits[r] for r in late)} per step in communication, "
        f"rank {early} {time(longest)}: {enters} the collectives last. {_more_than_others(side, latest)}"
        f"{kinds.advice_of(kinds.STRAGGLER)}"
    )
    evidence = tuple(
        Evidence(f"rank {r}: {time(us)} in communication") for r, us in sorted(waits.items(), key=lambda item: item[1])
    )
    return [Finding(kinds.STRAGGLER, title, detail, weight_us=longest - shortest, evidence=evidence)]


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


RULES = (stragglers,)
