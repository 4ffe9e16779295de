"""`Comparison` → what limits each side: the larger part of its critical path, and how long its GPU is busy."""

from __future__ import annotations

from msgspec import Struct

from tracediff.arrays import Floats
from tracediff.diff.accounts import StepTime
from tracediff.diff.comparison import Comparison
from tracediff.explain.leaves import GPU, HOST
from tracediff.explain.tree import Node
from tracediff.formatting import percent, percents
from tracediff.pair import Pair
from tracediff.profile.events.step_states import BUSY_STATES

NAMES = {GPU: "GPU", HOST: "host"}


class Limit(Struct, frozen=True, kw_only=True):
    """What a side waits for; parts of the step, 0 to 1.

    Attributes:
        by: GPU or host, whichever is more of its critical path. path: its part of the path.
        gpu_busy: the part of the step in which a GPU works.
    """

    by: str
    path: float
    gpu_busy: float


def limits_of(comparison: Comparison) -> Pair[Limit] | None:
    """Both sides' limits; None without an explanation, or where a side has no GPU."""
    explanation, step = comparison.explanation, comparison.step_time
    if explanation is None or not all(step.period) or not (comparison.control.has_gpu and comparison.test.has_gpu):
        return None
    paths = {NAMES[label]: node.path for label, node in explanation.root.children.items() if label in NAMES}
    if not all(explanation.root.path) or not paths:
        return None
    busy = Pair(*(_busy(step, side) for side in (0, 1)))
    if not explanation.profiled:
        busy = Pair(*(paths[NAMES[GPU]] / explanation.root.path).tolist())
    return Pair(*(_limit(explanation.root, paths, side, busy[side]) for side in (0, 1)))


def _busy(step: StepTime, side: int) -> float:
    return sum(state.time[side] for state in step.states if state.name in BUSY_STATES) / step.period[side]


def _limit(root: Node, paths: dict[str, Floats], side: int, busy: float) -> Limit:
    by = max(paths, key=lambda name: paths[name][side])
    return Limit(by=by, path=float(paths[by][side] / root.path[side]), gpu_busy=busy)


def limits_sentence(comparison: Comparison) -> str:
    """``Critical path: 53 % host → 82 % GPU; GPU busy 48 → 84 % of the step``; empty where it is unknown."""
    limits = limits_of(comparison)
    if limits is None:
        return ""
    control, test = limits
    explanation = comparison.explanation
    busy = f"GPU busy {_once(control.gpu_busy, test.gpu_busy)} of the {explanation.period if explanation else ''}"
    if explanation is not None and not explanation.profiled:
        return f"{busy} without the profiler"
    if control.by == test.by:
        path = f"{_once(control.path, test.path)} {control.by}"
    else:
        path = " → ".join(f"{percent(limit.path)} {limit.by}" for limit in limits)
    return f"Critical path: {path}; {busy}"


def _once(control: float, test: float) -> str:
    """Both parts, or one where they read the same."""
    return percent(test) if percent(control) == percent(test) else percents(control, test)
