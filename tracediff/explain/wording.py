"""What the lines of an explanation say."""

from __future__ import annotations

from math import log

from tracediff.explain.amounts import MOST
from tracediff.explain.effects import SAME
from tracediff.explain.explanation import Amount
from tracediff.explain.facts import times
from tracediff.explain.leaves import (
    COMPILING,
    GPU,
    HOST,
    MIXED,
    NOT_RECORDED,
    OPERATORS,
    PYTHON,
    QUEUE,
    SINGLES,
    UNPAIRED,
    WAITING,
)
from tracediff.explain.lines import TOLD, Line
from tracediff.explain.tree import REPLACED, SINGLE
from tracediff.formatting import counts, percent


def label_of(line: Line) -> str:
    """What changed, in words that stand for themselves."""
    trail, label = line.trail, line.node.label
    if not trail or SINGLES in trail:
        return label
    if trail[0] in (GPU, OPERATORS, MIXED):
        return _work_label(trail, label)
    if len(trail) == 1:
        return {
            NOT_RECORDED: "host code that was not recorded",
            OPERATORS: "operators on the host",
            PYTHON: CODE,
        }.get(label, label)
    if trail[1] == PYTHON:
        return {NOT_RECORDED: CODE, f"rest of {PYTHON}": f"rest of the {CODE}"}.get(label, label)
    if trail[1] == OPERATORS:
        has_place = len(trail) > 2 and trail[2] not in label and not label.startswith("rest of ")
        return f"{label} in {trail[2]} on the host" if has_place else f"{label} on the host"
    return f"{trail[1]}: {label}" if trail[1] in (COMPILING, QUEUE, WAITING) else label


def _work_label(trail: tuple[str, ...], label: str) -> str:
    """Of GPU work, or of operators: trails are first label, family, operator or module, call and kernels."""
    noun = "kernels" if trail[0] == GPU else "operators"
    if label.startswith("rest of"):
        return label
    if len(trail) == 1:
        return f"{noun} {label}" if label == UNPAIRED else f"{label} {noun}"
    if trail[1] == UNPAIRED:
        return f"{noun} {UNPAIRED} in {label}"
    if label == UNPAIRED:
        return f"{trail[1]} {noun} {UNPAIRED}"
    if "::" in label.split("(")[0]:
        return f"{label} ({trail[1]})" if len(trail) == 2 else label
    if len(trail) == 2:
        return f"{trail[1]} {noun}" + ("" if label == "kernels" else f" in {label}")
    return f"{trail[1]}: {label}"


def what_happened(line: Line, amount: Amount | None, *, elsewhere: str) -> str:
    """What of its amount or time changed, in a few words; empty where its time says all. ``elsewhere``: what the side
    that has none of it has instead: OTHERS, UNRECORDED or nothing.
    """
    node = line.node
    control, test = node.total
    effect, share = node.main_effect
    if node.note == SINGLE:
        return ""
    if node.note == REPLACED:
        return "replaced" if max(node.parts) == 1 else f"each on one side only, the largest of {counts(*node.parts)}"
    if not node.total.all():
        if node.count.all() or QUEUE in (*line.trail, node.label):  # who waits on one side only does no other work
            return ""
        return elsewhere if elsewhere == UNRECORDED else ("added" if test > control else "removed") + elsewhere
    if MIXED in line.trail:  # events of a GPU against operators
        return UNKNOWN
    if effect == "presence" and share >= TOLD and (node.count[1] - node.count[0]) * (test - control) > 0:
        return "done more often" if test > control else "done less often"
    if amount is None or effect == "time":
        return UNKNOWN if (*line.trail, node.label)[0] != HOST else ""
    longer, rate = test / control, amount.ratio / (test / control)
    known = "" if amount.known_part >= MOST else f" ({percent(amount.known_part)} of it known)"
    same_calls = amount.unit != "calls" or abs(log(node.count[1] / node.count[0])) <= SAME
    if abs(log(amount.ratio)) <= SAME and same_calls:
        much = "as many calls" if amount.unit == "calls" else f"as much work{known}"
        return much + (f" in {times(longer)} × the time" if abs(log(longer)) > SAME else "")
    if amount.unit == "calls":  # of many operators and calls: a mean ratio is no number of calls
        return f"{counts(*map(float, node.count))} calls"
    per_unit = f", {times(rate)} × as fast per unit" if abs(log(rate)) > SAME else ""
    return f"{times(amount.ratio)} × the work{known}{per_unit}"


UNKNOWN = "amount of work unknown"
CODE = "host code between operators"
UNRECORDED, OTHERS = "not recorded on the other side", " here, others stay"


def exposure_label(exposure_us: dict[str, float], scale_us: float) -> str:
    """What the line of the exposure says: the same work, now on or off the critical path."""
    large = {label: us for label, us in exposure_us.items() if abs(us) >= MOVED * scale_us}
    gained = [_place(label) for label, us in large.items() if us > 0]
    lost = [_place(label) for label, us in large.items() if us < 0]
    if gained and lost:
        return f"the limit moved from {' and '.join(lost)} to {' and '.join(gained)}"
    total = sum(exposure_us.values())
    return f"the same work, now {'on' if total > 0 else 'off'} the critical path"


MOVED = 0.1
"""Part of the scale from which the exposure of the host or of the GPU is worth a word."""


def _place(label: str) -> str:
    return {GPU: "the GPU", HOST: "the host"}.get(label, label)
