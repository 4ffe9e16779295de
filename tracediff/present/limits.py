"""`Comparison` → what limits each side: the larger part of its critical path, and how long its GPU is busy."""

from __future__ import annotations

from tracediff import thresholds
from tracediff.diff.comparison import Comparison
from tracediff.explain.explanation import Explanation
from tracediff.explain.facts import is_hidden
from tracediff.explain.leaves import GPU, HOST
from tracediff.formatting import once, percent_number, with_decimals_of, with_digits
from tracediff.present.path import read_path, unit_of
from tracediff.structs import FrozenStruct, Pair


class Limit(FrozenStruct, kw_only=True):
    """What a side waits for; parts of the step, 0 to 1.

    Attributes:
        gpu, host: the parts of its critical path. gpu_busy: the part of the step in which a GPU works.
    """

    gpu: float
    host: float
    gpu_busy: float

    @property
    def by(self) -> str:
        """What is more of the path: GPU or host."""
        return "GPU" if self.gpu > self.host else "host"


def limits_of(comparison: Comparison) -> Pair[Limit] | None:
    """Both sides' limits; None without an explanation, or where a side has no GPU."""
    explanation, step = comparison.explanation, comparison.step_time
    if explanation is None or not all(step.period) or not (comparison.control.has_gpu and comparison.test.has_gpu):
        return None
    root = explanation.root
    if not all(root.path):
        return None
    gpu, host = (root.children[name].path / root.path if name in root.children else (0, 0) for name in (GPU, HOST))
    busy = [step.busy[k] / step.period[k] if explanation.profiled else float(gpu[k]) for k in (0, 1)]
    return Pair(*(Limit(gpu=float(gpu[k]), host=float(host[k]), gpu_busy=busy[k]) for k in (0, 1)))


def limits_sentence(comparison: Comparison) -> str:
    """``Limited by the host in a, by the GPU in b; GPU busy 41 → 97 %``, or where no line of the explanation has that
    time, ``GPU work 10.3 → 29.4 ms, busy 41 → 97 %``; empty where it is unknown.
    """
    limits, explanation = limits_of(comparison), comparison.explanation
    if limits is None or explanation is None:
        return ""
    control, test = limits
    gpu_ns = _gpu_work(comparison, explanation)
    times_us = [ns / 1000 for ns in gpu_ns]
    unit = with_digits(with_decimals_of(unit_of(explanation), max(times_us)), times_us)
    work = f"{once(map(unit.plain, times_us))} {unit.name}"
    remarks = [CERTAIN[explanation.gpu_work.word]] if _is_certain(comparison, explanation) else []
    remarks += ["off the critical path"] if _is_hidden(explanation, gpu_ns) else []
    remarks += ["streams overlap"] if _overlaps(explanation, gpu_ns, limits) else []
    aside = f" ({', '.join(remarks)})" if remarks else ""
    has_line = explanation.profiled and read_path(explanation).is_split
    busy = f"busy {once(map(percent_number, (control.gpu_busy, test.gpu_busy)))} %"
    busy = f"GPU {busy}" if has_line and not aside else f"GPU work {work}{aside}, {busy}"
    if not explanation.profiled:
        return f"{busy} without the profiler"
    places = [""] * 2 if control.by == test.by else [f" in {label}" for label in comparison.labels]
    limited = dict.fromkeys(f"by the {side.by}{place}" for side, place in zip(limits, places, strict=True))
    return f"Limited {', '.join(limited)}; {busy}"


CERTAIN = {"faster": "significantly less", "slower": "significantly more"}
"""What an inconclusive verdict leaves out."""


def _is_certain(comparison: Comparison, explanation: Explanation) -> bool:
    """Whether all GPU work takes another time for sure, though the step may not."""
    return comparison.verdict.result == "inconclusive" and explanation.gpu_work.word in CERTAIN


def _is_hidden(explanation: Explanation, gpu_ns: list[float]) -> bool:
    """Whether GPU work takes more or less time that the step does not wait for, but for a small part."""
    if not explanation.profiled or GPU not in explanation.root.children:
        return False
    return is_hidden(gpu_ns[1] - gpu_ns[0], explanation.root.children[GPU].change, max(gpu_ns))


def _gpu_work(comparison: Comparison, explanation: Explanation) -> list[float]:
    """GPU work of both sides in ns per step: of several ranks that of the one whose steps are explained."""
    if explanation.ranks > 1 and explanation.profiled and GPU in explanation.root.children:
        return [float(ns) for ns in explanation.root.children[GPU].total]
    return [1000 * comparison.us(ns) for ns in comparison.gpu_time.time]


def _overlaps(explanation: Explanation, gpu_ns: list[float], limits: Pair[Limit]) -> bool:
    """Whether GPU work is more than the time in which the GPU is busy: several streams work at a time."""
    sides = zip(gpu_ns, explanation.root.path, limits, strict=True)
    return any(ns > (limit.gpu_busy + thresholds.NO_DIFFERENCE) * period for ns, period, limit in sides)
